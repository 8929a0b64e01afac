"""Wakes the followers of a chat when it may have moved: one watcher a handle, one thread for all of them.

    watch(key, session, wake) ── the first follower of a handle? → poll: open its transcript, inotify
    the thread ── an event of a file → the wakes of its followers
               ── each second a poll: another session, another file, or growth without an event
               ── each 200 ms where nothing can be watched: no file yet, or no inotify instance left

The thread and the inotify instance exist while there are followers. A wake means "ask again"; it may come for
nothing. It is never called while a lock of this module is held. Source: inotify(7).
"""

import logging
import select
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress

from agents9core.errors import NotFound, TreeError
from agents9core.files.inotify import IGNORED, MODIFY, OVERFLOW, Event, Inotify
from agents9core.files.root import Descriptor
from agents9core.files.statx import FileStat, statx
from agents9core.session import Session, Source

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How often each handle is polled, beside inotify."""
POLL_SECONDS_WITHOUT_INOTIFY = 0.2
"""How often it is where inotify cannot be used."""
TOGETHER_SECONDS = 0.005
"""What is written within this time after an event is one event: a harness writes a line in several writes."""

Wake = Callable[[], None]


class _Watcher:
    """What is watched for the followers of one handle."""

    def __init__(
        self, session: Callable[[], Session], file_events: "_FileEvents", has_ended: Callable[[], bool]
    ) -> None:
        self.wakes: list[Wake] = []
        self.lock = threading.Lock()
        self.watch: int | None = None
        """Of inotify; None: its file is to be polled."""
        self._session = session
        self._has_ended = has_ended
        self._file_events = file_events
        self._seen: tuple[object, ...] | None = None
        self._file: object = None

    def begin(self) -> None:
        """Poll for the first time. A second caller waits until it is done."""
        with self.lock:
            if self._seen is None:
                self._poll()

    def poll(self) -> bool:
        """Poll again; return whether anything has moved."""
        with self.lock:
            return self._poll()

    def end(self) -> None:
        """Watch nothing any more."""
        with self.lock:
            self._move(None, None)

    def _poll(self) -> bool:
        seen = self._see()
        moved, self._seen = seen != self._seen, seen
        return moved

    def _see(self) -> tuple[object, ...]:
        try:
            session = self._session()
            if not session.sources:
                self._move(None, None)
                return (session.id,)
            held = _followed(session.sources[-1])
        except TreeError as error:
            self._move(None, None)
            return (error.errno,)
        self._move(held.fd, statx(held.fd))
        # The watch was there before this stat, so nothing can be written between the two unseen.
        return (session.id, session.sources, session.missing_base, self._has_ended(), statx(held.fd))

    def _move(self, fd: int | None, stat: FileStat | None) -> None:
        """Watch the open file instead of the one before, if it is another."""
        file = stat.identity if stat is not None else None
        if file == self._file and (fd is None or self.watch is not None):
            return
        before, self._file = self.watch, file
        self.watch = self._file_events.add(self, fd) if fd is not None else None
        if before is not None and before != self.watch:
            self._file_events.remove(self, before)


def _followed(source: Source) -> Descriptor:
    """Open the file that moves when a transcript grows. Raises as Root.open does."""
    root, path = source.root, source.path
    if source.rows is None:
        return root.open_with_stat(path)[0]
    with suppress(NotFound):
        return root.open_with_stat((*path[:-1], f"{path[-1]}-wal"), look_only=True)[0]
    return root.open_with_stat(path, look_only=True)[0]


class _FileEvents:
    """The inotify instance, if there is one, and which watcher wants which of its events."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: dict[int, set[_Watcher]] = {}
        self._inotify: Inotify | None = None
        with suppress(OSError):
            self._inotify = Inotify()

    def add(self, watcher: _Watcher, fd: int) -> int | None:
        """Watch an open file for *watcher*; None where that cannot be."""
        with self._lock:
            if self._inotify is None:
                return None
            try:
                watch = self._inotify.add(fd)
            except OSError:
                return None
            self._watchers.setdefault(watch, set()).add(watcher)
            return watch

    def remove(self, watcher: _Watcher, watch: int) -> None:
        """Watch a file no more for *watcher*; others may."""
        with self._lock:
            watchers = self._watchers.get(watch, set())
            watchers.discard(watcher)
            if not watchers and self._watchers.pop(watch, None) is not None and self._inotify:
                self._inotify.remove(watch)

    def wait(self, seconds: float) -> list[Event]:
        """Return what happens within a time, sooner if something does."""
        if self._inotify is None:
            time.sleep(seconds)
            return []
        poll = select.poll()
        poll.register(self._inotify.fileno(), select.POLLIN)
        if not poll.poll(seconds * 1000):
            return []
        time.sleep(TOGETHER_SECONDS)
        return self._inotify.read()

    def concerned(self, event: Event) -> set[_Watcher]:
        """Return the watchers of an event. A watch that has ended is forgotten."""
        with self._lock:
            if event.mask & OVERFLOW:
                return set().union(*self._watchers.values())
            if not event.mask & IGNORED:
                return set(self._watchers.get(event.watch, ()))
            ended = self._watchers.pop(event.watch, set())
        for watcher in ended:
            with watcher.lock:
                if watcher.watch == event.watch:
                    watcher.watch = None
        return ended

    def close(self) -> None:
        """Release the instance."""
        with self._lock:
            inotify, self._inotify = self._inotify, None
            self._watchers.clear()
        if inotify is not None:
            inotify.close()


class Watchers:
    """All followers of this server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: dict[Hashable, _Watcher] = {}
        self._file_events: _FileEvents | None = None
        """There while the thread is."""

    def watch(
        self,
        key: Hashable,
        session: Callable[[], Session],
        wake: Wake,
        has_ended: Callable[[], bool] = lambda: False,
    ) -> Callable[[], None]:
        """Call *wake* whenever a handle may have moved from now on; return what ends that.

        *key* names the handle, *session* tells what it is in, *has_ended* whether no process writes its
        transcript: then a last line without a newline counts. *wake* is called from another thread and must
        not block.
        """
        call = _Subscription(wake)
        with self._lock:
            if self._file_events is None:
                file_events = _FileEvents()
                run = threading.Thread(target=self._run, args=(file_events,), name="watching", daemon=True)
                run.start()
                self._file_events = file_events
            watcher = self._watchers.get(key)
            if watcher is None:
                watcher = self._watchers[key] = _Watcher(session, self._file_events, has_ended)
            watcher.wakes.append(call)
        watcher.begin()
        return lambda: self._end(watcher, call)

    def _end(self, watcher: _Watcher, call: Wake) -> None:
        """Forget a follower. The watcher goes at the next poll, so that a follower that returns at once finds
        it."""
        with self._lock, suppress(ValueError):
            watcher.wakes.remove(call)

    def _run(self, file_events: _FileEvents) -> None:
        looked = time.monotonic()
        while True:
            try:
                self._handle_events(file_events.wait(POLL_SECONDS_WITHOUT_INOTIFY), file_events)
                now = time.monotonic()
                is_time = now - looked >= POLL_SECONDS
                if is_time:
                    looked = now
                    if self._drop_unfollowed():
                        return
                self._poll(is_time)
            except Exception:
                logger.exception("cannot watch the transcripts that are followed")
                time.sleep(POLL_SECONDS)

    def _handle_events(self, events: list[Event], file_events: _FileEvents) -> None:
        """Wake those whose files have moved, and poll where a file may have been replaced."""
        moved: set[_Watcher] = set()
        for event in events:
            concerned = file_events.concerned(event)
            moved |= concerned
            if event.mask & ~MODIFY:
                for watcher in concerned:
                    watcher.poll()
        for watcher in moved:
            self._wake(watcher)

    def _poll(self, is_time: bool) -> None:
        with self._lock:
            watchers = list(self._watchers.values())
        for watcher in watchers:
            if (is_time or watcher.watch is None) and watcher.poll():
                self._wake(watcher)

    def _wake(self, watcher: _Watcher) -> None:
        with self._lock:
            wakes = list(watcher.wakes)
        for wake in wakes:
            wake()

    def _drop_unfollowed(self) -> bool:
        """Drop what has no followers; return whether that was all, and the thread ends."""
        with self._lock:
            unfollowed = [key for key, watcher in self._watchers.items() if not watcher.wakes]
            dropped = [self._watchers.pop(key) for key in unfollowed]
            is_all = not self._watchers
            file_events = self._file_events
            if is_all:
                self._file_events = None
        for watcher in dropped:
            watcher.end()
        if is_all and file_events is not None:
            file_events.close()
        return is_all


class _Subscription:
    """One follower's wake: two of the same function are two."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake

    def __call__(self) -> None:
        self._wake()
