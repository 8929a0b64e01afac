"""What a connection has received: the bytes of requests, and whether a whole one is there.

    Inbox.feed(bytes) → Framing: head, then a body by its length or in chunks → Inbox.is_whole
    Inbox.readline, read: what a worker parses, which therefore never waits for a client

Pure: it is handed bytes. Source: RFC 9112 sections 2.2, 6 and 7. Whether a request is *right* is said by who
parses it (`request`): what breaks a rule here counts as whole, so that it is answered at once.
"""

import re
from collections.abc import Callable

from davserver.request import CHUNK_SIZE, LINE_BYTES, MAX_TRAILERS

_HEAD_END = re.compile(rb"\n\r?\n")
_FRAMING = re.compile(rb"\n(content-length|transfer-encoding|expect):[ \t]*([^\r\n]*)")
_DIGITS = re.compile(rb"[0-9]{1,18}")
_BETWEEN_BYTES = 64 * 1024
"""What the sizes, extensions and ends of a body's chunks may have."""
_OLD = re.compile(rb"[^\n]* http/1\.0\r?\n")


class Framing:
    """Finds the end of one request in bytes that come bit by bit.

    It wants no more of a body than *body_bytes*, and of a head that has no end *head_bytes* and one.
    """

    def __init__(self, head_bytes: int, body_bytes: int) -> None:
        self.expects = False
        """Whether the client waits for "100 Continue" before it sends the body."""
        self._head_bytes = head_bytes
        self._body_bytes = body_bytes
        self._at = 0
        """How far the bytes are understood."""
        self._left = 0
        """Bytes that a body, or this chunk of one, still has."""
        self._trailers = 0
        self._most = 0
        """Bytes that head, chunks and what stands between them may have; it is not known before the head."""
        self._step: Callable[[bytes | bytearray], bool] = self._find_head

    def is_whole(self, data: bytes | bytearray) -> bool:
        """Tell whether *data*, all that came so far, has the whole request."""
        while self._step(data):
            if self._step == self._end:
                return True
        return False

    def _end(self, _data: bytes | bytearray) -> bool:
        return True

    def _go(self, step: Callable[[bytes | bytearray], bool]) -> bool:
        self._step = step
        return True

    def _find_head(self, data: bytes | bytearray) -> bool:
        match = _HEAD_END.search(data, max(0, self._at - 2))
        if match is None:
            self._at = len(data)
            return self._at > self._head_bytes and self._go(self._end)
        self._at = match.end()
        return self._go(self._after(bytes(data[: self._at]).lower()))

    def _after(self, head: bytes) -> Callable[[bytes | bytearray], bool]:
        """Return what follows a head: a body, chunks, or nothing more that is worth waiting for."""
        said = dict(_FRAMING.findall(head))
        is_old = _OLD.match(head.removeprefix(b"\r\n")) is not None
        self.expects = not is_old and said.get(b"expect", b"").strip() == b"100-continue"
        length, coding = said.get(b"content-length", b"0").strip(), said.get(b"transfer-encoding")
        if coding is not None:
            is_chunked = not is_old and b"content-length" not in said and coding.strip() == b"chunked"
            self._left = self._body_bytes
            self._most = self._at + self._body_bytes + _BETWEEN_BYTES
            return self._chunk_size if is_chunked else self._end
        if not _DIGITS.fullmatch(length):
            return self._end
        self._left = min(int(length), self._body_bytes)
        is_refused = self.expects and int(length) > self._body_bytes
        return self._end if is_refused or not self._left else self._body

    def _body(self, data: bytes | bytearray) -> bool:
        return len(data) - self._at >= self._left and self._go(self._end)

    def _line(self, data: bytes | bytearray) -> bytes | None:
        """Return the line at this place; None while it is not all there. One too long is cut."""
        end = data.find(b"\n", self._at, self._at + LINE_BYTES) + 1
        if not end and len(data) - self._at < LINE_BYTES:
            return None
        return bytes(data[self._at : end or self._at + LINE_BYTES])

    def _chunk_size(self, data: bytes | bytearray) -> bool:
        line = self._line(data)
        if line is None:
            return False
        if self._at > self._most:
            return self._go(self._end)
        match = CHUNK_SIZE.fullmatch(line)
        if match is None:
            return self._go(self._end)
        self._at += len(line)
        size = int(match[1], 16)
        if size > self._left:
            return self._go(self._body)
        self._left -= size
        self._chunk_end = self._at + size + 2
        return self._go(self._chunk if size else self._trailer)

    def _chunk(self, data: bytes | bytearray) -> bool:
        if len(data) < self._chunk_end:
            return False
        self._at = self._chunk_end
        return self._go(self._chunk_size)

    def _trailer(self, data: bytes | bytearray) -> bool:
        line = self._line(data)
        if line is None:
            return False
        self._at += len(line)
        self._trailers += 1
        is_more = line.endswith(b"\r\n") and line != b"\r\n" and self._trailers < MAX_TRAILERS
        return self._go(self._trailer if is_more else self._end)


class Inbox:
    """The bytes that came and were not read yet: what cheroot reads a request from, as from a file."""

    def __init__(self, head_bytes: int, body_bytes: int) -> None:
        self.closed = False
        self._limits = head_bytes, body_bytes
        self._framing = Framing(head_bytes, body_bytes)
        self._data = bytearray()
        self._read = 0

    def feed(self, data: bytes) -> None:
        """Take what came."""
        self._data += data

    def is_whole(self) -> bool:
        """Tell whether the next request is all there."""
        return self._framing.is_whole(self._data)

    def is_begun(self) -> bool:
        """Tell whether there is something of it; an empty line is nothing (section 2.2)."""
        return bytes(self._data[:3]) not in (b"", b"\r", b"\r\n")

    def wants_continue(self) -> bool:
        """Tell, once, whether the client is to be told to go on."""
        expects, self._framing.expects = self._framing.expects, False
        return expects

    def begin_next(self) -> None:
        """Forget the request that was read."""
        del self._data[: self._read]
        self._read = 0
        self._framing = Framing(*self._limits)

    def read(self, size: int) -> bytes:
        """Return *size* bytes, fewer where there are no more."""
        data = bytes(self._data[self._read : self._read + size])
        self._read += len(data)
        return data

    def readline(self, size: int = -1) -> bytes:
        """Return a line with its end, what there is of one, or *size* bytes of it."""
        end = self._data.find(b"\n", self._read) + 1 or len(self._data)
        return self.read(min(end - self._read, size) if size >= 0 else end - self._read)

    def has_data(self) -> bool:
        """Tell whether something is left to read."""
        return self._read < len(self._data)

    def close(self) -> None:
        """Take no more, and let go of what is here."""
        self.closed = True
        self._data.clear()
