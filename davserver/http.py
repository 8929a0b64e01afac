"""The HTTP listener: cheroot's server with our requests, our limits and our doorkeeper.

    HttpDoor.start → Server (one an address) → accept → Connection: who is it? (once)
        → idle until it has something to say → worker → Request → Gateway → application
        → body, length or chunks → the connection waits for its next request

One of the two modules of this door that know sockets (the other is `peer`). An application is handed in, so
nothing here knows the tree. Security headers come from `request`, since they belong on every answer, also
on those that never reach the application.
"""

import contextlib
import errno
import io
import logging
import socket
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any
from wsgiref.types import WSGIApplication

from cheroot import wsgi
from cheroot.connections import ConnectionManager
from cheroot.makefile import MakeFile
from cheroot.server import HTTPConnection

from davserver.environ import MAX_BODY_BYTES, PEER, PEER_ADMITTED
from davserver.peer import Peers, Unknown
from davserver.request import Malformed, Request

logger = logging.getLogger(__name__)

THREADS = 16
BACKLOG = 128
"""cheroot's 5 makes every 100th of 32 clients wait a second."""
TIMEOUT_SECONDS = 30
"""How long a client may say, or take, nothing. A pager that is left alone for longer loses the rest."""
MAX_HEADER_BYTES = 65536
STOP_GRACE_SECONDS = 1.0
"""What is being sent when the server stops may go on for this long."""
ACCEPT_PAUSE_SECONDS = 0.5

Address = tuple[str, int]


class Connection(HTTPConnection):
    """One client's connection: who it is does not change, so it is asked once."""

    RequestHandlerClass = Request

    def __init__(self, server: "Server", sock: socket.socket, makefile: Any = MakeFile) -> None:  # noqa: ANN401
        super().__init__(server, sock, makefile)
        self.admitted = server.peers.admits(sock)
        self.is_heard = self.admitted or server.hears_strangers
        self.known_as = "" if self.admitted else self._known_as()
        self.is_new = True
        server.open_connections.add(self)

    def _known_as(self) -> str:
        """Return what can be said of a stranger: the uid, or else the address."""
        try:
            return f"uid {self.server.peers.uid_of(self.socket)}"
        except (Unknown, OSError, ValueError):
            return str(self.remote_addr)

    def cut(self) -> None:
        """End it now, whatever a worker is doing with it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.server.open_connections.discard(self)
        super().close()


class Gateway(wsgi.Gateway_10):
    """Hands a request to the application, its body read, and sends what that answers."""

    def get_environ(self) -> dict[str, Any]:  # type: ignore[override]  # the stub says None
        req = self.req
        host, port = req.server.bind_addr
        environ = {
            "REQUEST_METHOD": req.method.decode("latin-1"),
            "REQUEST_URI": req.uri.decode("latin-1"),
            "SCRIPT_NAME": "",
            "PATH_INFO": req.path.decode("latin-1"),
            "QUERY_STRING": req.qs.decode("latin-1"),
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "SERVER_PROTOCOL": req.request_protocol.decode("latin-1"),
            "REMOTE_ADDR": req.conn.remote_addr or "",
            "wsgi.version": self.version,
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            PEER_ADMITTED: req.conn.admitted,
            PEER: req.conn.known_as,
        }
        for name, value in req.inheaders.items():
            environ["HTTP_" + name.decode("latin-1").upper().replace("-", "_")] = value.decode("latin-1")
        return environ

    def respond(self) -> None:
        body = b""
        if self.req.conn.is_heard:
            try:
                body = self.req.read_body(MAX_BODY_BYTES + 1)
            except Malformed as exc:
                self.req.sent_headers = True
                self.req.simple_response("400 Bad Request", str(exc))
                return
        self.env["wsgi.input"] = io.BytesIO(body)
        response = self.req.server.wsgi_app(self.env, self.start_response)
        try:
            for chunk in response:
                if chunk:
                    self.write(chunk)
            self.req.ensure_headers_sent()
        finally:
            if hasattr(response, "close"):
                response.close()


class Server(wsgi.Server):
    """One listening address."""

    ConnectionClass = Connection
    keep_alive_conn_limit = None  # type: ignore[assignment]  # the stub forgets that None is no limit
    max_request_header_size = MAX_HEADER_BYTES

    def __init__(
        self, listener: socket.socket, app: WSGIApplication, peers: Peers, hears_strangers: bool
    ) -> None:
        address = listener.getsockname()[:2]
        super().__init__(address, app, numthreads=THREADS, timeout=TIMEOUT_SECONDS, shutdown_timeout=1)
        self.gateway = Gateway
        self.socket = listener
        self.peers = peers
        self.hears_strangers = hears_strangers
        self.open_connections: set[Connection] = set()

    def prepare(self) -> None:
        """Start the workers. The socket listens already: cheroot would look for one of systemd's first."""
        self._interrupt = None
        self.socket.settimeout(1)
        self._connections = ConnectionManager(self)
        self.requests.start()
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
        """Give a connection to a worker; a new one only once it has said something."""
        if conn.is_new:
            conn.is_new = False
            self._connections.put(conn)
        else:
            super().process_conn(conn)

    def put_conn(self, conn: Connection) -> None:
        """Let a connection wait for its next request, or close it where the server has just stopped."""
        try:
            super().put_conn(conn)
        except (OSError, ValueError, KeyError, RuntimeError):
            conn.close()

    def stop(self) -> None:
        if self.ready:
            super().stop()
        elif self.socket is not None:
            self.socket.close()

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        logger.log(level, "%s", msg, exc_info=traceback)


class HttpDoor:
    """The HTTP door on all its addresses."""

    def __init__(
        self, app: WSGIApplication, addresses: Iterable[Address], peers: Peers, hears_strangers: bool = False
    ) -> None:
        """Listen on every address; "localhost" is both families, port 0 a free one.

        *hears_strangers*: read the bodies of clients that are not admitted, since the application may let
        them in. Clients wait until `start`. Raises OSError with the address as its filename.
        """
        with contextlib.ExitStack() as undo:
            listeners = []
            for host, port in addresses:
                opened = _listen(host, port)
                listeners += opened
                for listener in opened:
                    undo.callback(listener.close)
            undo.pop_all()
        self._servers = [Server(listener, app, peers, hears_strangers) for listener in listeners]
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
        cut = threading.Timer(STOP_GRACE_SECONDS, self._cut_connections)
        stops = [threading.Thread(target=server.stop) for server in self._servers]
        for thread in (cut, *stops):
            thread.start()
        for thread in (*stops, *(thread for thread in self._threads if thread.ident)):
            thread.join()
        cut.cancel()
        cut.join()

    def _cut_connections(self) -> None:
        for server in self._servers:
            for connection in list(server.open_connections):
                connection.cut()


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
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as exc:
        sock.close()
        raise OSError(exc.errno, exc.strerror, f"{host}:{port}") from exc
    return sock
