"""Caches with a limit: of what was used last, and of what was found a short time ago."""

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

_MOST = 4096
TTL_SECONDS = 10.0
"""How long the place of a thing serves: thousands may be read in a row."""
_MOST_PLACES = 1 << 14
BUDGET_BYTES = 32 << 20
"""What one cache may take: thousands of usual entries, and none of the unusual ones for long."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class LRU(OrderedDict[Key, Value]):
    """A dictionary with a limit, and with a budget of bytes for the texts in it, which drops what was put in
    longest ago. Nothing else takes anything out. Not for several threads at once."""

    def __init__(self, most: int = _MOST, most_bytes: int = BUDGET_BYTES) -> None:
        super().__init__()
        self._limit = most
        self._most_bytes = most_bytes
        self._sizes: dict[Key, int] = {}
        self.nbytes = 0
        """What the texts in it take, about."""

    def __setitem__(self, key: Key, value: Value) -> None:
        size = size_of(key) + size_of(value)
        self.nbytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._limit or (self.nbytes > self._most_bytes and self):
            oldest = next(iter(self))
            self.nbytes -= self._sizes.pop(oldest)
            del self[oldest]


def size_of(value: object) -> int:
    """Return about how many bytes a value takes, with the texts in it. Pure."""
    if isinstance(value, str | bytes):
        return sys.getsizeof(value)
    if isinstance(value, tuple | list | frozenset | set):
        return 56 + sum(map(size_of, value))
    if isinstance(value, dict):
        return 64 + sum(size_of(key) + size_of(its) for key, its in value.items())
    return 32


class TTLCache(Generic[Key, Value]):
    """Where things were found a short time ago, so that they need not be searched for again. May be used from
    several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: LRU[Key, tuple[float, Value]] = LRU(_MOST_PLACES)

    def put(self, found: Mapping[Key, Value]) -> None:
        """Store what was just found."""
        now = time.monotonic()
        with self._lock:
            for key, place in found.items():
                self._found[key] = (now, place)

    def find(
        self, key: Key, is_there: Callable[[Value], object], seek: Callable[[], Value | None]
    ) -> Value | None:
        """Return where a thing was found a short time ago, if it still *is_there*, else where *seek* finds
        it."""
        with self._lock:
            known = self._found.get(key)
        if known and time.monotonic() - known[0] < TTL_SECONDS and is_there(known[1]):
            return known[1]
        place = seek()
        if place is not None:
            self.put({key: place})
        return place


class Expiring(Generic[Key, Value]):
    """Values that serve for so many seconds, up to so many of them. May be used from several threads."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._values: LRU[Key, tuple[float, Value]] = LRU(most)

    def get(self, key: Key) -> Value | None:
        """Return the value, None where there is none or its time is over."""
        with self._lock:
            until, value = self._values.get(key, (0.0, None))
        return value if time.monotonic() < until else None

    def put(self, key: Key, value: Value) -> None:
        """Let *value* serve from now on."""
        with self._lock:
            self._values[key] = (time.monotonic() + self._seconds, value)
