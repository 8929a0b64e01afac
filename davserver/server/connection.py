"""One client's connection: who it is, what came of it, what is still to be sent to it, and what it waits for.

    rests in a handshake   of TLS; each step of it is a turn, 10 s for all of them
    rests for a request    until a whole one is in the inbox; 5 s from its first byte, else 408
    has its turn           the exchange: the application's answer; nothing here ever blocks on the client
    rests in an answer     until the socket takes more, or until there is something to say
    leaves                 when it was told that this is all: what still comes is read away

One of the modules of this door that know sockets.
"""

import contextlib
import logging
import select
import socket
import time
from typing import TYPE_CHECKING, Any

from davserver.http.environ import MAX_BODY_BYTES, PEER, PEER_ADMITTED, STRANGER, WAKE, Stranger
from davserver.http.response import Answer, Refusal, text_answer
from davserver.server.exchange import ALWAYS, Exchange, last_words
from davserver.server.inbox import Inbox
from davserver.server.loop import Cause, Next, Rest

if TYPE_CHECKING:
    from davserver.server.http_server import HttpDoor
    from davserver.server.tls import TlsSocket

logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10
"""How long a client may take until it speaks TLS."""
IDLE_SECONDS = 30
"""How long a connection may say nothing between requests, or before the first."""
REQUEST_SECONDS = 5
"""How long a request may take to arrive, from its first byte; then it is 408."""
STALL_SECONDS = 600
"""How long a client may take nothing of an answer: a pager that is left alone for less loses no byte."""
LEAVE_SECONDS = 2
"""How long what a client still says is read away; to close before could undo the answer (RFC 9112, 9.6)."""
MAX_HEADER_BYTES = 65536
_RECEIVE_BYTES = 65536

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


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


class Connection:
    """A client's connection. Who it is does not change, so it is asked once."""

    def __init__(self, door: "HttpDoor", sock: socket.socket, bound_to: tuple[str, int]) -> None:
        """Take an accepted socket. Raises ConnectionError where its client has left already."""
        self._door = door
        self._fd = sock.fileno()
        self._socket: socket.socket | TlsSocket = sock
        self._tls: TlsSocket | None = None
        admitted = door.peers.admits(sock)
        stranger = None if admitted else Stranger(door.peers.name_of(sock), self._is_there)
        self._known_as = (stranger.name or "nobody") if stranger else ""
        sock.settimeout(0)
        if door.tls is not None:
            self._socket = self._tls = door.tls.over(sock)
        self._is_counted = not admitted and door.strangers.enter(self._known_as)
        self.is_one_too_many = not admitted and not self._is_counted
        self._outbox = Outbox(self._socket)
        is_heard = admitted or door.hears_strangers
        self._inbox = Inbox(MAX_HEADER_BYTES, (MAX_BODY_BYTES + 1) * is_heard)
        self._given: dict[str, Any] = {
            **ALWAYS,
            "SERVER_NAME": bound_to[0],
            "SERVER_PORT": str(bound_to[1]),
            "wsgi.url_scheme": door.scheme,
            PEER_ADMITTED: admitted,
            PEER: self._known_as,
            STRANGER: stranger,
            WAKE: self._wake,
        }
        self._handshake = select.EPOLLIN if self._tls else 0
        """What the handshake waits for; 0 where there is none, or none any more."""
        self._accepted_at = time.monotonic()
        self._begun_at: float | None = None
        """Since when a part of a request is here."""
        self._is_leaving = False
        """Whether no more requests of it are answered."""
        self._left_at: float | None = None
        """Since when it has been told so, and everything else."""
        self.is_woken = False
        self._exchange: Exchange | None = None
        """The request that is not answered to its end."""
        door.connections.add(self)

    # -- its turn

    @property
    def goes_on(self) -> bool:
        return self._exchange is not None

    def work(self) -> bool:
        """Answer the next request, or go on; tell whether the connection stays."""
        try:
            if self._tls is not None and self._handshake:
                self._handshake = self._tls.shake()
                return True
            return self._say_goodbye() if self._is_leaving else self._answer()
        except ConnectionError as exc:
            logger.debug("a connection broke: %s", exc)
            return False

    def _answer(self) -> bool:
        exchange = self._exchange
        if exchange is None:
            try:
                received = self._inbox.take()
            except Refusal as exc:
                return self._refuse(exc.answer)
            self._begun_at = None
            exchange = self._exchange = Exchange(received, self._door.app, self._given, self._outbox)
        try:
            if not exchange.go_on():
                return True
        except ConnectionError:
            raise
        except Exception:
            logger.exception("an answer failed")
            return not exchange.is_begun and self._refuse(text_answer(500, "500 Internal Server Error"))
        self._let_go()
        return exchange.keeps or self._say_goodbye()

    def _let_go(self) -> None:
        """Let go of the answer, finished or not."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.close()

    def _refuse(self, answer: Answer) -> bool:
        """Give the last answer. Returns True and raises as `_say_goodbye` does."""
        self._let_go()
        self._outbox.write(last_words(answer))
        return self._say_goodbye()

    def _say_goodbye(self) -> bool:
        """Let the client know, once it takes it, that this is all. Raises ConnectionError.

        Returns True: the connection stays, to read away what still comes.
        """
        self._is_leaving = True
        if self._outbox.flush() and (self._tls is None or self._tls.say_goodbye()):
            self._left_at = time.monotonic()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
        return True

    def _wake(self) -> None:
        """End the pause of its answer, or the next one; see `environ.WAKE`."""
        self._door.loop.wake(self)

    def _is_there(self) -> bool:
        """Tell whether the client has not closed its end."""
        looks = select.poll()
        looks.register(self._socket, select.POLLRDHUP)  # and what is always told: POLLHUP, POLLERR
        return not looks.poll(0)

    # -- its rest

    def fileno(self) -> int:
        return self._fd

    @property
    def is_sending(self) -> bool:
        """Whether an answer is on its way that does not wait for something to say."""
        if self._exchange is not None:
            return self._exchange.pause is None
        return self._is_leaving and self._left_at is None

    def rest(self) -> Rest | None:
        if self._exchange is not None:
            return self._rest_in_answer(self._exchange)
        if self._handshake:
            return Rest(self._handshake, self._accepted_at + HANDSHAKE_SECONDS)
        if self._left_at is not None:
            return Rest(select.EPOLLIN, self._left_at + LEAVE_SECONDS)
        if self._is_leaving:
            return Rest(select.EPOLLOUT, time.monotonic() + STALL_SECONDS)
        if self._inbox.is_whole():
            return None
        return self._rest_in_request()

    def _rest_in_request(self) -> Rest:
        now = time.monotonic()
        if not self._inbox.is_begun():
            return Rest(select.EPOLLIN, now + IDLE_SECONDS)
        if self._begun_at is None:
            self._begun_at = now
        if self._inbox.wants_continue():
            self._outbox.write(CONTINUE)
            with contextlib.suppress(ConnectionError):
                self._outbox.flush()
        return Rest(select.EPOLLIN, self._begun_at + REQUEST_SECONDS)

    def _rest_in_answer(self, exchange: Exchange) -> Rest | None:
        if exchange.pause is not None:
            return Rest(select.EPOLLRDHUP, time.monotonic() + exchange.pause.seconds, wakes=True)
        if self._outbox.is_empty:
            return None
        return Rest(select.EPOLLOUT, time.monotonic() + STALL_SECONDS)

    def roused(self, cause: Cause) -> Next:
        if self._exchange is not None and self._exchange.pause is not None:
            return Next.END if cause is Cause.EVENT else Next.WORK
        if self._handshake or self.is_sending:
            return Next.WORK if cause is Cause.EVENT else Next.END
        if cause is Cause.EVENT:
            return self._receive()
        if self._inbox.is_begun() and not self._is_leaving:
            with contextlib.suppress(ConnectionError):
                self._refuse(text_answer(408, "408 Request Timeout"))
                return Next.REST
        return Next.END

    def _receive(self) -> Next:
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return Next.REST
        except OSError:
            return Next.END
        if not data:
            return Next.END
        if self._left_at is not None:
            return Next.REST
        self._inbox.feed(data)
        return Next.WORK if self._inbox.is_whole() else Next.REST

    # -- its end

    def cut(self) -> None:
        """End it now, whatever a thread is doing with it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Close it, and what its answer holds."""
        try:
            self._let_go()
        finally:
            self._close()

    def _close(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._door.strangers.leave(self._known_as)
        self._door.connections.discard(self)
        self._inbox.close()
        self._socket.close()
