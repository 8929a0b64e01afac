"""Compressed transcripts (Zstandard, RFC 8878): a beginning of one, inflated.

codex compresses what has been cold for a week (`.jsonl.zst`, level 3, one frame or several). Only what
another rollout begins with is ever read so, and no more of it than that rollout says. What inflates is loaded
with the first one: most servers meet none.
"""

import os
from collections.abc import Iterator
from typing import IO, cast

from agents9core.errors import Malformed, TooLarge, Unavailable

LARGEST = 4 << 30
"""More inflated bytes than this are refused: a small file can claim any amount."""
_CHUNK = 1 << 20
WINDOW = 1 << 27
"""The largest window that a decoder allocates: what `zstd` itself accepts by default."""


def inflate(fd: int, limit: int) -> int:
    """Inflate up to *limit* bytes of the file open at *fd*; return a descriptor of an unnamed file of them.

    The file has mode 0600, ends with its descriptor, and is shorter than *limit* where the rollout is. Raises
    TooLarge, Malformed (it is not of the type that its name states) or Unavailable (no room, or no unnamed
    files).
    """
    if limit > LARGEST:
        raise TooLarge(f"{limit} inflated bytes of a rollout")
    unnamed = unnamed_file()
    try:
        for chunk in _inflated(fd, limit):
            write_all(unnamed, chunk)
    except BaseException:
        os.close(unnamed)
        raise
    return unnamed


def unnamed_file() -> int:
    """Return a descriptor of a new file that has no name and ends with it. Raises Unavailable."""
    import tempfile

    try:
        return os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable("no temporary file for a compressed rollout") from error


def inflate_line(fd: int, limit: int) -> bytes:
    """Return the first line, without its newline; b"" where there is none within *limit* bytes."""
    data = bytearray()
    for chunk in _inflated(fd, limit):
        data += chunk
        if (end := data.find(b"\n")) >= 0:
            return bytes(data[:end])
    return b""


def inflate_head(fd: int, limit: int) -> bytes:
    """Return up to *limit* bytes of the first frame. Raises Malformed, or Unavailable."""
    return next(_inflated(fd, limit, across=False), b"")


class _Packed:
    """The file at a descriptor, read from its start; the descriptor's own offset stays where it is."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._offset = 0

    def read(self, size: int = _CHUNK) -> bytes:
        data = os.pread(self._fd, size, self._offset)
        self._offset += len(data)
        return data


def _inflated(fd: int, limit: int, across: bool = True) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    reader = decompressor.stream_reader(cast(IO[bytes], _Packed(fd)), read_across_frames=across)
    while limit > 0:
        try:
            chunk = reader.read(min(limit, _CHUNK))
        except zstandard.ZstdError as error:
            raise Malformed("a compressed rollout is damaged") from error
        except OSError as error:
            raise Unavailable("a compressed rollout cannot be read") from error
        if not chunk:
            return
        limit -= len(chunk)
        yield chunk


def write_all(fd: int, data: bytes) -> None:
    """Write all of *data*. Raises Unavailable."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        raise Unavailable("no room for a compressed rollout") from error
