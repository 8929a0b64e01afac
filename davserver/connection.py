"""One client's connection: who it is, what came of it, what is still to be sent to it, and what it waits for.

    parked in a handshake  of TLS; a worker takes each step of it, 10 s for all of them
    parked for a request   until a whole one is in the inbox; 5 s from its first byte, else 408
    with a worker          parse, answer (`request`, `gateway`); nothing here ever blocks on the client
    parked in an answer    until the socket takes more, or until there is something to say

One of the modules of this door that know sockets.
"""

import contextlib
import select
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cheroot.server import HTTPConnection

from davserver.environ import MAX_BODY_BYTES, Pause, Stranger
from davserver.gate import Inbox
from davserver.parker import Cause, Next, Rest
from davserver.request import Request

if TYPE_CHECKING:
    from davserver.http import Server
    from davserver.tls import TlsSocket

HANDSHAKE_SECONDS = 10
"""How long a client may take until it speaks TLS."""
IDLE_SECONDS = 30
"""How long a connection may say nothing between requests, or before the first."""
REQUEST_SECONDS = 5
"""How long a request may take to arrive, from its first byte; then it is 408."""
STALL_SECONDS = 600
"""How long a client may take nothing of an answer: a pager that is left alone for less loses no byte."""
MAX_HEADER_BYTES = 65536
_RECEIVE_BYTES = 65536

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Outbox:
    """What is to be sent: cheroot writes here as to a file, and `flush` sends what the socket takes."""

    def __init__(self, sock: "socket.socket | TlsSocket") -> None:
        self._sock = sock
        self._parts: list[memoryview] = []

    def write(self, data: bytes) -> None:
        """Take *data* behind what is here."""
        if data:
            self._parts.append(memoryview(data))

    def flush(self) -> bool:
        """Send without waiting; tell whether everything is sent. Raises OSError."""
        while self._parts:
            try:
                sent = self._sock.sendmsg(self._parts)
            except BlockingIOError:
                return False
            self._drop(sent)
        return True

    def _drop(self, sent: int) -> None:
        while self._parts and sent >= len(self._parts[0]):
            sent -= len(self._parts.pop(0))
        if sent:
            self._parts[0] = self._parts[0][sent:]


class Connection(HTTPConnection):
    """A client's connection. Who it is does not change, so it is asked once."""

    def __init__(self, server: "Server", sock: socket.socket, _makefile: Callable[..., Any]) -> None:
        self.admitted = server.peers.admits(sock)
        self.is_heard = self.admitted or server.hears_strangers
        self.stranger = None if self.admitted else Stranger(server.peers.name_of(sock), self._is_there)
        self.known_as = (self.stranger.name or "nobody") if self.stranger else ""
        self.is_one_too_many = not self.admitted and not server.strangers.enter(self.known_as)
        self._is_counted = not self.admitted and not self.is_one_too_many
        sock.settimeout(0)
        self._tls = server.tls and server.tls.over(sock)
        super().__init__(server, self._tls or sock, self._file)
        self._handshake = select.EPOLLIN if self._tls else 0
        """What the handshake waits for; 0 where there is none, or none any more."""
        self._accepted_at = time.monotonic()
        self.is_known = self.is_woken = False
        self.request: Request | None = None
        """The request that is not answered to its end."""
        self.pause: Pause | None = None
        """What its answer waits for, where that is not the client."""
        self._begun_at: float | None = None
        """Since when a part of a request is here."""
        server.open_connections.add(self)

    def _file(self, sock: "socket.socket | TlsSocket", mode: str, _size: int) -> Inbox | Outbox:
        """Return what cheroot takes for the socket's files. The body of a stranger is not waited for."""
        return Inbox(MAX_HEADER_BYTES, (MAX_BODY_BYTES + 1) * self.is_heard) if "r" in mode else Outbox(sock)

    # -- with a worker

    def RequestHandlerClass(self, server: "Server", conn: "Connection") -> Request:
        """Return the request that is not answered yet, or the next one."""
        return self.request or Request(server, conn)

    def communicate(self) -> bool:
        """Answer the next request, or go on; tell whether the connection stays."""
        if self._handshake:
            return self._shake()
        stays: bool = super().communicate()  # type: ignore[no-untyped-call]
        if self.request is not None:
            return True
        with contextlib.suppress(OSError):
            self.wfile.flush()
        self.rfile.begin_next()
        self._begun_at = None
        return stays

    def _shake(self) -> bool:
        """Go on with the handshake; tell whether the connection stays."""
        try:
            self._handshake = self._tls.shake() if self._tls else 0
        except OSError:
            return False
        return True

    def say_goodbye(self) -> None:
        """Let the client know that an answer without a length is all there."""
        if self._tls:
            self._tls.say_goodbye()

    def wake(self) -> None:
        """End the pause of its answer, or the next one; see `environ.WAKE`."""
        self.server.parker.wake(self)

    def _is_there(self) -> bool:
        """Tell whether the client has not closed its end."""
        looks = select.poll()
        looks.register(self, select.POLLRDHUP)  # and what is always told: POLLHUP, POLLERR
        return not looks.poll(0)

    # -- in the parker

    def fileno(self) -> int:
        return int(self.socket.fileno())

    @property
    def is_sending(self) -> bool:
        """Whether an answer is on its way that does not wait for something to say."""
        return self.request is not None and self.pause is None

    def rest(self) -> Rest | None:
        now = time.monotonic()
        if self._handshake:
            return Rest(self._handshake, self._accepted_at + HANDSHAKE_SECONDS)
        if self.pause is not None:
            return Rest(select.EPOLLRDHUP, now + self.pause.seconds, wakes=True)
        if self.request is not None:
            return Rest(select.EPOLLOUT, now + STALL_SECONDS)
        if self.rfile.is_whole():
            return None
        if not self.rfile.is_begun():
            return Rest(select.EPOLLIN, now + IDLE_SECONDS)
        if self._begun_at is None:
            self._begun_at = now
        return Rest(select.EPOLLIN, self._begun_at + REQUEST_SECONDS)

    def roused(self, cause: Cause) -> Next:
        if self._handshake:
            return Next.WORK if cause is Cause.EVENT else Next.END
        if self.pause is not None:
            return Next.END if cause is Cause.EVENT else Next.WORK
        if self.request is not None:
            return Next.WORK if cause is Cause.EVENT else Next.END
        if cause is Cause.DEADLINE:
            if self.rfile.is_begun():
                self._say("408 Request Timeout")
            return Next.END
        return self._receive()

    def end(self) -> None:
        """Close it, and what its answer holds."""
        try:
            if self.request is not None:
                self.request.drop()
        finally:
            self.close()

    def _receive(self) -> Next:
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return Next.REST
        except OSError:
            return Next.END
        if not data:
            return Next.END
        self.rfile.feed(data)
        if self.rfile.is_whole():
            return Next.WORK
        if self.rfile.wants_continue():
            self.wfile.write(CONTINUE)
            self.wfile.flush()
        return Next.REST

    def _say(self, status: str) -> None:
        with contextlib.suppress(OSError):
            Request(self.server, self).simple_response(status)
            self.wfile.flush()

    # -- at the end

    def cut(self) -> None:
        """End it now, whatever a worker is doing with it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self.server.strangers.leave(self.known_as)
        self.server.open_connections.discard(self)
        super().close()
