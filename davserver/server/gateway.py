"""Between a request and the application: cheroot's WSGI gateway, which goes on where it stopped.

    go_on ── the outbox is empty? → the next chunk → the outbox
          ── the socket takes no more, the turn is over, or the chunk is a Pause → False: to be gone on with
          ── no more chunks → the end of the body → True

Pure of sockets: an outbox takes the bytes. Source: PEP 3333, RFC 9112 section 7.1.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from cheroot.wsgi import Gateway_10

from davserver.http.environ import Pause

TURN_SECONDS = 0.002
"""How long a long response goes on before others have their turn."""


_ALWAYS: dict[str, Any] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,  # it ends where the body ends, also of one in chunks
}
_WITHOUT_PREFIX = {"CONTENT_LENGTH", "CONTENT_TYPE"}


@lru_cache(maxsize=256)
def wsgi_name(name: bytes) -> str:
    """Return the name of a header as an environment has it."""
    key = name.decode().upper().replace("-", "_")
    return key if key in _WITHOUT_PREFIX else f"HTTP_{key}"


class Gateway(Gateway_10):
    """A request that is being answered, a turn at a time."""

    pause: Pause | None = None
    """What the response waits for, where that is not the client."""
    _response: Iterable[bytes] | None = None
    _chunks: Iterator[bytes] | None = None
    _is_ended = False

    def get_environ(self) -> dict[str, Any]:  # type: ignore[override]  # its stub says None
        """Return the environment, with what the connection knows. cheroot's own takes three times as long."""
        request = self.req
        environ = {wsgi_name(name): value.decode("latin-1") for name, value in request.inheaders.items()}
        environ.update(_ALWAYS)
        environ.update(request.conn.environ)
        environ["REQUEST_METHOD"] = request.method.decode()
        environ["REQUEST_URI"] = request.uri.decode("latin-1")
        environ["PATH_INFO"] = request.path.decode("latin-1")
        environ["QUERY_STRING"] = request.qs.decode("latin-1")
        environ["SERVER_PROTOCOL"] = request.response_protocol
        environ["wsgi.input"] = request.rfile
        return environ

    def start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], None]:
        """Take status and headers; they are sent with the first part of the body."""
        if self.started_response and not exc_info:
            raise RuntimeError("start_response was called twice")
        self.started_response = True
        request = self.req
        request.status = status.encode("latin-1")
        request.outheaders = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        for name, value in headers:
            if name.lower() == "content-length":
                self.remaining_bytes_out = int(value)
        return self.write

    def go_on(self) -> bool:
        """Go on as far as it goes now; tell whether the response is sent to its end.

        Raises ConnectionError, and what the application raises.
        """
        self.pause = None
        chunks = self._chunks or self._begin()
        flush = self.req.conn.wfile.flush
        turn_ends = time.monotonic() + TURN_SECONDS
        while flush():
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
                self.write(chunk)
        return False

    def close(self) -> None:
        """Release the response, finished or not."""
        response, self._response = self._response, None
        close: Callable[[], object] | None = getattr(response, "close", None)
        if close is not None:
            close()

    @property
    def is_begun(self) -> bool:
        """Whether the client has been sent a status."""
        return bool(self.req.sent_headers)

    def write(self, chunk: bytes) -> None:
        """Write a part of the body. Raises ValueError for more than its Content-Length says."""
        left = self.remaining_bytes_out
        if left is not None and len(chunk) > left:
            raise ValueError("the body is longer than its Content-Length")
        super().write(chunk)
        if left is not None:
            self.remaining_bytes_out = left - len(chunk)  # which cheroot does not count down

    def _begin(self) -> Iterator[bytes]:
        self._response = self.req.server.wsgi_app(self.env, self.start_response)
        self._chunks = iter(self._response)
        return self._chunks

    def _end(self) -> None:
        if not self.started_response:
            raise ValueError("the application has not begun its response")
        self._is_ended = True
        if self.remaining_bytes_out and self.req.has_body:
            raise ValueError("the body is shorter than its Content-Length")
        self.req.ensure_headers_sent()
        if self.req.chunked_write:
            self.req.conn.wfile.write(b"0\r\n\r\n")
