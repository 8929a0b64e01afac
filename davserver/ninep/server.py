"""The 9P listeners, and the only module of this front end that knows sockets.

One thread accepts for all listeners; each connection has a thread of its own:

    Server.start
      _accept_loop                       select on the listeners, and on the pipe by which stop() wakes it
        admit(sock)                      who may connect, before a byte is read; else closed, and no thread
        _welcome                         the 65th that may is closed
          Connection.run                 (its own thread)
            sock.recv                    up to 8 KiB, so also many requests at once
              session.receive_data
              session.next_replies       answers some of them, up to 64 KiB
            sock.sendall                 it blocks while the client does not read, and nothing more is read
                                         from that client meanwhile
            session.close                at the end of the connection: every fid is let go
    Server.stop                          closes the listeners, shuts every connection down, waits for them

Every message is logged both ways while the logger `davserver.ninep.trace` is enabled for DEBUG when the
connection begins; bytes of files are counted and not shown.
"""

import errno
import ipaddress
import logging
import os
import selectors
import socket
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agents9core.node import Directory
from davserver.ninep.errors import WireError
from davserver.ninep.session import NinepSession
from davserver.ninep.stat import Owner
from davserver.ninep.wire import NinepMessage, describe

MAX_CONNECTIONS = 64
"""One mount is one connection; each costs a thread and at most a few MiB."""
RECV_BYTES = 1 << 13
"""Holds a hundred of the requests that are not refused."""
JOIN_BYTES = 1 << 16
"""Replies are joined into one send up to this; a longer one goes alone. It bounds what waits unsent."""
CONGESTION = b"reno"
"""Loopback has no path whose room must be found out. What does that, as bbr does, the default of many hosts,
paces what is sent: a tenth of the time of reading a file in pieces of 64 KiB."""
BACKLOG = 1024
"""A client that finds it full asks again after a second; another user can fill one of 64 in milliseconds."""
STOP_SECONDS = 1.0
"""How long stop() waits for its threads."""
FULL_SECONDS = 0.1
"""The pause when the system has no descriptors or threads left for another connection."""

logger = logging.getLogger(__name__)
trace_logger = logging.getLogger("davserver.ninep.trace")


class NinepConnection:
    """One client: its socket and its session."""

    def __init__(self, sock: socket.socket, peer: str, root: Directory, owner: Owner) -> None:
        self._sock = sock
        self.peer = peer
        traced = trace_logger.isEnabledFor(logging.DEBUG)
        self._session = NinepSession(root, owner, self._trace if traced else None)

    def run(self) -> None:
        """Serve the client until it leaves or is no 9P client."""
        try:
            self._converse()
        except WireError as exc:
            logger.warning("%s: not 9P: %s; closed", self.peer, exc)
        except OSError as exc:
            logger.debug("%s: %s", self.peer, exc)
        finally:
            self._sock.close()
            self._session.close()

    def hang_up(self) -> None:
        """Wake the thread that serves the client: its next recv or send ends."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError as exc:
            logger.debug("%s: %s", self.peer, exc)

    def _converse(self) -> None:
        while arrived := self._sock.recv(RECV_BYTES):
            self._session.receive_data(arrived)
            while replies := self._session.next_replies(JOIN_BYTES):
                self._sock.sendall(replies)
            self._session.work_ahead()

    def _trace(self, direction: str, message: NinepMessage) -> None:
        trace_logger.debug("%s %s %s", self.peer, direction, describe(message))


class NinepServer:
    """The 9P front end to one tree. Add listeners, then `start`; `stop` ends it for good."""

    def __init__(self, root: Directory, owner: Owner, admit: Callable[[socket.socket], bool]) -> None:
        """Serve *root*, every file *owner*'s, to the clients that *admit* says yes to."""
        self._root = root
        self._owner = owner
        self._admit = admit
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._listeners: list[socket.socket] = []
        self._socket_files: list[tuple[Path, int]] = []
        self._accepting = threading.Thread(target=self._accept_loop, name="9p-accept", daemon=True)
        self._lock = threading.Lock()
        self._stopping = False
        self._connections: dict[NinepConnection, threading.Thread] = {}

    @property
    def connection_count(self) -> int:
        """How many clients are connected now."""
        with self._lock:
            return len(self._connections)

    def listen_tcp(self, host: str, port: int) -> tuple[str, int]:
        """Listen on a loopback address, port 0 for any free one, and return the address in use.

        Raises ValueError for another address than loopback, OSError where it cannot be listened on.
        """
        # Of a str Python makes IDNA first, which has large tables.
        family, _, _, _, address = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)[0]
        if not ipaddress.ip_address(address[0]).is_loopback:
            raise ValueError(f"{host} is not a loopback address")
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        self._add(listener)
        bound = listener.getsockname()
        return bound[0], bound[1]

    def listen_unix(self, path: Path) -> None:
        """Listen on a socket file that only its owner may use. One that a dead server left is replaced.

        Raises OSError: EADDRINUSE when a server listens there, EEXIST when the file is no socket, EPERM in a
        directory where another user may put another in its place.
        """
        _check_directory(path.parent)
        _clear_stale(path)
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(path))
            path.chmod(0o600)  # before listen(): until then nobody can connect
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        self._socket_files.append((path, path.stat().st_ino))
        self._add(listener)

    def start(self) -> None:
        """Begin to accept. Returns at once."""
        self._accepting.start()

    def stop(self) -> None:
        """Close the listeners and all connections, within about a second also when a client is stuck."""
        deadline = time.monotonic() + STOP_SECONDS
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            open_now = dict(self._connections)
        self._waker.send(b"\0")
        for connection in open_now:
            connection.hang_up()
        for thread in (self._accepting, *open_now.values()):
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        self._close_listeners()

    def _add(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listeners.append(listener)
        self._selector.register(listener, selectors.EVENT_READ, listener)

    def _accept_loop(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                if key.data is None:
                    continue
                try:
                    self._accept(key.data)
                except Exception:
                    logger.exception("cannot accept a client")
                    time.sleep(FULL_SECONDS)

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, address = listener.accept()
        except OSError as exc:
            if exc.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS):
                logger.warning("cannot accept a connection: %s", exc)
                time.sleep(FULL_SECONDS)
            return
        sock.setblocking(True)
        if sock.family == socket.AF_UNIX:
            peer = f"unix:{listener.getsockname()}"
        else:
            peer = f"{address[0]}:{address[1]}"
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION)
        if self._may_connect(sock):
            self._welcome(sock, peer)
        else:
            sock.close()
            logger.info("%s: refused", peer)

    def _may_connect(self, sock: socket.socket) -> bool:
        """Ask who it is, here, where it takes 20 us: a thread takes 50 times that to begin, and another user
        could have us spend.
        """
        try:
            return self._admit(sock)
        except Exception:
            logger.exception("cannot tell who a client is")
            return False

    def _welcome(self, sock: socket.socket, peer: str) -> None:
        """Give the client a thread, or close it where there are as many as may be."""
        connection = NinepConnection(sock, peer, self._root, self._owner)
        thread = threading.Thread(target=self._serve, args=(connection,), name=f"9p-{peer}", daemon=True)
        with self._lock:
            has_room = len(self._connections) < MAX_CONNECTIONS
            if self._stopping or not has_room:
                sock.close()
                if not has_room:
                    logger.warning("%s: no room for another connection; closed", peer)
                return
            self._connections[connection] = thread
        try:
            thread.start()
        except RuntimeError as exc:
            logger.warning("cannot serve a connection: %s", exc)
            self._forget(connection)
            sock.close()
            time.sleep(FULL_SECONDS)

    def _serve(self, connection: NinepConnection) -> None:
        try:
            connection.run()
        finally:
            self._forget(connection)

    def _forget(self, connection: NinepConnection) -> None:
        with self._lock:
            del self._connections[connection]

    def _close_listeners(self) -> None:
        self._selector.close()
        for sock in (*self._listeners, self._wake, self._waker):
            sock.close()
        for path, inode in self._socket_files:
            try:
                if path.stat().st_ino == inode:
                    path.unlink()
            except FileNotFoundError:
                continue


def _check_directory(directory: Path) -> None:
    """Raise OSError where another user could put a socket file of his own in the place of ours."""
    found = directory.stat()
    if found.st_uid not in (os.geteuid(), 0):
        reason = f"its directory is another user's (uid {found.st_uid}); put it into one of your own"
        raise PermissionError(errno.EPERM, reason, str(directory))
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = "others may write in its directory; put it into one of your own, of mode 0700"
        raise PermissionError(errno.EPERM, reason, str(directory))


def _clear_stale(path: Path) -> None:
    """Remove the socket file of a server that is no more. Raises OSError when it may not."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "this is not a socket; it is left alone", str(path))
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:  # a listener with a full backlog: it lives
            pass
    raise OSError(errno.EADDRINUSE, "another server listens here", str(path))
