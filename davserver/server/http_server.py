"""The HTTP server: cheroot's, on several addresses, with connections that hold no thread while they wait.

    HttpServer → Listener (one an address) → Connection: who is it? (once)
        → with TLS: the handshake, a turn for each step
        → Loop, until a whole request is there → its turn: Request → Gateway → application
        → body, length or chunks; whenever the client takes no more, or the body pauses, → Loop
        → Loop, for the next request

`Loop` stands in the place of cheroot's connection manager and thread pool, which give each slow client a
thread of its own. An application is handed in, so nothing here knows the tree.
"""

import contextlib
import logging
import select
import socket
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias
from wsgiref.types import WSGIApplication

import cheroot.wsgi

from davserver.address import Tcp
from davserver.auth.connection_limits import ConnectionLimits
from davserver.auth.peer_credentials import Peers
from davserver.server.connection import Connection
from davserver.server.gateway import Gateway
from davserver.server.limits import (
    ACCEPT_PAUSE_SECONDS,
    ACCEPTED_AT_ONCE,
    BACKLOG,
    FREE_PORT_TRIES,
    STOP_GRACE_SECONDS,
    STOP_LOOK_SECONDS,
    UNSENT_BYTES,
    Limits,
)
from davserver.server.loop import Cause, Loop, Next, Rest
from davserver.server.own_names import LOCALHOST, LOOPBACKS, contested_names, has_address

if TYPE_CHECKING:
    from davserver.server.tls import TlsAdapter

logger = logging.getLogger(__name__)

Address: TypeAlias = tuple[str, int]
DEFAULT_LIMITS = Limits()


class Listener:
    """One listening address: a guest of the loop that brings others."""

    is_woken = is_sending = goes_on = False
    topic = b""

    def __init__(self, server: "HttpServer", sock: socket.socket) -> None:
        sock.settimeout(0)
        self.address: Address = sock.getsockname()[:2]
        self._server = server
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
            for _ in range(ACCEPTED_AT_ONCE):
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
        """Let a new connection wait for its first request, but not one too many of an unauthenticated
        client."""
        try:
            connection = self._server.ConnectionClass(self._server, sock)
        except BaseException:
            sock.close()
            raise
        if connection.is_one_too_many:
            connection.end()
        else:
            self._server.loop.welcome(connection)


class HttpServer(cheroot.wsgi.Server):
    """Serves a WSGI application on all its addresses."""

    ConnectionClass = Connection
    server_name = ""

    def __init__(
        self,
        app: WSGIApplication,
        addresses: Iterable[Address],
        peers: Peers,
        hears_strangers: bool = False,
        tls: "TlsAdapter | None" = None,
        names: Iterable[str] = (),
        inherited: Sequence[socket.socket] = (),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Listen on every address, port 0 a free one. Clients wait until `start`.

        *hears_strangers*: read the bodies of clients that are not admitted, since the application may let
        them in. *tls*: speak TLS. *names*: what the server is called beside localhost.
        *inherited*: sockets that listen already, to be used for their addresses. Raises OSError, the address
        its filename.
        """
        super().__init__(("127.0.0.1", 0), app, numthreads=1, request_queue_size=BACKLOG)
        self.gateway = Gateway
        self.ssl_adapter = tls
        self.peers = peers
        self.hears_strangers = hears_strangers
        self.limits = limits
        self.scheme = "https" if tls else "http"
        self.connection_limits = ConnectionLimits()
        self.connections: set[Connection] = set()
        self.loop: Loop[Connection | Listener] = Loop()
        self.requests = self._connections = self.loop  # cheroot's pool and manager
        self._inherited = inherited
        self._twins: set[Address] = set()
        """Loopback addresses that are held beside those of the other family that were asked for."""
        with contextlib.ExitStack() as undo:
            listening: list[socket.socket] = []
            for host, port in addresses:
                if (host, port) in self._twins:
                    self._twins.discard((host, port))
                else:
                    listening += self._hold(host, port, undo)
            undo.pop_all()
        self._listeners = [Listener(self, sock) for sock in listening]
        self.contested = contested_names(names, self.held)
        for name, missing in self.contested.items():
            logger.warning("not answering to the name %s: another program holds %s", name, ", ".join(missing))

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses that were asked for, with the ports that were really taken."""
        return [address for address in self.held if address not in self._twins]

    @property
    def held(self) -> Sequence[Address]:
        """All addresses that are listened on."""
        return [listener.address for listener in self._listeners]

    def start(self) -> None:
        """Answer from now on, in threads of its own."""
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

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        """Log what cheroot has to say."""
        logger.log(level, "%s", msg, exc_info=traceback)

    def _hold(self, host: str, port: int, undo: contextlib.ExitStack) -> list[socket.socket]:
        """Return sockets that listen on *host*; of a loopback address also on that of the other family.

        Else another user could listen there, and share the name localhost with this server (see `own_names`).
        """
        if host not in (LOCALHOST, *LOOPBACKS):
            return [self._listen(host, port, undo)]
        first = host if host in LOOPBACKS else LOOPBACKS[0]
        [other] = set(LOOPBACKS) - {first}
        if not has_address(other):
            return [self._listen(first, port, undo)]
        for _ in range(FREE_PORT_TRIES if port == 0 else 1):
            with contextlib.ExitStack() as again:
                sock = self._listen(first, port, again)
                with contextlib.suppress(OSError):
                    both = [sock, self._listen(other, sock.getsockname()[1], again)]
                    undo.push(again.pop_all())
                    if host != LOCALHOST:
                        self._twins.add(both[1].getsockname()[:2])
                    return both
        if host == LOCALHOST:
            return [self._listen(first, port, undo), self._listen(other, port, undo)]
        return [self._listen(first, port, undo)]

    def _listen(self, host: str, port: int, undo: contextlib.ExitStack) -> socket.socket:
        for held in self._inherited:
            if held.getsockname()[:2] == (host, port):
                undo.callback(held.close)
                return held
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            sock: socket.socket = self.prepare_socket(
                address[:2], family, kind, protocol, self.nodelay, self.ssl_adapter
            )
            undo.callback(sock.close)
            sock.bind(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)  # inherited
            sock.listen(self.request_queue_size)
        except OSError as exc:
            raise OSError(exc.errno, exc.strerror, str(Tcp(host, port))) from exc
        return sock
