"""One request and the head of its response: cheroot's HTTPRequest, filled from our framing.

`parse_request` takes a request that is whole already; `send_headers` writes the head and settles how the body
ends. Pure of sockets. Source: RFC 9112 sections 6.3 and 9.3. The security headers come from here, since they
belong on every response, also where no application is asked.
"""

import io
import time
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from cheroot.server import HTTPRequest

from davserver.http.dates import http_date
from davserver.http.response import PRIVATE, STATUS_LINES, Response
from davserver.server.framing import RequestBuffer

_NO_BODY = (b"1", b"204", b"304")
_COMMON = b"".join(f"{name}: {value}\r\n".encode() for name, value in PRIVATE)


class Request(HTTPRequest):
    """A request of a connection, and its response."""

    status: bytes  # type: ignore[assignment]  # its stub has what it is before it is set

    def parse_request(self) -> None:
        """Take the next request from the connection's buffer. Raises HTTPError, EOFError: see its `take`."""
        buffer: RequestBuffer = self.conn.rfile
        head, body, is_cut = buffer.take()
        self.method, self.uri = head.method, head.target
        path, _, self.qs = head.target.partition(b"?")
        self.path = unquote_to_bytes(path)
        self.request_protocol, self.response_protocol = head.version.encode(), head.version
        self.inheaders = head.fields
        self.chunked_read = head.is_chunked
        self.close_connection = not head.keeps or is_cut or not self.conn.is_heard
        self.rfile = io.BytesIO(body)
        self.ready = True

    @property
    def has_body(self) -> bool:
        """Whether a response of this status has a body."""
        return self.method != b"HEAD" and not self.status.startswith(_NO_BODY)

    def send_headers(self) -> None:
        """Write the status line and the headers, and settle how the body ends.

        Unlike cheroot's it names no server, keeps a connection after a 413 whose request was read to its
        end, and raises ValueError for a header that holds the end of a line.
        """
        is_sized = any(name.lower() == b"content-length" for name, _ in self.outheaders)
        if self.has_body and not is_sized:
            if self.response_protocol == "HTTP/1.1":
                self.chunked_write = True
                self.outheaders.append((b"Transfer-Encoding", b"chunked"))
            else:
                self.close_connection = True
        if self.close_connection:
            self.outheaders.append((b"Connection", b"close"))
        elif self.response_protocol == "HTTP/1.0":
            self.outheaders.append((b"Connection", b"keep-alive"))
        self.conn.wfile.write(_head(self.status, self.outheaders))


def _head(status: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a response. Raises ValueError where a value would end its line."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        raise ValueError("a header holds the end of a line")
    date = http_date(int(time.time())).encode()
    return b"HTTP/1.1 %b\r\n%bDate: %b\r\n%b\r\n" % (status, lines, date, _COMMON)


def final_response(answer: Response) -> bytes:
    """Return a response that no application gave, and after which the connection ends."""
    headers = [(name.encode(), value.encode()) for name, value in answer.headers]
    head = _head(STATUS_LINES[answer.status].encode(), [*headers, (b"Connection", b"close")])
    return head + b"".join(answer.body)
