"""Compressed files that a transcript begins with, inflated once and kept while they are in use."""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from agents9core.statx import FileStat
from agents9core.zst import inflate

_KEPT = 16
"""Unnamed files that are kept; each holds a descriptor and the inflated bytes on disk."""


class Inflated:
    """Unnamed files of inflated bytes, the least recently used let go first."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, fd: int, stat: FileStat, limit: int) -> Iterator[tuple[int, int]]:
        """Give a descriptor of the first *limit* inflated bytes of a file, and how many there are.

        Raises as `zst.inflate` does.
        """
        key = (stat.identity, stat.size, stat.mtime_ns, limit)
        with self._lock:
            if key not in self._files:
                self._files[key] = inflate(fd, limit)
            self._files.move_to_end(key)
            own = os.dup(self._files[key])
            while len(self._files) > _KEPT:
                os.close(self._files.popitem(last=False)[1])
        try:
            yield own, os.fstat(own).st_size
        finally:
            os.close(own)
