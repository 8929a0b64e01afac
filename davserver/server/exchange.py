"""One request and its answer: between a connection and the application (PEP 3333).

    go_on ── the outbox is empty? → the next chunk → the outbox
          ── the socket takes no more, its turn is over, or the chunk is a Pause → False: to be gone on with
          ── no more chunks → the end of the body → True

Pure of sockets: an outbox takes the bytes. Source: RFC 9112 sections 6.3 and 9.3. Security headers come from
here, since they belong on every answer, also where no application is asked.
"""

import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import unquote
from wsgiref.types import WSGIApplication

from davserver.http.dates import http_date
from davserver.http.environ import Pause
from davserver.http.response import PRIVATE, STATUS_LINES, Answer
from davserver.server.inbox import Received

TURN_SECONDS = 0.002
"""How long a long answer goes on before others have their turn."""

ALWAYS: dict[str, Any] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
}
"""What every environment has."""
_NO_BODY = ("1", "204", "304")
_COMMON = "".join(f"{name}: {value}\r\n" for name, value in PRIVATE)


class Outbox(Protocol):
    """Where the bytes of answers go."""

    def write(self, data: bytes) -> None:
        """Take *data* behind what is here."""

    def flush(self) -> bool:
        """Send without waiting; tell whether everything is sent. Raises ConnectionError."""


class Exchange:
    """A request that is being answered."""

    def __init__(
        self, received: Received, app: WSGIApplication, given: dict[str, Any], outbox: Outbox
    ) -> None:
        """*given*: what the environment has of the connection, and ALWAYS."""
        head = received.head
        self.pause: Pause | None = None
        """What the answer waits for, where that is not the client."""
        self.keeps = head.keeps and not received.is_cut
        """Whether the connection stays after it."""
        self._head = head
        self._app = app
        self._outbox = outbox
        self._environ = {**head.fields, **given}
        self._environ.update(_asked(received))
        self._response: Iterable[bytes] | None = None
        self._chunks: Iterator[bytes] | None = None
        self._announced: tuple[str, list[tuple[str, str]]] | None = None
        """Status and headers, until they are sent."""
        self._is_head_sent = self._is_chunked = self._is_ended = False
        self._left: int | None = None
        """Bytes of the body that its length promises still."""

    def go_on(self) -> bool:
        """Go on as far as it goes now; tell whether the answer is sent to its end.

        Raises ConnectionError, and what the application raises.
        """
        self.pause = None
        chunks = self._chunks or self._begin()
        turn_ends = time.monotonic() + TURN_SECONDS
        while self._outbox.flush():
            if self._is_ended:
                return True
            if time.monotonic() > turn_ends:
                return False
            chunk = next(chunks, None)
            if isinstance(chunk, Pause):
                self.pause = chunk
                return False
            if chunk is None:
                self._end()
            elif chunk:
                self._write(chunk)
        return False

    def close(self) -> None:
        """Let go of the answer, finished or not."""
        response, self._response = self._response, None
        close: Callable[[], object] | None = getattr(response, "close", None)
        if close is not None:
            close()

    @property
    def is_begun(self) -> bool:
        """Whether the client has been told a status."""
        return self._is_head_sent

    def _begin(self) -> Iterator[bytes]:
        self._response = self._app(self._environ, self._start_response)
        self._chunks = iter(self._response)
        return self._chunks

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: object = None, /
    ) -> Callable[[bytes], object]:
        self._announced = status, headers
        return self._write

    def _write(self, chunk: bytes) -> None:
        self._send_head()
        if self._is_chunked:
            self._outbox.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            return
        if self._left is not None:
            if len(chunk) > self._left:
                raise ValueError("the body is longer than its Content-Length")
            self._left -= len(chunk)
        self._outbox.write(chunk)

    def _end(self) -> None:
        self._send_head()
        self._is_ended = True
        if self._is_chunked:
            self._outbox.write(b"0\r\n\r\n")
        elif self._left:
            raise ValueError("the body is shorter than its Content-Length")

    def _send_head(self) -> None:
        """Send the status line and the headers, once, and settle how the body ends."""
        if self._is_head_sent:
            return
        if self._announced is None:
            raise ValueError("the application has not begun its answer")
        status, headers = self._announced
        said = {name.lower(): value for name, value in headers}
        self.keeps = self.keeps and said.get("connection") != "close"
        own: list[tuple[str, str]] = []
        if self._head.method != "HEAD" and not status.startswith(_NO_BODY):
            if "content-length" in said:
                self._left = int(said["content-length"])
            elif self._head.version == "HTTP/1.1":
                self._is_chunked = True
                own.append(("Transfer-Encoding", "chunked"))
            else:
                self.keeps = False
        if not self.keeps and "connection" not in said:
            own.append(("Connection", "close"))
        elif self.keeps and self._head.version == "HTTP/1.0":
            own.append(("Connection", "keep-alive"))
        self._is_head_sent = True
        self._outbox.write(written(status, [*headers, *own]))


def _asked(received: Received) -> dict[str, Any]:
    """Return what the environment has of the request beside its fields."""
    head = received.head
    path, _, query = head.target.partition("?")
    return {
        "REQUEST_METHOD": head.method,
        "REQUEST_URI": head.target,
        "PATH_INFO": unquote(path, "latin-1"),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": head.version,
        "wsgi.input": io.BytesIO(received.body),
    }


def written(status: str, headers: Sequence[tuple[str, str]]) -> bytes:
    """Return the head of an answer. Raises ValueError where a value would end its line."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        raise ValueError("a header holds the end of a line")
    head = f"HTTP/1.1 {status}\r\n{lines}Date: {http_date(int(time.time()))}\r\n{_COMMON}\r\n"
    return head.encode("latin-1")


def last_words(answer: Answer) -> bytes:
    """Return an answer that no application gave, and after which the connection ends."""
    head = written(STATUS_LINES[answer.status], [*answer.headers, ("Connection", "close")])
    return head + b"".join(answer.body)
