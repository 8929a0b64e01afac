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

_Key = tuple[object, ...]


class Inflated:
    """Unnamed files of inflated bytes, the least recently used let go first."""

    def __init__(self) -> None:
        self._files: OrderedDict[_Key, int] = OrderedDict()
        self._making: dict[_Key, threading.Lock] = {}
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, fd: int, stat: FileStat, limit: int) -> Iterator[tuple[int, int]]:
        """Give a descriptor of the first *limit* inflated bytes of a file, and how many there are.

        Who wants another file does not wait meanwhile. Raises as `zst.inflate` does, or OSError.
        """
        own = self._descriptor((stat.identity, stat.size, stat.mtime_ns, limit), fd, limit)
        try:
            yield own, os.fstat(own).st_size
        finally:
            os.close(own)

    def _descriptor(self, key: _Key, fd: int, limit: int) -> int:
        with self._lock:
            if key in self._files:
                return self._used(key)
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._files:
                    return self._used(key)
            try:
                made = inflate(fd, limit)
            finally:
                with self._lock:
                    self._making.pop(key, None)
            with self._lock:
                if self._files.setdefault(key, made) != made:  # made twice: it had failed once
                    os.close(made)
                return self._used(key)

    def _used(self, key: _Key) -> int:
        """Return a descriptor of the caller's own, and let go of what was used least recently."""
        self._files.move_to_end(key)
        own = os.dup(self._files[key])
        while len(self._files) > _KEPT:
            os.close(self._files.popitem(last=False)[1])
        return own
