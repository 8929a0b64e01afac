"""One client's connection: who it is, the state that it is in, and what each state waits for.

    HANDSHAKE   TLS; each step of it is a turn
    IDLE        until the first byte of a request
    REQUEST     until a whole one is in the buffer → its turn: Request → Gateway → application
    RESPONSE    until the socket takes more; nothing here ever blocks on the client
    PAUSE       until there is more to say (`http.environ.Pause`)
    GOODBYE     until the socket takes the last bytes
    LINGER      the client has been sent the end: what still comes is read away

`RULES` says of each state what ends the wait and what follows. With `tls`, `http_server` and
`auth.peer_credentials` one of the modules of the HTTP side that know sockets.
"""

import contextlib
import logging
import select
import socket
import time
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from cheroot.server import HTTPConnection

from davserver.http.environ import (
    CONTESTED,
    MAX_BODY_BYTES,
    PEER,
    PEER_ADMITTED,
    STRANGER,
    WAKE,
    RemoteClient,
)
from davserver.http.response import HTTPError, Response, text_answer
from davserver.server.framing import RequestBuffer
from davserver.server.gateway import Gateway
from davserver.server.limits import MAX_HEADER_BYTES, RECEIVE_BYTES
from davserver.server.loop import Cause, Next, Rest
from davserver.server.request import Request, final_response
from davserver.server.tls import TlsSocket

if TYPE_CHECKING:
    from davserver.server.http_server import HttpServer

logger = logging.getLogger(__name__)

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(Enum):
    """What a connection is doing."""

    HANDSHAKE = auto()
    IDLE = auto()
    REQUEST = auto()
    RESPONSE = auto()
    PAUSE = auto()
    GOODBYE = auto()
    LINGER = auto()


class Then(Enum):
    """What follows when a wait ends."""

    WORK = auto()
    RECEIVE = auto()
    TIMEOUT = auto()
    """It is answered 408."""
    END = auto()


class Rule(NamedTuple):
    """What a state waits for."""

    events: int
    """Of epoll(7); that the other end is gone always ends a wait too."""
    limit: str
    """The field of Limits that says how long; "": as long as the pause says."""
    is_in_all: bool
    """Whether that counts from the beginning of the state, else from the last progress."""
    on_event: Then
    on_wake: Then | None
    """None: a wake is remembered for the next pause."""
    on_deadline: Then


RULES = {
    State.HANDSHAKE: Rule(select.EPOLLIN, "handshake_seconds", True, Then.WORK, None, Then.END),
    State.IDLE: Rule(select.EPOLLIN, "idle_seconds", False, Then.RECEIVE, None, Then.END),
    State.REQUEST: Rule(select.EPOLLIN, "request_seconds", True, Then.RECEIVE, None, Then.TIMEOUT),
    State.RESPONSE: Rule(select.EPOLLOUT, "stall_seconds", False, Then.WORK, None, Then.END),
    State.PAUSE: Rule(select.EPOLLRDHUP, "", False, Then.END, Then.WORK, Then.WORK),
    State.GOODBYE: Rule(select.EPOLLOUT, "stall_seconds", False, Then.WORK, None, Then.END),
    State.LINGER: Rule(select.EPOLLIN, "linger_seconds", True, Then.RECEIVE, None, Then.END),
}


class Outbox:
    """What is to be sent: `flush` sends of it what the socket takes."""

    def __init__(self, sock: "socket.socket | TlsSocket") -> None:
        self._sock = sock
        self._parts: list[memoryview] = []

    def write(self, data: bytes) -> None:
        """Take *data* behind what is here."""
        if data:
            self._parts.append(memoryview(data))

    def flush(self) -> bool:
        """Send without waiting; tell whether everything is sent. Raises ConnectionError."""
        while self._parts:
            try:
                sent = self._sock.sendmsg(self._parts)
            except BlockingIOError:
                return False
            except OSError as exc:
                raise ConnectionAbortedError(exc.errno, "the client is gone") from exc
            self._drop(sent)
        return True

    @property
    def is_empty(self) -> bool:
        """Whether everything is sent."""
        return not self._parts

    def _drop(self, sent: int) -> None:
        while self._parts and sent >= len(self._parts[0]):
            sent -= len(self._parts.pop(0))
        if sent:
            self._parts[0] = self._parts[0][sent:]


class Connection(HTTPConnection):
    """A client's connection. Who it is does not change, so it is asked once."""

    RequestHandlerClass = Request
    is_woken = False
    rfile: RequestBuffer
    wfile: Outbox
    server: "HttpServer"

    def __init__(self, server: "HttpServer", sock: socket.socket) -> None:
        """Take an accepted socket. Raises ConnectionError where its client has left already."""
        admitted = server.peers.admits(sock)
        client = None if admitted else RemoteClient(server.peers.name_of(sock), self._is_there)
        self.client_id = (client.name or "nobody") if client else ""
        self._fd = sock.fileno()
        self._since = time.monotonic()
        """When the state began, or last got on."""
        self._gateway: Gateway | None = None
        """The request that is not answered to its end."""
        self.environ: dict[str, Any] = {
            **_address_of(sock),
            "wsgi.url_scheme": server.scheme,
            PEER_ADMITTED: admitted,
            PEER: self.client_id,
            STRANGER: client,
            CONTESTED: server.contested,
            WAKE: self._wake,
        }
        """What the environment of each request has of the connection."""
        is_known = client is not None and client.name is not None
        self.is_heard = admitted or (server.hears_strangers and is_known)
        """Whether a response can be another than a refusal; else its body is not read, and it is the last."""
        body_bytes = (MAX_BODY_BYTES + 1) * self.is_heard
        sock.settimeout(0)
        wrapped, self.ssl_env = server.ssl_adapter.wrap(sock) if server.ssl_adapter else (sock, {})
        self._tls = wrapped if isinstance(wrapped, TlsSocket) else None
        self._handshake_events = select.EPOLLIN
        self._pause_seconds = 0.0
        self._state = State.HANDSHAKE if self._tls else State.IDLE
        super().__init__(
            server,
            wrapped,
            makefile=lambda sock, mode, _: (
                RequestBuffer(MAX_HEADER_BYTES, body_bytes) if mode == "rb" else Outbox(sock)
            ),
        )
        del self.resolve_peer_creds, self.get_peer_creds  # which hold the connection in a circle
        self._is_counted = not admitted and server.connection_limits.enter(self.client_id)
        self.is_one_too_many = not admitted and not self._is_counted
        server.connections.add(self)

    def _enter(self, state: State) -> None:
        self._state, self._since = state, time.monotonic()

    # -- its turn

    @property
    def goes_on(self) -> bool:
        return self._gateway is not None

    @property
    def topic(self) -> bytes:
        """The collection that the request is about, or is in."""
        target = self._gateway.req.uri if self._gateway else self.rfile.target
        return bytes(target.partition(b"?")[0].rpartition(b"/")[0])

    def work(self) -> bool:
        """Answer the next request, or go on; tell whether the connection stays."""
        try:
            if self._state is State.HANDSHAKE:
                self._shake_hands()
            elif self._state is State.GOODBYE:
                self._say_goodbye()
            else:
                return self._answer()
        except ConnectionError as exc:
            logger.debug("a connection broke: %s", exc)
            return False
        return True

    def _shake_hands(self) -> None:
        self._handshake_events = self._tls.shake() if self._tls else 0
        if not self._handshake_events:
            self._enter(State.IDLE)

    def _answer(self) -> bool:
        gateway = self._gateway
        if gateway is None:
            request = self.RequestHandlerClass(self.server, self)
            try:
                request.parse_request()
            except HTTPError as exc:
                self._refuse(exc.answer)
                return True
            gateway = self._gateway = self.server.gateway(request)
        try:
            if not gateway.go_on():
                self._pause_seconds = gateway.pause.seconds if gateway.pause is not None else 0.0
                self._enter(State.RESPONSE if gateway.pause is None else State.PAUSE)
                return True
        except ConnectionError:
            raise
        except Exception:
            logger.exception("a response failed")
            if gateway.is_begun:
                return False
            self._refuse(text_answer(500, "500 Internal Server Error"))
            return True
        self._let_go()
        if gateway.req.close_connection:
            self._say_goodbye()
        else:
            self._enter(State.IDLE)
        return True

    def _let_go(self) -> None:
        """Release the response, finished or not."""
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            gateway.close()

    def _refuse(self, answer: Response) -> None:
        """Give the last response. Raises ConnectionError."""
        self._let_go()
        self.wfile.write(final_response(answer))
        self._say_goodbye()

    def _say_goodbye(self) -> None:
        """Let the client know, once it takes it, that this is all. Raises ConnectionError.

        The connection stays, to read away what still comes.
        """
        self._enter(State.GOODBYE)
        if self.wfile.flush() and (self._tls is None or self._tls.say_goodbye()):
            self._enter(State.LINGER)
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)

    def _wake(self) -> None:
        """End the pause of its response, or the next one; see `environ.WAKE`."""
        self.server.loop.wake(self)

    def _is_there(self) -> bool:
        """Return whether the client has not closed its end."""
        looks = select.poll()
        looks.register(self.socket, select.POLLRDHUP)  # and what is always said: POLLHUP, POLLERR
        return not looks.poll(0)

    # -- its wait

    def fileno(self) -> int:
        return self._fd

    @property
    def is_sending(self) -> bool:
        """Whether a response is on its way that does not wait for something to say."""
        return self._state in (State.RESPONSE, State.GOODBYE)

    def rest(self) -> Rest | None:
        if self._state in (State.IDLE, State.REQUEST):
            if self.rfile.is_whole():
                return None
            self._await_request()
        elif self._state is State.RESPONSE and self.wfile.is_empty:
            return None
        rule = RULES[self._state]
        since = self._since if rule.is_in_all else time.monotonic()
        seconds: float = getattr(self.server.limits, rule.limit) if rule.limit else self._pause_seconds
        events = self._handshake_events if self._state is State.HANDSHAKE else rule.events
        return Rest(events, since + seconds, wakes=rule.on_wake is not None)

    def _await_request(self) -> None:
        if self._state is State.IDLE and self.rfile.is_begun():
            self._enter(State.REQUEST)
        if self.rfile.wants_continue():
            self.wfile.write(CONTINUE)
            with contextlib.suppress(ConnectionError):
                self.wfile.flush()

    def roused(self, cause: Cause) -> Next:
        """Take notice of what ended the wait, as RULES has it."""
        rule = RULES[self._state]
        then = {Cause.EVENT: rule.on_event, Cause.WAKE: rule.on_wake, Cause.DEADLINE: rule.on_deadline}[cause]
        if then is Then.RECEIVE:
            return self._receive()
        if then is Then.TIMEOUT:
            with contextlib.suppress(ConnectionError):
                self._refuse(text_answer(408, "408 Request Timeout"))
                return Next.REST
            return Next.END
        return Next.WORK if then is Then.WORK else Next.END

    def _receive(self) -> Next:
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return Next.REST
        except OSError:
            return Next.END
        if not data:
            return Next.END
        if self._state is State.LINGER:
            return Next.REST
        self.rfile.feed(data)
        return Next.WORK if self.rfile.is_whole() else Next.REST

    # -- its end

    def cut(self) -> None:
        """End it now, whatever a thread is doing with it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Close it, and what its response holds."""
        try:
            self._let_go()
        finally:
            self.close()

    def close(self) -> None:
        """Close the socket and let go of what is buffered."""
        if self._is_counted:
            self._is_counted = False
            self.server.connection_limits.leave(self.client_id)
        self.server.connections.discard(self)
        self.rfile.close()
        self.socket.close()


def _address_of(sock: socket.socket) -> dict[str, str]:
    """Return what an environment says of the two ends. Raises ConnectionError."""
    try:
        (host, port, *_), (remote_host, remote_port, *_) = sock.getsockname(), sock.getpeername()
    except OSError as exc:
        raise ConnectionAbortedError(exc.errno, "the client is gone") from exc
    return {
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "REMOTE_ADDR": remote_host,
        "REMOTE_PORT": str(remote_port),
    }
