"""Between a request and the application (PEP 3333): the environment, and the answer a chunk at a time.

respond ── the outbox is empty? → the next chunk → the outbox
        ── the socket takes no more, others wait, or the chunk is a Pause → False: to be gone on with later
        ── no more chunks → the end of the body → True
"""

import io
import sys
import time
from collections.abc import Iterator
from typing import Any

from cheroot import wsgi

from davserver.environ import MAX_BODY_BYTES, PEER, PEER_ADMITTED, STRANGER, WAKE, Pause
from davserver.request import Malformed

TURN_SECONDS = 0.002
"""How long a long answer keeps its worker while others wait for one."""


class Gateway(wsgi.Gateway_10):
    """Hands a request to the application, its body read, and sends what that answers."""

    def __init__(self, req: Any) -> None:  # noqa: ANN401
        super().__init__(req)
        self._response: Any = None
        self._chunks: Iterator[bytes] = iter(())
        self._is_ended = False

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
            "wsgi.url_scheme": "https" if req.server.tls else "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            PEER_ADMITTED: req.conn.admitted,
            PEER: req.conn.known_as,
            STRANGER: req.conn.stranger,
            WAKE: req.conn.wake,
        }
        for name, value in req.inheaders.items():
            environ["HTTP_" + name.decode("latin-1").upper().replace("-", "_")] = value.decode("latin-1")
        return environ

    def respond(self) -> bool:  # type: ignore[override]  # the stub says None
        """Go on with the answer as far as it goes now; tell whether it is sent to its end."""
        conn = self.req.conn
        conn.pause = None
        if self._response is None and not self._begin():
            return True
        turn_ends = time.monotonic() + TURN_SECONDS
        while conn.wfile.flush():
            if self._is_ended:
                return True
            if time.monotonic() > turn_ends and self.req.server.requests.qsize:
                return False  # others wait
            chunk = next(self._chunks, None)
            if isinstance(chunk, Pause):
                conn.pause = chunk
                return False
            if chunk is None:
                self._end()
            elif chunk:
                self.write(chunk)
        return False

    def _begin(self) -> bool:
        """Ask the application; False where the request was no request."""
        body = b""
        if self.req.conn.is_heard:
            try:
                body = self.req.read_body(MAX_BODY_BYTES + 1)
            except Malformed as exc:
                self.req.sent_headers = True
                self.req.simple_response("400 Bad Request", str(exc))
                return False
        self.env["wsgi.input"] = io.BytesIO(body)
        self._response = self.req.server.wsgi_app(self.env, self.start_response)
        self._chunks = iter(self._response)
        return True

    def _end(self) -> None:
        self._is_ended = True
        self.req.ensure_headers_sent()
        if self.req.chunked_write:
            self.req.conn.wfile.write(b"0\r\n\r\n")

    def close(self) -> None:
        """Let go of the response."""
        response, self._response = self._response, None
        if hasattr(response, "close"):
            response.close()
