"""Whether a file is still the one that was read.

One statx answers nearly always. Where it leaves a doubt, the first and last 64 bytes that were covered are
compared, then a running xxh3 of all of them.
"""

import os
from enum import Enum, auto

import xxhash

from agents9core.files.statx import FileStat

_EDGE = 64
RACY_NS = 20_000_000
"""Two writes within this time may leave the same ctime: the file system's clock ticks every few ms."""
_CHUNK = 1 << 20


class Change(Enum):
    """What a comparison found."""

    SAME = auto()
    GREW = auto()
    REPLACED = auto()
    """Shrunk, born anew, or rewritten in place: another transcript."""


class Fingerprint:
    """What was seen of one file."""

    def __init__(self) -> None:
        self.seen: FileStat | None = None
        self._checked_ns = 0
        self._covered = self._begin = 0
        self._head = self._tail = b""
        self._running = xxhash.xxh3_64()

    def compare(self, fd: int, stat: FileStat) -> Change:
        """Compare the open file with what was covered of it. Raises OSError."""
        seen = self.seen
        if seen is None:
            return Change.GREW
        if stat.identity != seen.identity or stat.size < seen.size:
            return Change.REPLACED
        unmoved = (stat.size, stat.mtime_ns, stat.ctime_ns) == (seen.size, seen.mtime_ns, seen.ctime_ns)
        if unmoved and self._checked_ns - stat.ctime_ns > RACY_NS:
            return Change.SAME
        if not self._edges_are_equal(fd):
            return Change.REPLACED
        if stat.size > seen.size:
            return Change.GREW
        return Change.SAME if unmoved or self._is_equal(fd) else Change.REPLACED

    def begin_at(self, begin: int) -> None:
        """Leave the first *begin* bytes of the file out: they may be rewritten. To be said before
        `update`."""
        self._begin = begin

    def update(self, data: bytes) -> None:
        """Take the next bytes of the file into the fingerprints."""
        counted = data[max(0, self._begin - self._covered) :]
        self._covered += len(data)
        self._running.update(counted)
        self._head += counted[: _EDGE - len(self._head)]
        self._tail = (self._tail + counted[-_EDGE:])[-_EDGE:]

    def accept(self, stat: FileStat, checked_ns: int) -> None:
        """Remember a stat that was not OTHER. *checked_ns*: the clock just before it."""
        self.seen = stat
        self._checked_ns = checked_ns

    def is_conclusive(self, stat: FileStat) -> bool:
        """Whether *stat* is the last one, so long after the last write that an equal one proves SAME."""
        return stat is self.seen and self._checked_ns - stat.ctime_ns > RACY_NS

    def _edges_are_equal(self, fd: int) -> bool:
        """Whether the first and last bytes that were covered still stand."""
        size = len(self._head)
        head = os.pread(fd, size, self._begin)
        return head == self._head and os.pread(fd, size, self._covered - size) == self._tail

    def _is_equal(self, fd: int) -> bool:
        """Whether all covered bytes are what they were."""
        again = xxhash.xxh3_64()
        at = self._begin
        while at < self._covered:
            data = os.pread(fd, min(_CHUNK, self._covered - at), at)
            if not data:
                return False
            again.update(data)
            at += len(data)
        return bool(again.intdigest() == self._running.intdigest())
