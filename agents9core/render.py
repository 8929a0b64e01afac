"""From the parts of a message to the bytes that are served, and how many they are.

Each part stands on a line of its own: a newline is added where the text lacks one, and an empty part
shows nothing. `measure` and `render` are two views of this rule; a message that stands in a long
object is cut into `Piece`s, so that reading it holds one piece in memory and begins anywhere.

Pure: bytes in, bytes out.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

from msgspec import Raw

from agents9core.jsontext import safe_cut, text_of, unescape, utf8
from agents9core.markdown import Marks, forged_in, ticks_in
from agents9core.record import COPY, LITERAL, TEXT, Part, place

PIECE = 512 << 10
"""Bytes of the file that one piece is made of, at most: what a read anywhere may have to decode."""


def render(parts: list[Part]) -> bytes:
    """Return the bytes of a message."""
    out = []
    for part in parts:
        text = _MAKE[part.how](part.data)
        out.append(text)
        if text and not text.endswith(b"\n"):
            out.append(b"\n")
    return b"".join(out)


class Extent(NamedTuple):
    """What is known of a message's text without keeping it."""

    size: int
    """Bytes that `render` gives."""
    forged: int
    """Lines that begin as a heading of the Markdown file does."""
    ticks: int
    """The longest run of backticks, of three and more."""


def measure(parts: list[Part]) -> Extent:
    """Return the extent of what `render` gives."""
    size = forged = ticks = 0
    for how, data in parts:
        text = _TEXT_OF[how](data)
        length = len(text) if text.isascii() else len(text.encode())
        size += length if not length or text.endswith("\n") else length + 1
        if "#" in text:
            forged += forged_in(text)
        if "`" in text:
            ticks = max(ticks, ticks_in(text))
    return Extent(size, forged, ticks)


def _copied_text(data: bytes | Raw) -> str:
    return str(memoryview(data), "utf-8", "replace")


_TEXT_OF: dict[int, Callable[[bytes | Raw], str]] = {
    LITERAL: _copied_text,
    COPY: _copied_text,
    TEXT: text_of,
}


def _made_text(data: bytes | Raw) -> bytes:
    return text_of(data).encode()


def _made_copy(data: bytes | Raw) -> bytes:
    return utf8(bytes(data))


_MAKE: dict[int, Callable[[bytes | Raw], bytes]] = {LITERAL: bytes, COPY: _made_copy, TEXT: _made_text}


class Piece(NamedTuple):
    """A run of a message that is made from one run of the file."""

    start: int
    """Where its bytes begin in the message."""
    how: int
    at: int
    """Where its source begins in the object; 0 for LITERAL."""
    length: int
    literal: bytes = b""
    forged: int = 0
    """Lines that begin as a heading does, in the pieces before."""
    at_line: bool = True
    """Whether its bytes begin a line."""


def cut(parts: list[Part], data: bytes, near: int = 0) -> tuple[list[Piece], Extent, int]:
    """Cut a message into pieces of *data*, the object it stands in.

    *near*: where the message before ended. Returns the pieces, the message's extent, and where it ends.
    """
    cutter = _Cutter()
    for part in parts:
        if part.how == LITERAL:
            cutter.add(LITERAL, 0, bytes(part.data), 0)
        else:
            start = place(data, part.data, near)
            near = start + len(memoryview(part.data))
            quote = 1 if part.how == TEXT else 0
            for at, length in _runs(data, start + quote, near - quote):
                cutter.add(part.how, at, make(part.how, data[at : at + length]), length)
        cutter.end_part()
    return *cutter.result(), near


class _Cutter:
    """Collects the pieces of a message."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._marks = Marks()
        self._size = self._part_start = 0
        self._last = b"\n"

    def add(self, how: int, at: int, made: bytes, length: int) -> None:
        """Add a piece whose bytes are *made*, of *length* bytes of the file."""
        literal = b"" if length else made
        self._pieces.append(Piece(self._size, how, at, length, literal, 0, self._last == b"\n"))
        self._marks.feed(made)
        self._size += len(made)
        self._last = made[-1:] or self._last

    def end_part(self) -> None:
        """Add a newline where the part lacks one."""
        if self._size > self._part_start and self._last != b"\n":
            self.add(LITERAL, 0, b"\n", 0)
        self._part_start = self._size

    def result(self) -> tuple[list[Piece], Extent]:
        """Return the pieces and the message's extent."""
        before = [0, *accumulate(self._marks.forged)]
        pieces = [piece._replace(forged=count) for piece, count in zip(self._pieces, before, strict=False)]
        return pieces, Extent(self._size, before[-1], self._marks.ticks)


def make(how: int, source: bytes) -> bytes:
    """Return what a run of the file shows; for TEXT *source* is without quotes."""
    return unescape(source) if how == TEXT else utf8(source)


def piece_at(pieces: list[Piece], offset: int) -> Piece:
    """Return the piece that holds the byte at *offset*."""
    return pieces[bisect_right(pieces, offset, key=lambda piece: piece.start) - 1]


def _runs(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Part a stretch of *data* into runs of PIECE bytes, at places where a string may be cut."""
    while end - start > PIECE:
        next_start = safe_cut(data, start + PIECE, start)
        yield start, next_start - start
        start = next_start
    if end > start:
        yield start, end - start
