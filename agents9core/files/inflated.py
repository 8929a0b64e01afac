"""Compressed files that a transcript begins with, inflated once and shared while they are in use."""

import os
import threading
from collections import OrderedDict

from agents9core.files.root import Descriptor
from agents9core.files.statx import FileStat
from agents9core.files.zstd import inflate

_KEPT = 16
"""Unnamed files that are open; each holds a descriptor and the inflated bytes on disk."""

BUDGET_BYTES = 1 << 30
"""Inflated bytes on disk; beyond it only the file that is in use stays."""

_Key = tuple[object, ...]


class Inflated:
    """Unnamed files of inflated bytes, the least recently used let go first."""

    def __init__(self) -> None:
        self._files: OrderedDict[_Key, Descriptor] = OrderedDict()
        self._making: dict[_Key, threading.Lock] = {}
        self._lock = threading.Lock()

    def open_inflated(self, fd: int, stat: FileStat, limit: int) -> Descriptor:
        """Return the first *limit* inflated bytes of a file, as a file.

        Who wants another file does not wait meanwhile. Raises as `zst.inflate` does, or OSError.
        """
        key = (stat.identity, stat.size, stat.mtime_ns, limit)
        with self._lock:
            if key in self._files:
                return self._used(key)
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._files:
                    return self._used(key)
            try:
                made = Descriptor(inflate(fd, limit))
            finally:
                with self._lock:
                    self._making.pop(key, None)
            with self._lock:
                self._files.setdefault(key, made)  # made twice where it had failed once
                return self._used(key)

    def _used(self, key: _Key) -> Descriptor:
        """Return a file, and let go of what was used least recently."""
        self._files.move_to_end(key)
        while len(self._files) > _KEPT or (len(self._files) > 1 and self._size() > BUDGET_BYTES):
            self._files.popitem(last=False)
        return self._files[key]

    def _size(self) -> int:
        return sum(os.fstat(file.fd).st_size for file in self._files.values())
