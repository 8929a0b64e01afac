"""The HTTP door: its listeners, its connections and the loop that sees to both.

    HttpDoor → Listener (one an address) → Connection: who is it? (once)
        → with TLS: the handshake, a turn for each step
        → Loop, until a whole request is there → its turn: Exchange → application
        → body, length or chunks; whenever the client takes no more, or nothing is to be said, → Loop
        → Loop, for the next request

Nothing waits for a client, so clients that are slow, or say nothing, hold up nobody. One of the modules of
this door that know sockets. An application is handed in, so nothing here knows the tree.
"""

import contextlib
import errno
import logging
import select
import socket
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias
from wsgiref.types import WSGIApplication

from davserver.address import Tcp
from davserver.auth.connection_limits import Strangers
from davserver.auth.peer_credentials import Peers
from davserver.server.connection import Connection
from davserver.server.loop import Cause, Loop, Next, Rest

if TYPE_CHECKING:
    from davserver.server.tls import Tls

logger = logging.getLogger(__name__)

BACKLOG = 1024
"""A client that finds it full asks again after a second: with 5 every 100th of 32, and with 128 whoever
comes while 500 others do."""
UNSENT_BYTES = 256 * 1024
"""What the kernel keeps of an answer beyond what is on its way; else some MB for each client that stalls."""
STOP_GRACE_SECONDS = 1.0
"""What is being sent when the server stops may go on for this long."""
STOP_LOOK_SECONDS = 0.01
ACCEPT_PAUSE_SECONDS = 0.5
_ACCEPTED_AT_ONCE = 32
"""In one look of the loop, between which are at most 64 turns."""

Address: TypeAlias = tuple[str, int]


class Listener:
    """One listening address: a guest of the loop that brings others."""

    is_woken = is_sending = goes_on = False

    def __init__(self, door: "HttpDoor", sock: socket.socket) -> None:
        sock.settimeout(0)
        self.address: Address = sock.getsockname()[:2]
        self._door = door
        self._socket = sock
        self._fd = sock.fileno()
        self._pauses_until = 0.0

    def fileno(self) -> int:
        return self._fd

    def rest(self) -> Rest:
        if time.monotonic() < self._pauses_until:
            return Rest(0, self._pauses_until)
        return Rest(select.EPOLLIN, float("inf"))

    def roused(self, _cause: Cause) -> Next:
        """Accept who is there. Whatever happens, go on; without a descriptor left, after a pause."""
        try:
            for _ in range(_ACCEPTED_AT_ONCE):
                self._accept(self._socket.accept()[0])
        except BlockingIOError:
            pass
        except ConnectionError as exc:
            logger.debug("a client left before it was accepted: %s", exc)
        except OSError as exc:
            logger.warning("cannot accept a client: %s", exc)
            self._pauses_until = time.monotonic() + ACCEPT_PAUSE_SECONDS
        except Exception:
            logger.exception("cannot accept a client")
            self._pauses_until = time.monotonic() + ACCEPT_PAUSE_SECONDS
        return Next.REST

    def work(self) -> bool:
        return True

    def end(self) -> None:
        self._socket.close()

    def _accept(self, sock: socket.socket) -> None:
        """Let a new connection wait for its first request, but not one too many of a stranger."""
        try:
            connection = Connection(self._door, sock, self.address)
        except BaseException:
            sock.close()
            raise
        if connection.is_one_too_many:
            connection.end()
        else:
            self._door.loop.welcome(connection)


class HttpDoor:
    """The HTTP door on all its addresses."""

    def __init__(
        self,
        app: WSGIApplication,
        addresses: Iterable[Address],
        peers: Peers,
        hears_strangers: bool = False,
        tls: "Tls | None" = None,
    ) -> None:
        """Listen on every address; "localhost" is both families, port 0 a free one.

        *hears_strangers*: read the bodies of clients that are not admitted, since the application may let
        them in. *tls*: speak TLS. Clients wait until `start`. Raises OSError, the address its filename.
        """
        with contextlib.ExitStack() as undo:
            listening = []
            for host, port in addresses:
                opened = _listen(host, port)
                listening += opened
                for sock in opened:
                    undo.callback(sock.close)
            undo.pop_all()
        self.app = app
        self.peers = peers
        self.hears_strangers = hears_strangers
        self.tls = tls
        self.scheme = "https" if tls else "http"
        self.strangers = Strangers()
        self.connections: set[Connection] = set()
        self.loop: Loop[Connection | Listener] = Loop()
        self._listeners = [Listener(self, sock) for sock in listening]

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses in use, with the ports that were really taken."""
        return [listener.address for listener in self._listeners]

    def start(self) -> None:
        """Answer from now on."""
        for listener in self._listeners:
            self.loop.welcome(listener)
        if self._listeners:
            self.loop.start()

    def stop(self) -> None:
        """Stop listening and end every connection, within STOP_GRACE_SECONDS and a little."""
        self.loop.drain()
        until = time.monotonic() + STOP_GRACE_SECONDS
        while self.connections and time.monotonic() < until:
            time.sleep(STOP_LOOK_SECONDS)
        for connection in list(self.connections):
            connection.cut()
        self.loop.stop()
        for listener in self._listeners:
            listener.end()


def _listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on *host*: one, or for "localhost" one a family that the machine has."""
    if host != "localhost":
        return [_listening(host, port)]
    ipv4 = _listening("127.0.0.1", port)
    try:
        return [ipv4, _listening("::1", ipv4.getsockname()[1])]
    except OSError as exc:
        if exc.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return [ipv4]
        ipv4.close()
        raise


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.encode(),  # of a str Python makes IDNA first, which has large tables
            port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )[0]
    except OSError as exc:
        raise OSError(exc.errno, exc.strerror, str(Tcp(host, port))) from exc
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit both
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as exc:
        sock.close()
        raise OSError(exc.errno, exc.strerror, str(Tcp(host, port))) from exc
    return sock
