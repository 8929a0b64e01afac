"""The visits that were just made, with their open files: one stands for who looks again at once.

It stands while nothing about its files has moved. A write, a rename, another link and other modes all move a
file's ctime; where the file was removed or replaced, its links. What that cannot show, such as a directory
above it that was renamed, is seen at the latest STANDS_SECONDS after the files were opened.
"""

import threading
import time
import weakref
from collections import OrderedDict
from contextlib import suppress
from typing import Generic, TypeVar

STANDS_SECONDS = 0.05
"""As long as an answer of the resolver may be used again: what a path leads to is then no older than that."""
_MOST = 16
"""Each has the descriptors of a transcript's files, mostly one."""
_SWEEP_SECONDS = 1.0
"""Who was visited and is not visited any more holds no file open for much longer."""

V = TypeVar("V")


class Standing(Generic[V]):
    """Visits by what was visited. May be used from several threads."""

    def __init__(self) -> None:
        self._visits: OrderedDict[object, tuple[float, V]] = OrderedDict()
        """Each with its end, by `time.monotonic`; the one that was made last at the end."""
        self._lock = threading.Lock()
        self._is_swept = False

    def until(self) -> float:
        """Return until when a visit may stand whose files are opened now, by `time.monotonic`."""
        return time.monotonic() + STANDS_SECONDS

    def get(self, key: object) -> V | None:
        """Return a visit that is young enough."""
        found = self._visits.get(key)
        return found[1] if found and time.monotonic() < found[0] else None

    def put(self, key: object, visit: V, until: float) -> None:
        """Keep a visit; *until*: what `until` gave before its files were opened."""
        with self._lock:
            self._visits[key] = (until, visit)
            self._visits.move_to_end(key)
            if len(self._visits) > _MOST:
                self._visits.popitem(last=False)
            self._sweep_later()

    def _sweep_later(self) -> None:
        if self._visits and not self._is_swept:
            timer = threading.Timer(_SWEEP_SECONDS, _sweep, (weakref.ref(self),))
            timer.daemon = True
            with suppress(RuntimeError):  # the system gives no thread now: the next visit asks again
                timer.start()
                self._is_swept = True

    def sweep(self) -> None:
        """Let go of the visits that are too old."""
        now = time.monotonic()
        with self._lock:
            for key, (end, _) in list(self._visits.items()):
                if end <= now:
                    del self._visits[key]
            self._is_swept = False
            self._sweep_later()


def _sweep(of: "weakref.ref[Standing[V]]") -> None:
    if standing := of():
        standing.sweep()
