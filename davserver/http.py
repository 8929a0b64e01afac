"""The HTTP listener: cheroot's server with our requests, our limits and our doorkeeper.

    HttpDoor.start → Server (one an address) → accept → Connection: who is it? (once)
        → with TLS: Parker and worker by turns, until the handshake is done
        → Parker, until a whole request is there → worker → Request → Gateway → application
        → body, length or chunks; whenever the client takes no more, or nothing is to be said, → Parker
        → Parker, for the next request

A worker never waits for a client, so clients that are slow, or say nothing, hold up nobody. One of the
modules of this door that know sockets. An application is handed in, so nothing here knows the tree.
Security headers come from `request`, since they belong on every answer, also where no application is asked.
"""

import contextlib
import errno
import logging
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from wsgiref.types import WSGIApplication

from cheroot import wsgi
from cheroot.connections import ConnectionManager

from davserver.address import Tcp
from davserver.connection import MAX_HEADER_BYTES, Connection
from davserver.gateway import Gateway
from davserver.parker import Parker
from davserver.peer import Peers
from davserver.strangers import Strangers
from davserver.turns import Workers

if TYPE_CHECKING:
    from davserver.tls import Tls

logger = logging.getLogger(__name__)

THREADS = 8
"""They do nothing but work, and Python does it one at a time; more help only where disks are slow."""
BACKLOG = 1024
"""A client that finds it full asks again after a second: with cheroot's 5 every 100th of 32, and with 128
whoever comes while 500 others do."""
UNSENT_BYTES = 256 * 1024
"""What the kernel keeps of an answer beyond what is on its way; else some MB for each client that stalls."""
STOP_GRACE_SECONDS = 1.0
"""What is being sent when the server stops may go on for this long."""
STOP_LOOK_SECONDS = 0.01
ACCEPT_PAUSE_SECONDS = 0.5

Address = tuple[str, int]


class Server(wsgi.Server):
    """One listening address."""

    ConnectionClass = Connection
    keep_alive_conn_limit = None  # type: ignore[assignment]  # the stub forgets that None is no limit
    max_request_header_size = MAX_HEADER_BYTES

    def __init__(
        self,
        listener: socket.socket,
        app: WSGIApplication,
        peers: Peers,
        hears_strangers: bool,
        strangers: Strangers,
        tls: "Tls | None",
    ) -> None:
        address = listener.getsockname()[:2]
        super().__init__(address, app, numthreads=THREADS, shutdown_timeout=1)
        self.requests = Workers(self, THREADS)
        self.gateway = Gateway
        self.socket = listener
        self.peers = peers
        self.hears_strangers = hears_strangers
        self.strangers = strangers
        self.tls = tls
        self.open_connections: set[Connection] = set()
        self.parker: Parker[Connection] = Parker(self.requests.put)

    def prepare(self) -> None:
        """Start the workers. The socket listens already: cheroot would look for one of systemd's first."""
        self._interrupt = None
        self.socket.settimeout(1)
        self._connections = ConnectionManager(self)  # which only accepts
        self.requests.start()
        self.parker.start()
        self.ready = True
        self._start_time = time.time()

    def serve(self) -> None:
        """Accept until stopped, whatever happens. Without a descriptor left, wait for one."""
        while self.ready:
            try:
                self._connections.run(self.expiration_interval)
            except OSError as exc:
                logger.warning("cannot accept a client: %s", exc)
                time.sleep(ACCEPT_PAUSE_SECONDS)
            except Exception:
                logger.exception("cannot accept a client")
                time.sleep(ACCEPT_PAUSE_SECONDS)

    def process_conn(self, conn: Connection) -> None:
        """Let a new connection wait for its first request, but not one too many of a stranger."""
        if conn.is_one_too_many:
            conn.close()
        else:
            self.parker.park(conn)

    def put_conn(self, conn: Connection) -> None:
        """Let a connection wait: for its next request, or to go on with its answer."""
        self.parker.park(conn)

    def stop(self) -> None:
        """Stop listening, let what is being sent go on for STOP_GRACE_SECONDS, end every connection."""
        was_ready, self.ready = self.ready, False
        if was_ready:
            self._connections.stop()
        self.socket.close()
        if was_ready:
            self._connections.close()
            self._end_connections()
            self.requests.stop(self.shutdown_timeout)
        self.parker.stop()

    def _end_connections(self) -> None:
        self.parker.drain()
        until = time.monotonic() + STOP_GRACE_SECONDS
        while self.open_connections and time.monotonic() < until:
            time.sleep(STOP_LOOK_SECONDS)
        for connection in list(self.open_connections):
            connection.cut()

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        logger.log(level, "%s", msg, exc_info=traceback)


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
            listeners = []
            for host, port in addresses:
                opened = _listen(host, port)
                listeners += opened
                for listener in opened:
                    undo.callback(listener.close)
            undo.pop_all()
        self.scheme = "https" if tls else "http"
        strangers = Strangers()
        self._servers = [
            Server(listener, app, peers, hears_strangers, strangers, tls) for listener in listeners
        ]
        self._threads = [threading.Thread(target=server.serve, name="http-door") for server in self._servers]

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses in use, with the ports that were really taken."""
        return [server.bind_addr for server in self._servers]

    def start(self) -> None:
        """Answer from now on."""
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.prepare()
            thread.start()

    def stop(self) -> None:
        """Stop listening and end every connection, within STOP_GRACE_SECONDS and a little."""
        stops = [threading.Thread(target=server.stop) for server in self._servers]
        for thread in stops:
            thread.start()
        for thread in (*stops, *(thread for thread in self._threads if thread.ident)):
            thread.join()


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
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
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
