"""Framing: the bytes that a connection has received, and whether a whole request is there.

    feed(bytes) → a head (`request_head`), then a body by its length or in chunks → is_whole → take

What breaks a rule is whole where it breaks it, so that it is answered at once: `take` raises what it is
answered with. Pure: it is handed bytes. Source: RFC 9112 sections 2.2, 6 and 7.
"""

import re
from typing import NamedTuple

from davserver.http.response import HTTPError
from davserver.server.request_head import RequestHead, parse_head

_HEAD_END = re.compile(rb"\n\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?\r\n")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n")
LINE_BYTES = 8192
MAX_LINES = 256
"""Of a head. One of 16,000 lines would hold up everybody for as long as hundreds of requests take."""
MAX_TRAILERS = 64
_BETWEEN_BYTES = 16 * 1024
"""What the sizes, extensions and ends of a body's chunks may have: of 3,000 chunks at most, likewise."""


class Received(NamedTuple):
    """A whole request."""

    head: RequestHead
    body: bytes
    is_cut: bool
    """Whether the body has more than was taken; then nothing that follows can be read."""


class RequestBuffer:
    """Takes the bytes of requests, of a head at most *head_bytes* and of a body *body_bytes*.

    0 for the body takes none, and waits for none.
    """

    def __init__(self, head_bytes: int, body_bytes: int) -> None:
        self._head_bytes = head_bytes
        self._body_bytes = body_bytes
        self._data = bytearray()
        self._begin()

    def _begin(self) -> None:
        self._at = 0
        """How far the bytes are understood."""
        self._head: RequestHead | None = None
        self._chunks: Chunks | None = None
        self._outcome: Received | HTTPError | None = None

    def feed(self, data: bytes) -> None:
        """Take what came."""
        self._data += data

    def is_begun(self) -> bool:
        """Return whether there is something of a request; an empty line is nothing (section 2.2)."""
        return bytes(self._data[:3]) not in (b"", b"\r", b"\r\n")

    def is_whole(self) -> bool:
        """Return whether the next request is all there, or can be refused."""
        if self._outcome is None:
            try:
                self._outcome = self._next()
            except HTTPError as exc:
                self._outcome = exc
        return self._outcome is not None

    def wants_continue(self) -> bool:
        """Tell, once, whether the client is to be told to go on."""
        if self._head is None or not self._head.expects:
            return False
        self._head = self._head._replace(expects=False)
        return True

    def take(self) -> Received:
        """Return the request that is whole, and go on to the next one.

        Raises HTTPError, after which there is no next one; EOFError where it is not whole.
        """
        outcome = self._outcome
        if outcome is None:
            raise EOFError("the request is not whole")
        if isinstance(outcome, HTTPError):
            raise outcome
        del self._data[: self._at]
        self._begin()
        return outcome

    @property
    def target(self) -> bytes:
        """The target of the next request; b"" while that is not known."""
        return self._head.target if self._head else b""

    def close(self) -> None:
        """Release what is here."""
        self._data.clear()
        self._begin()

    def _next(self) -> Received | None:
        head = self._head = self._head or self._find_head()
        if head is None:
            return None
        if head.is_chunked:
            return self._chunked(head)
        return self._sized(head)

    def _find_head(self) -> RequestHead | None:
        match = _HEAD_END.search(self._data, max(0, self._at - 2))
        self._at = match.end() if match else len(self._data)
        if self._at > self._head_bytes:
            is_target = b"\n" not in self._data[2 : self._head_bytes]
            raise HTTPError(414 if is_target else 413, "The head of the request is too long")
        if self._data.count(b"\n", 0, self._at) > MAX_LINES:
            raise HTTPError(431, "The head of the request has too many lines")
        return parse_head(bytes(self._data[: self._at])) if match else None

    def _sized(self, head: RequestHead) -> Received | None:
        is_cut = head.length > self._body_bytes
        wanted = min(head.length, self._body_bytes)
        if is_cut and head.expects:
            wanted = 0  # it is not called for, and need not come
        if len(self._data) - self._at < wanted:
            return None
        body = bytes(self._data[self._at : self._at + wanted])
        self._at += wanted
        return Received(head, body, is_cut)

    def _chunked(self, head: RequestHead) -> Received | None:
        chunks = self._chunks = self._chunks or Chunks(self._data, self._at, self._body_bytes)
        if not chunks.are_whole():
            return None
        self._at = chunks.at
        return Received(head, bytes(chunks.body), chunks.is_cut)


class Chunks:
    """Takes a chunked body from the bytes that begin at *at* of *data*, which grows."""

    def __init__(self, data: bytearray, at: int, body_bytes: int) -> None:
        self.at = at
        self.body = bytearray()
        self.is_cut = False
        self._data = data
        self._left = body_bytes
        self._between = _BETWEEN_BYTES
        self._size: int | None = None
        """Of the chunk that comes; None before a line that says one."""
        self._trailers = 0

    def are_whole(self) -> bool:
        """Go on; tell whether they are all there, or as many as are wanted. Raises HTTPError."""
        while not self.is_cut:
            if self._size is None:
                if not self._take_size():
                    return False
            elif self._size == 0:
                line = self._line()
                if line is None:
                    return False
                if self._is_last(line):
                    return True
            elif not self._take_chunk(self._size):
                return False
        return True

    def _line(self) -> bytes | None:
        """Return the line at this place, and go on behind it; None while it is not all there."""
        end = self._data.find(b"\n", self.at, self.at + LINE_BYTES) + 1
        if not end:
            if len(self._data) - self.at >= LINE_BYTES:
                raise HTTPError(400, "Malformed chunk")
            return None
        line = bytes(self._data[self.at : end])
        self.at = end
        return line

    def _take_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        self._between -= len(line) + 2
        if self._between < 0:
            raise HTTPError(413, "There is too much between the chunks")
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise HTTPError(400, "Malformed chunk size")
        self._size = int(match[1], 16)
        return True

    def _take_chunk(self, size: int) -> bool:
        if size > self._left:
            return self._take_rest()
        end = self.at + size
        if len(self._data) < end + 2:
            return False
        if self._data[end : end + 2] != b"\r\n":
            raise HTTPError(400, "Malformed chunk")
        self.body += self._data[self.at : end]
        self._left -= size
        self.at, self._size = end + 2, None
        return True

    def _take_rest(self) -> bool:
        """Take of a body that is too long as much as may be."""
        end = self.at + self._left
        if len(self._data) < end:
            return False
        self.body += self._data[self.at : end]
        self.is_cut = True
        return True

    def _is_last(self, line: bytes) -> bool:
        """Return whether a line behind the last chunk ends the body; else it is a trailer, and not kept."""
        if line == b"\r\n":
            return True
        self._trailers += 1
        if not _TRAILER.fullmatch(line):
            raise HTTPError(400, "Malformed trailer")
        if self._trailers >= MAX_TRAILERS:
            raise HTTPError(400, "There are too many trailers")
        return False
