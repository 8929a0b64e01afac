"""The snapshots that were taken last, with their open files: a request mostly finds a current one.

A snapshot is current while nothing about its files has moved. A write, a rename, another link and other modes
all move a file's ctime; a file that was removed or replaced has other links. What these do not show, such as
a renamed directory above the file, is noticed at the latest SNAPSHOT_SECONDS after the files were opened.
"""

import threading
import time
import weakref
from collections import OrderedDict
from contextlib import suppress
from typing import Generic, TypeVar

SNAPSHOT_SECONDS = 0.05
"""As long as an answer of the resolver may be used again: what a path leads to is then no older than that."""
_MOST = 16
"""Each has the descriptors of a transcript's files, mostly one."""
_SWEEP_SECONDS = 1.0
"""Who was opened and is not opened any more holds no file open for much longer."""

V = TypeVar("V")


class SnapshotCache(Generic[V]):
    """Snapshots by what was opened. May be used from several threads."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[object, tuple[float, V]] = OrderedDict()
        """Each with its end, by `time.monotonic`; the one that was made last at the end."""
        self._lock = threading.Lock()
        self._is_swept = False

    def expiry(self) -> float:
        """Return until when a snapshot may stand whose files are opened now, by `time.monotonic`."""
        return time.monotonic() + SNAPSHOT_SECONDS

    def get(self, key: object) -> V | None:
        """Return a snapshot that is young enough."""
        found = self._snapshots.get(key)
        return found[1] if found and time.monotonic() < found[0] else None

    def put(self, key: object, snapshot: V, until: float) -> None:
        """Keep a snapshot; *until*: what `until` gave before its files were opened."""
        with self._lock:
            self._snapshots[key] = (until, snapshot)
            self._snapshots.move_to_end(key)
            if len(self._snapshots) > _MOST:
                self._snapshots.popitem(last=False)
            self._sweep_later()

    def _sweep_later(self) -> None:
        if self._snapshots and not self._is_swept:
            timer = threading.Timer(_SWEEP_SECONDS, _sweep, (weakref.ref(self),))
            timer.daemon = True
            with suppress(RuntimeError):  # the system gives no thread now: the next snapshot asks again
                timer.start()
                self._is_swept = True

    def sweep(self) -> None:
        """Release the snapshots that are too old."""
        now = time.monotonic()
        with self._lock:
            for key, (end, _) in list(self._snapshots.items()):
                if end <= now:
                    del self._snapshots[key]
            self._is_swept = False
            self._sweep_later()


def _sweep(of: "weakref.ref[SnapshotCache[V]]") -> None:
    if cached := of():
        cached.sweep()
