"""Compressed transcripts that grow (Zstandard, RFC 8878): whole frames, inflated as they come.

dsh writes a frame a batch and never changes one. What is inflated lies in an unnamed file, so that each frame
is inflated once; a frame that is not whole yet waits, and its bytes are not read again.
"""

import os
import threading
from collections import OrderedDict
from typing import Any

from agents9core.files.root import Descriptor
from agents9core.files.statx import FileStat
from agents9core.files.zstd import LARGEST, WINDOW, unnamed_file, write_all

_KEPT = 16
BUDGET_BYTES = 1 << 30
"""Inflated bytes on disk; beyond it only the file that is in use stays."""
_CHUNK = 1 << 18
_BITE = 1 << 10
"""Compressed bytes that are inflated at once: what they may become, 32 MiB at most, is held in memory."""
_EDGE = 64


class _Growing:
    """One compressed file, and what is inflated of it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held = Descriptor(unnamed_file())
        self.size = 0
        """Inflated bytes of whole frames."""
        self._written = 0
        self._fed = 0
        self._head = self._tail = b""
        self._frame: Any = None
        self._last = b"\n"
        self._is_damaged = False

    def is_of(self, fd: int, stat: FileStat) -> bool:
        """Whether the file still begins with what was inflated. Raises OSError."""
        if stat.size < self._fed:
            return False
        size = len(self._head)
        return os.pread(fd, size, 0) == self._head and os.pread(fd, size, self._fed - size) == self._tail

    def feed(self, fd: int, end: int) -> None:
        """Inflate what is new up to *end*; nothing from a damaged frame on, or beyond LARGEST.

        Raises OSError, Unavailable.
        """
        while self._fed < end and not self._is_damaged:
            data = os.pread(fd, min(_CHUNK, end - self._fed), self._fed)
            if not data:
                return
            self._fed += len(data)
            self._head += data[: _EDGE - len(self._head)]
            self._tail = (self._tail + data[-_EDGE:])[-len(self._head) :]
            for at in range(0, len(data), _BITE):
                self._inflate(data[at : at + _BITE])

    def _inflate(self, data: bytes) -> None:
        import zstandard

        try:
            while data and not self._is_damaged:
                if self._frame is None:
                    self._frame = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
                self._take(self._frame.decompress(data))
                if not self._frame.eof:
                    return
                data, self._frame = self._frame.unused_data, None
                if self._last != b"\n":  # the last record of a frame is whole without one
                    self._take(b"\n")
                if not self._is_damaged:
                    self.size = self._written
        except zstandard.ZstdError:
            self._is_damaged = True

    def _take(self, data: bytes) -> None:
        if self._written + len(data) > LARGEST:
            self._is_damaged = True
            return
        write_all(self.held.fd, data)
        self._written += len(data)
        self._last = data[-1:] or self._last


class Frames:
    """The compressed files that were read last, the least recently used let go first."""

    def __init__(self) -> None:
        self._files: OrderedDict[object, _Growing] = OrderedDict()
        self._lock = threading.Lock()

    def hold(self, fd: int, stat: FileStat) -> tuple[Descriptor, int]:
        """Return a file of the whole frames of the open one, and how many bytes of it count.

        Raises OSError, or Unavailable.
        """
        growing = self._known(stat)
        with growing.lock:
            if not growing.is_of(fd, stat):
                growing = self._known(stat, replaced=growing)
            try:
                growing.feed(fd, stat.size)
            except BaseException:
                with self._lock:
                    self._files.pop(stat.identity, None)  # half a frame is lost: begin again next time
                raise
            return growing.held, growing.size

    def _known(self, stat: FileStat, replaced: _Growing | None = None) -> _Growing:
        with self._lock:
            known = self._files.get(stat.identity)
            if known is None or known is replaced:
                known = self._files[stat.identity] = _Growing()
            self._files.move_to_end(stat.identity)
            while len(self._files) > _KEPT or (len(self._files) > 1 and self._size() > BUDGET_BYTES):
                self._files.popitem(last=False)
            return known

    def _size(self) -> int:
        return sum(growing.size for growing in self._files.values())
