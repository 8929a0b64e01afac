"""From the parts of a message to the bytes that are served, and how many they are.

Each part stands on a line of its own: a newline is added where the text lacks one, and an empty part
shows nothing. `measure` and `render` are two views of this rule; a message that stands in a long
object is cut into `Segment`s, so that reading it holds one piece in memory and begins anywhere.

Pure: bytes in, bytes out.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from agents9core.chat.jsonstring import redacted, redactions, safe_cut, text_of, unescape, utf8
from agents9core.chat.markdown import Marks, forged_in, ticks_in
from agents9core.chat.records import COPY, LITERAL, REDACTED, TEXT, Part, find_part, raw_bytes

SEGMENT_BYTES = 64 << 10
"""Bytes of the file that one piece is made of, at most: what a read anywhere may have to decode. With larger
ones malloc gives memory back to the kernel after each, and the next is mostly page faults."""


def render(parts: list[Part]) -> bytes:
    """Return the bytes of a message."""
    out = []
    for part in parts:
        text = _made(part)
        out.append(text)
        if text and not text.endswith(b"\n"):
            out.append(b"\n")
    return b"".join(out)


def _made(part: Part) -> bytes:
    data = part.data
    if isinstance(data, str):
        return data.encode()
    if part.how == REDACTED:
        return redacted(bytes(data))
    return text_of(data).encode() if part.how == TEXT else utf8(bytes(data))


Extent: TypeAlias = tuple[int, int]
"""What is known of a message's text without keeping it: the bytes that `render` gives; and, for the Markdown
file, of prose the lines that begin as a heading does, else the longest run of backticks, of three up."""


def measure(parts: list[Part], is_prose: bool) -> Extent:
    """Return the extent of what `render` gives."""
    size = marks = 0
    for part in parts:
        text = part.data
        if not isinstance(text, str):
            text = text_of(text) if part.how == TEXT else str(_made(part), "utf-8", "replace")
        size += len(text) if text.isascii() else len(text.encode())
        if text and text[-1] != "\n":
            size += 1
        if is_prose:
            if "#" in text:
                marks += forged_in(text)
        elif "`" in text:
            marks = max(marks, ticks_in(text))
    return size, marks


Measure: TypeAlias = Callable[[list[Part], bool], Extent]
"""`measure`, or what does the same."""


class Segment(NamedTuple):
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


def cut(parts: list[Part], data: bytes, is_prose: bool, near: int = 0) -> tuple[list[Segment], Extent, int]:
    """Cut a message, which was read raw, into pieces of *data*, the object it stands in.

    *near*: where the message before ended. Returns the pieces, the message's extent, and where it ends.
    """
    cutter = _Cutter()
    for part in parts:
        source = raw_bytes(part)
        if part.how == LITERAL:
            cutter.add(LITERAL, 0, bytes(source), 0)
        else:
            start = find_part(data, source, near)
            near = start + len(memoryview(source))
            if part.how == REDACTED:
                _cut_redacted(cutter, data, start, near)
            else:
                quote = 1 if part.how == TEXT else 0
                _cut_run(cutter, part.how, data, start + quote, near - quote)
        cutter.end_part()
    return *cutter.result(is_prose), near


def _cut_run(cutter: "_Cutter", how: int, data: bytes, start: int, end: int) -> None:
    for at, length in _runs(data, start, end):
        cutter.add(how, at, make(how, data[at : at + length]), length)


def _cut_redacted(cutter: "_Cutter", data: bytes, start: int, end: int) -> None:
    at = start
    for begin, stop, literal in redactions(data[start:end]):
        _cut_run(cutter, COPY, data, at, start + begin)
        cutter.add(LITERAL, 0, literal, 0)
        at = start + stop
    _cut_run(cutter, COPY, data, at, end)


class _Cutter:
    """Collects the pieces of a message."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._marks = Marks()
        self._size = self._part_start = 0
        self._last = b"\n"

    def add(self, how: int, at: int, made: bytes, length: int) -> None:
        """Add a piece whose bytes are *made*, of *length* bytes of the file."""
        literal = b"" if length else made
        self._segments.append(Segment(self._size, how, at, length, literal, 0, self._last == b"\n"))
        self._marks.feed(made)
        self._size += len(made)
        self._last = made[-1:] or self._last

    def end_part(self) -> None:
        """Add a newline where the part lacks one."""
        if self._size > self._part_start and self._last != b"\n":
            self.add(LITERAL, 0, b"\n", 0)
        self._part_start = self._size

    def result(self, is_prose: bool) -> tuple[list[Segment], Extent]:
        """Return the pieces and the message's extent."""
        before = [0, *accumulate(self._marks.forged)]
        segments = [
            segment._replace(forged=count) for segment, count in zip(self._segments, before, strict=False)
        ]
        return segments, (self._size, before[-1] if is_prose else self._marks.ticks)


def make(how: int, source: bytes) -> bytes:
    """Return what a run of the file shows; for TEXT *source* is without quotes."""
    return unescape(source) if how == TEXT else utf8(source)


def segment_at(segments: list[Segment], offset: int) -> Segment:
    """Return the piece that holds the byte at *offset*."""
    return segments[bisect_right(segments, offset, key=lambda segment: segment.start) - 1]


def _runs(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Part a stretch of *data* into runs of PIECE bytes, at places where a string may be cut."""
    while end - start > SEGMENT_BYTES:
        next_start = safe_cut(data, start + SEGMENT_BYTES, start)
        yield start, next_start - start
        start = next_start
    if end > start:
        yield start, end - start
