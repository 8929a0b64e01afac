"""Where connections wait, all in one thread: for a request, for room in a full socket, for something to say.

    park(guest) ── nothing to wait for? → a worker
      └─ epoll, once a park ── an event, a wake, the time is up → guest.roused → rest | work | end

A guest belongs to the parker or to a worker, never to both: it is taken out of `_parked` by who rouses it,
and armed (EPOLLONESHOT) under the same lock that puts it there, so no event can meet a guest, or a
descriptor, of later. A wake that comes while a worker has the guest is remembered until it is parked.
Knows no HTTP. Source: epoll(7), eventfd(2).
"""

import contextlib
import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, NamedTuple, Protocol, TypeVar

logger = logging.getLogger(__name__)

_LOOK_PAUSE_SECONDS = 0.01
"""How close two looks at the deadlines may be, whatever there is."""


class Cause(Enum):
    """Why a guest is roused."""

    EVENT = auto()
    WAKE = auto()
    DEADLINE = auto()


class Next(Enum):
    """What is to become of a guest that was roused."""

    REST = auto()
    WORK = auto()
    END = auto()


class Rest(NamedTuple):
    """What a guest waits for."""

    events: int
    """Of epoll; that the other end is gone is always among them."""
    until: float
    """By `time.monotonic`."""
    wakes: bool = False
    """Whether a wake ends it."""


class Guest(Protocol):
    """A connection, as the parker sees it. What it raises is logged and ends it."""

    is_known: bool
    """Whether it was parked before: False at first, then the parker's own."""
    is_woken: bool
    """Whether a wake has come since its last rest that wakes ended: the parker's own."""

    @property
    def is_sending(self) -> bool:
        """Whether it is let finish while the server stops."""

    def fileno(self) -> int:
        """Return the descriptor; -1 when it is closed."""

    def rest(self) -> Rest | None:
        """Return what it waits for; None: nothing, it can go on."""

    def roused(self, cause: Cause) -> Next:
        """Take notice, without blocking."""

    def end(self) -> None:
        """Close it."""


G = TypeVar("G", bound=Guest)


class _Parked(NamedTuple, Generic[G]):
    guest: G
    rest: Rest


class Parker(Generic[G]):
    """The waiting connections of one server, and the thread that minds them."""

    def __init__(self, work: Callable[[G], None]) -> None:
        """*work* hands a guest to the workers; it must not block."""
        self._work = work
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._lock = threading.Lock()
        self._parked: dict[int, _Parked[G]] = {}
        self._woken: deque[G] = deque()
        self._look_at = float("inf")
        self._is_draining = self._is_stopped = self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="http-parker")

    def start(self) -> None:
        """Mind what is parked from now on."""
        self._thread.start()

    def park(self, guest: G) -> None:
        """Take a connection that no worker has."""
        try:
            fate = self._park(guest)
        except Exception:
            logger.exception("cannot let a connection wait")
            fate = Next.END
        self._settle(guest, fate)

    def wake(self, guest: G) -> None:
        """End the rest of *guest*, or its next one. Any thread may call it, whatever has become of it."""
        with self._lock:
            guest.is_woken = True
            self._woken.append(guest)
            self._ring()

    def drain(self) -> None:
        """End every connection that is not being sent to, and from now on each that comes to rest."""
        with self._lock:
            self._is_draining = True
            self._ring()

    def stop(self) -> None:
        """End every connection that is here, and the thread. The second time does nothing."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            self._ring()
        if self._thread.ident:
            self._thread.join()
        with self._lock:
            left = [parked.guest for parked in self._parked.values()]
            self._parked.clear()
            self._is_closed = True
            self._epoll.close()
            os.close(self._bell)
        for guest in left:
            self._settle(guest, Next.END)

    def _park(self, guest: G) -> Next:
        """Let it rest; return what else is to be done with it."""
        with self._lock:
            rest = guest.rest()
            if self._is_stopped or (self._is_draining and not guest.is_sending):
                return Next.END
            if rest is None:
                return Next.WORK
            if rest.wakes and guest.is_woken:
                guest.is_woken = False
                return Next.WORK
            fd = guest.fileno()
            arm = self._epoll.modify if guest.is_known else self._epoll.register
            arm(fd, rest.events | select.EPOLLONESHOT)
            guest.is_known = True
            self._parked[fd] = _Parked(guest, rest)
            if rest.until < self._look_at:
                self._look_at = rest.until
                self._ring()
        return Next.REST

    def _settle(self, guest: G, fate: Next) -> None:
        if fate is Next.WORK:
            self._work(guest)
        elif fate is Next.END:
            try:
                guest.end()
            except Exception:
                logger.exception("cannot end a connection")

    def _ring(self) -> None:
        """Let the thread look around. The lock is held, so that the bell is still there."""
        if not self._is_closed and threading.current_thread() is not self._thread:
            os.eventfd_write(self._bell, 1)

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                self._turn()
            except Exception:
                logger.exception("cannot mind the connections")
                time.sleep(_LOOK_PAUSE_SECONDS)

    def _turn(self) -> None:
        wait = self._look_at - time.monotonic()
        for fd, _ in self._epoll.poll(min(max(0.0, wait), 60.0)):
            if fd == self._bell:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._bell)
            else:
                self._rouse(fd, Cause.EVENT)
        while self._woken:
            guest = self._woken.popleft()
            self._rouse(guest.fileno(), Cause.WAKE, guest)
        if self._is_draining:
            self._end_all_but_sending()
        if time.monotonic() >= self._look_at:
            self._look_at_deadlines()

    def _end_all_but_sending(self) -> None:
        with self._lock:
            idle = [guest for guest, _ in self._parked.values() if not guest.is_sending]
            for guest in idle:
                del self._parked[guest.fileno()]
        for guest in idle:
            self._settle(guest, Next.END)

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        with self._lock:
            due = [(fd, guest) for fd, (guest, rest) in self._parked.items() if rest.until <= now]
            later = (rest.until for _, rest in self._parked.values() if rest.until > now)
            self._look_at = max(min(later, default=float("inf")), now + _LOOK_PAUSE_SECONDS)
        for fd, guest in due:
            self._rouse(fd, Cause.DEADLINE, guest)

    def _rouse(self, fd: int, cause: Cause, meant: G | None = None) -> None:
        """Rouse the guest at *fd*, if it is the one that is *meant*."""
        with self._lock:
            parked = self._parked.get(fd)
            if parked is None or (meant is not None and parked.guest is not meant):
                return
            if cause is Cause.WAKE and not parked.rest.wakes:
                return  # it stays woken
            del self._parked[fd]
            guest = parked.guest
            if parked.rest.wakes:
                guest.is_woken = False
        try:
            fate = guest.roused(cause)
            fate = self._park(guest) if fate is Next.REST else fate
        except Exception:
            logger.exception("a connection failed in its rest")
            fate = Next.END
        self._settle(guest, fate)
