"""From the parts of a message to the bytes that are served, and how many they are.

Each part stands on a line of its own: a newline is added where the text lacks one, and an empty part
shows nothing. `measure` and `render` are two views of the same rule; a message that stands in a long
object is cut into `Piece`s, so that reading it holds one piece in memory and begins anywhere.

Pure: bytes in, bytes out.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Raw

from agents9core.jsontext import safe_cut, text_of, unescape, utf8
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


def measure(parts: list[Part]) -> int:
    """Return how many bytes `render` gives."""
    size = 0
    for how, data in parts:
        length, ended = _MEASURE[how](data)
        size += length if ended or not length else length + 1
    return size


def _made_text(data: bytes | Raw) -> bytes:
    return text_of(data).encode()


def _made_copy(data: bytes | Raw) -> bytes:
    return utf8(bytes(data))


_MAKE: dict[int, Callable[[bytes | Raw], bytes]] = {LITERAL: bytes, COPY: _made_copy, TEXT: _made_text}


def _text_size(data: bytes | Raw) -> tuple[int, bool]:
    text = text_of(data)
    return (len(text) if text.isascii() else len(text.encode())), text.endswith("\n")


def _copy_size(data: bytes | Raw) -> tuple[int, bool]:
    return len(_made_copy(data)), False


def _literal_size(data: bytes | Raw) -> tuple[int, bool]:
    literal = bytes(data)
    return len(literal), literal.endswith(b"\n")


_MEASURE: dict[int, Callable[[bytes | Raw], tuple[int, bool]]] = {
    LITERAL: _literal_size,
    COPY: _copy_size,
    TEXT: _text_size,
}


class Piece(NamedTuple):
    """A run of a message that is made from one run of the file."""

    start: int
    """Where its bytes begin in the message."""
    how: int
    at: int
    """Where its source begins in the object; 0 for LITERAL."""
    length: int
    literal: bytes = b""


def cut(parts: list[Part], data: bytes, near: int = 0) -> tuple[list[Piece], int, int]:
    """Cut a message into pieces of *data*, the object it stands in.

    *near*: where the message before ended. Returns the pieces, the message's size, and where it ends.
    """
    pieces: list[Piece] = []
    size = 0
    for part in parts:
        begin = size
        last = b""
        if part.how == LITERAL:
            last = bytes(part.data)
            pieces.append(Piece(size, LITERAL, 0, 0, last))
            size += len(last)
        else:
            start = place(data, part.data, near)
            near = start + len(memoryview(part.data))
            quote = 1 if part.how == TEXT else 0
            for at, length in _runs(data, start + quote, near - quote):
                made = make(part.how, data[at : at + length])
                pieces.append(Piece(size, part.how, at, length))
                size += len(made)
                last = made or last
        if size > begin and not last.endswith(b"\n"):
            pieces.append(Piece(size, LITERAL, 0, 0, b"\n"))
            size += 1
    return pieces, size, near


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
