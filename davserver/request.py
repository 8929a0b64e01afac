"""cheroot's request, stricter where HTTP wants it and cheaper where it is asked most.

Source: RFC 9112. What cheroot 11.1 does otherwise: the last of two Content-Lengths wins, Content-Length
beside Transfer-Encoding and signs in numbers pass, folded lines and blanks before a colon pass, a bad
IPv6 target is a traceback, a HEAD without a length ends the connection, a chunked body that nobody reads
becomes the next request, `Server` names the version. And an answer need not be sent in one go: while it
waits, for its client or for something to say, the connection keeps the request and the worker is free.
"""

import re
import time
from typing import TYPE_CHECKING, Any

from cheroot import errors
from cheroot.server import HTTPRequest

from davserver.answer import PRIVATE, TEXT
from davserver.dates import http_date

if TYPE_CHECKING:
    from davserver.gateway import Gateway

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ONLY_ONCE = {b"Host", b"Content-Length", b"Transfer-Encoding"}
_DIGITS = re.compile(rb"[0-9]{1,18}")
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r\n", re.DOTALL)
LINE_BYTES = 8192
MAX_TRAILERS = 64
_COMMON = b"".join(f"{name}: {value}\r\n".encode() for name, value in PRIVATE)


class Malformed(ValueError):
    """The message breaks a rule of RFC 9112; ValueError is what cheroot answers with 400."""


def read_headers(rfile: Any, headers: dict[bytes, bytes]) -> dict[bytes, bytes]:  # noqa: ANN401
    """Read the header lines into *headers*: repeated ones are one list. Raises Malformed."""
    while (line := rfile.readline(rfile.maxlen + 1)) != b"\r\n":
        name, colon, value = line.partition(b":")
        if not line.endswith(b"\r\n") or not colon or not _TOKEN.fullmatch(name):
            raise Malformed("Malformed header line")
        name, value = name.title(), value.strip()
        if b"_" in name:
            continue  # WSGI cannot tell it from one with a dash
        if name == b"Expect":
            continue  # `connection` has answered it, and cheroot would once more
        if b"\0" in value or b"\r" in value:
            raise Malformed("Malformed header value")
        if name in headers:
            if name in _ONLY_ONCE:
                raise Malformed("A header that may come once came twice")
            value = headers[name] + b", " + value
        headers[name] = value
    _check_framing(headers)
    return headers


def _check_framing(headers: dict[bytes, bytes]) -> None:
    """See that it is plain where the body ends (section 6.3). Raises Malformed."""
    length = headers.get(b"Content-Length")
    if length is None:
        return
    if b"Transfer-Encoding" in headers or not _DIGITS.fullmatch(length):
        raise Malformed("Malformed Content-Length")


def read_chunked(rfile: Any, limit: int) -> tuple[bytes, bool]:  # noqa: ANN401
    """Return a chunked body and True, or the first *limit* bytes of a longer one and False.

    Raises Malformed (section 7.1).
    """
    body = b""
    while True:
        match = CHUNK_SIZE.fullmatch(rfile.readline(LINE_BYTES))
        if match is None:
            raise Malformed("Malformed chunk size")
        size = int(match[1], 16)
        if size == 0:
            return body, _skip_trailers(rfile)
        if len(body) + size > limit:
            return body + rfile.read(limit - len(body)), False
        body += rfile.read(size)
        if rfile.read(2) != b"\r\n":
            raise Malformed("Malformed chunk")


def _skip_trailers(rfile: Any) -> bool:  # noqa: ANN401
    """Read the trailers away; False if they are too many to go on."""
    for _ in range(MAX_TRAILERS):
        line = rfile.readline(LINE_BYTES)
        if line == b"\r\n":
            return True
        if not line.endswith(b"\r\n"):
            raise Malformed("Malformed trailer")
    return False


class Request(HTTPRequest):
    """One request on a connection."""

    header_reader = staticmethod(read_headers)

    def __init__(self, server: Any, conn: Any) -> None:  # noqa: ANN401
        # A server must take absolute-form targets (section 3.2.2), which cheroot gives to proxies only.
        super().__init__(server, conn, proxy_mode=True)
        self._gateway: Gateway | None = None

    def parse_request(self) -> None:
        """Read the head, once: a request that goes on has been read."""
        if not self.ready:
            super().parse_request()

    def respond(self) -> None:
        """Answer, or go on answering; the connection keeps what is not done."""
        gateway = self._gateway = self._gateway or self.server.gateway(self)
        self.conn.request = self
        try:
            is_done = gateway.respond()
        except BaseException:
            self.drop()
            raise
        if is_done:
            self.drop()
            if self.close_connection:
                self.conn.say_goodbye()

    def drop(self) -> None:
        """Let go of the answer, finished or not."""
        self.conn.request = None
        if self._gateway is not None:
            self._gateway.close()

    def read_request_line(self) -> bool:
        try:
            return bool(super().read_request_line())  # type: ignore[no-untyped-call]
        except ValueError:
            self.simple_response("400 Bad Request", "Malformed request target")
            return False

    def read_request_headers(self) -> bool:
        if not super().read_request_headers():  # type: ignore[no-untyped-call]
            return False
        wish = self.inheaders.get(b"Connection", b"").lower()
        tokens = {token.strip() for token in wish.split(b",")}
        old = self.response_protocol == "HTTP/1.0"
        # Chunks are unknown to HTTP/1.0, so where its body ends cannot be told (section 6.1).
        stays = b"keep-alive" in tokens and b"Transfer-Encoding" not in self.inheaders if old else True
        self.close_connection = b"close" in tokens or not stays
        return True

    def read_body(self, limit: int) -> bytes:
        """Return the body. One over *limit* bytes is cut short and ends the connection. Raises Malformed."""
        rfile = self.conn.rfile
        if self.chunked_read:
            body, complete = read_chunked(rfile, limit)
        else:
            length = int(self.inheaders.get(b"Content-Length", 0))
            body, complete = rfile.read(min(length, limit)) if length else b"", length <= limit
        if not complete:
            self.close_connection = True
        return bytes(body)

    def simple_response(self, status: str, msg: str = "") -> None:
        """Answer what never reaches the application; the connection ends with it."""
        self.close_connection = True
        body = f"{msg or status}\n".encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {TEXT}\r\nContent-Length: {len(body)}\r\n"
            f"Connection: close\r\nDate: {http_date(int(time.time()))}\r\n"
        )
        try:
            self.conn.wfile.write(head.encode() + _COMMON + b"\r\n" + body)
        except OSError as exc:
            if exc.args[0] not in errors.socket_errors_to_ignore:
                raise

    def send_headers(self) -> None:
        """Send the status line and the headers, and settle how the body ends (RFC 9112 section 6.3)."""
        status: bytes = self.status  # type: ignore[assignment]  # the gateway has encoded it
        lines = [b"HTTP/1.1 " + status]
        has_length = False
        for name, value in self.outheaders:
            lines.append(name + b": " + value)
            has_length = has_length or name == b"Content-Length"
            if name == b"Connection" and value == b"close":
                self.close_connection = True
        if not has_length and self.method != b"HEAD" and status[:3] != b"304":
            self._delimit(lines)
        if not self.server.can_add_keepalive_connection:
            self.close_connection = True
        self._announce(lines)
        lines.append(b"Date: " + http_date(int(time.time())).encode())
        self.conn.wfile.write(b"\r\n".join(lines) + b"\r\n" + _COMMON + b"\r\n")

    def _delimit(self, lines: list[bytes]) -> None:
        if self.response_protocol == "HTTP/1.1":
            self.chunked_write = True
            lines.append(b"Transfer-Encoding: chunked")
        else:
            self.close_connection = True

    def _announce(self, lines: list[bytes]) -> None:
        if self.close_connection and b"Connection: close" not in lines:
            lines.append(b"Connection: close")
        elif not self.close_connection and self.response_protocol == "HTTP/1.0":
            lines.append(b"Connection: keep-alive")
