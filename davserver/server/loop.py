"""Where connections wait, and whoever has something to do is given its turn: one thread for all of them.

    Loop.start → a leader: epoll → guest.roused → rest | its turn (guest.work) | end
                            └─ some of those who begin; then one of those who go on; and round again
    a turn takes longer than a moment → the watch gives the lead to another thread, and the turn is finished
                                        where it is: then the guest is given back to the loop

So a short request is answered by the thread that met it, which costs no switch, and a long one holds up
nobody. Only the leader touches the epoll and the guests that rest; what comes from other threads waits in
queues that it empties, and a bell ends its sleep. Knows no HTTP. Source: epoll(7), eventfd(2).
"""

import contextlib
import logging
import os
import select
import threading
import time
from collections import Counter, deque
from enum import Enum, auto
from itertools import chain
from typing import Generic, NamedTuple, Protocol, TypeVar

logger = logging.getLogger(__name__)

THREADS = 32
"""That may be in a long turn. Python runs one of them at a time, but where many ask at once for a chat that
has no index yet, all wait for who makes it; with 8 a page and a mount could stop the front end for that
long."""
MOMENT_SECONDS = 0.005
"""A turn that takes longer than one to two of these holds up the others no more."""
LONG_OF_ONE_TOPIC = 4
"""So many turns of one topic may be long at once; the others of it wait, and leave their threads to the short
turns of other topics. Those that need one cold index would wait for it in threads otherwise."""
_CALM_LOOKS = 20
"""How many times the watch finds nobody in a turn before it sleeps until somebody is."""
BEGIN_IN_A_ROW = 8
"""A new request is mostly short, and somebody waits for it; an answer that goes on is long, and its client
has something to read already. But a hundred of those share what they are let in between."""
_MOST_EVENTS = 1024
"""Of one look. Whom it leaves out is found only when all who are ready have been, so it is to be most."""
_MOST_TURNS = 64
"""Between two looks, of those who begin."""
_LOOK_PAUSE_SECONDS = 0.01
"""How close two looks at the deadlines may be, whatever there is."""
_LONGEST_SLEEP_SECONDS = 60.0
_STOP_SECONDS = 1.0


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
    """A connection, or a listener, as the loop sees it. What it raises is logged and ends it.

    All but `work` is called by the leader; while a guest is in its turn nothing else of it is called.
    """

    is_woken: bool
    """Whether a wake has come since its last rest that wakes ended: False at first, then the loop's own."""

    @property
    def is_sending(self) -> bool:
        """Whether it is let finish while the server stops."""

    @property
    def goes_on(self) -> bool:
        """Whether it had a turn already for what it does now."""

    @property
    def topic(self) -> bytes:
        """What its next turn is about: where one turn of a topic is long, others of it may be."""

    def fileno(self) -> int:
        """Return the descriptor, the same until `end`."""

    def rest(self) -> Rest | None:
        """Return what it waits for; None: nothing, it can go on."""

    def roused(self, cause: Cause) -> Next:
        """Take notice, without blocking."""

    def work(self) -> bool:
        """Have a turn, in any thread; tell whether it stays."""

    def end(self) -> None:
        """Close it."""


G = TypeVar("G", bound=Guest)


class _Turn(NamedTuple, Generic[G]):
    """That a guest is with the leader."""

    guest: G
    topic: bytes


class Loop(Generic[G]):
    """The guests of one front end, and the threads that see to them."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, select.EPOLLIN)
        self._armed: dict[int, int] = {}
        """Which events epoll tells of each guest."""
        self._resting: dict[int, tuple[G, Rest]] = {}
        self._beginning: deque[G] = deque()
        self._going_on: deque[G] = deque()
        self._postponed: dict[bytes, deque[G]] = {}
        """Those that wait until fewer turns of their topic are long."""
        self._long: Counter[bytes] = Counter()
        """Turns that are long now, by their topic."""
        self._in_a_row = 0
        """How many have begun since one went on."""
        self._look_at = float("inf")
        self._given: deque[tuple[G, bool]] = deque()
        """From other threads: new guests, and those who had their turn there, with whether they stay."""
        self._woken: deque[G] = deque()
        self._lock = threading.Lock()
        self._leader: threading.Thread | None = None
        self._turn: _Turn[G] | None = None
        self._threads: set[threading.Thread] = set()
        self._is_busy = threading.Event()
        self._watch = threading.Thread(target=self._keep_watch, name="http-watch", daemon=True)
        self._is_draining = self._is_stopped = self._is_closed = False

    def start(self) -> None:
        """See to the guests from now on."""
        self._leader = threading.Thread(target=self._lead, name="http-loop", daemon=True)
        self._threads.add(self._leader)
        self._leader.start()
        self._watch.start()

    def welcome(self, guest: G) -> None:
        """Take a new guest, who rests or has its turn. Any thread may call it."""
        self._given.append((guest, True))
        self._ring()

    def wake(self, guest: G) -> None:
        """End the rest of *guest*, or its next one. Any thread may call it, whatever has become of it."""
        self._woken.append(guest)
        self._ring()

    def drain(self) -> None:
        """End every guest that is not being sent to, and from now on each that comes to rest."""
        self._is_draining = True
        self._ring()

    def stop(self) -> None:
        """End every guest, and the threads; one in a long turn ends with it. The second time does nothing."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            threads = list(self._threads)
        self._ring()
        self._is_busy.set()
        until = time.monotonic() + _STOP_SECONDS
        for thread in (*threads, self._watch):
            if thread.ident:
                thread.join(max(0.0, until - time.monotonic()))
        with self._lock:
            self._is_closed = True
            self._epoll.close()
            os.close(self._bell)
        for guest in (*self._beginning, *self._going_on, *chain.from_iterable(self._postponed.values())):
            self._end(guest)
        for guest, _ in (*self._given, *self._resting.values()):
            self._end(guest)

    def _ring(self) -> None:
        """Let the leader look around, unless that is who calls."""
        if threading.current_thread() is self._leader:
            return
        with self._lock:
            if not self._is_closed:
                os.eventfd_write(self._bell, 1)

    # -- the leader

    def _lead(self) -> None:
        me = threading.current_thread()
        try:
            while self._leader is me and not self._is_stopped:
                try:
                    self._look_around()
                    self._give_turns(me)
                except Exception:
                    logger.exception("cannot see to the connections")
                    time.sleep(_LOOK_PAUSE_SECONDS)
        finally:
            with self._lock:
                self._threads.discard(me)

    def _look_around(self) -> None:
        while self._given:
            self._settle(*self._given.popleft())
        while self._woken:
            self._wake_up(self._woken.popleft())
        for topic in [topic for topic in self._postponed if self._long[topic] < LONG_OF_ONE_TOPIC]:
            self._beginning.extend(self._postponed.pop(topic))
        if self._is_draining:
            self._end_all_but_sending()
        for fd, _ in self._events():
            if fd == self._bell:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._bell)
            elif fd in self._resting:
                self._rouse(fd, Cause.EVENT)
            else:  # it has its turn, or waits for it, and what it waits for then is not known yet
                self._disarm(fd)
        if time.monotonic() >= self._look_at:
            self._look_at_deadlines()

    def _events(self) -> list[tuple[int, int]]:
        """Return what epoll says, after a while where nothing waits for a turn."""
        return self._epoll.poll(self._patience(), _MOST_EVENTS)

    def _patience(self) -> float:
        if self._beginning or self._going_on or self._given or self._woken:
            return 0.0
        return min(max(0.0, self._look_at - time.monotonic()), _LONGEST_SLEEP_SECONDS)

    def _give_turns(self, me: threading.Thread) -> None:
        """Let guests have their turns: until one has gone on, who may have taken long, or for so many."""
        for _ in range(_MOST_TURNS):
            guest = None if self._is_stopped else self._next()
            if guest is None:
                return
            topic = guest.topic
            if self._long[topic] >= LONG_OF_ONE_TOPIC:
                self._postponed.setdefault(topic, deque()).append(guest)
            elif not self._give_turn(_Turn(guest, topic), me) or not self._in_a_row:
                return

    def _next(self) -> G | None:
        """Return whose turn it is: who begins goes before who goes on, but not always."""
        if self._beginning and (self._in_a_row < BEGIN_IN_A_ROW or not self._going_on):
            self._in_a_row += 1
            return self._beginning.popleft()
        self._in_a_row = 0
        return self._going_on.popleft() if self._going_on else None

    def _give_turn(self, turn: _Turn[G], me: threading.Thread) -> bool:
        """Let a guest have its turn; tell whether this thread still leads after it."""
        guest = turn.guest
        self._turn = turn
        if not self._is_busy.is_set():
            self._is_busy.set()
        try:
            stays = guest.work()
        except Exception:
            logger.exception("a connection failed in its turn")
            stays = False
        with self._lock:
            leads, is_closed = self._leader is me, self._is_closed
            if leads:
                self._turn = None
            elif not is_closed:
                self._long[turn.topic] -= 1
                self._long += Counter()  # holds no topic that has none
                self._given.append((guest, stays))
        if leads or is_closed:
            self._settle(guest, stays)
        else:
            self._ring()
        return leads

    def _settle(self, guest: G, stays: bool) -> None:
        if not stays:
            self._end(guest)
            return
        try:
            self._let_rest(guest)
        except Exception:
            logger.exception("cannot let a connection wait")
            self._end(guest)

    def _let_rest(self, guest: G) -> None:
        if self._is_stopped or (self._is_draining and not guest.is_sending):
            self._end(guest)
            return
        rest = guest.rest()
        if rest is None:
            self._queue(guest)
        elif rest.wakes and guest.is_woken:
            guest.is_woken = False
            self._queue(guest)
        else:
            fd = guest.fileno()
            self._arm(fd, rest.events)
            self._resting[fd] = guest, rest
            self._look_at = min(self._look_at, rest.until)

    def _arm(self, fd: int, events: int) -> None:
        armed = self._armed.get(fd)
        if armed is None:
            self._epoll.register(fd, events)
        elif armed != events:
            self._epoll.modify(fd, events)
        self._armed[fd] = events

    def _disarm(self, fd: int) -> None:
        if self._armed.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def _queue(self, guest: G) -> None:
        (self._going_on if guest.goes_on else self._beginning).append(guest)

    def _rouse(self, fd: int, cause: Cause) -> None:
        guest, rest = self._resting.pop(fd)
        if rest.wakes:
            guest.is_woken = False
        try:
            fate = guest.roused(cause)
        except Exception:
            logger.exception("a connection failed in its rest")
            fate = Next.END
        if fate is Next.WORK:
            self._queue(guest)
        else:
            self._settle(guest, fate is Next.REST)

    def _wake_up(self, guest: G) -> None:
        fd = guest.fileno()
        resting, rest = self._resting.get(fd, (None, None))
        if resting is guest and rest is not None and rest.wakes:
            self._rouse(fd, Cause.WAKE)
        else:
            guest.is_woken = True

    def _end(self, guest: G) -> None:
        try:
            self._armed.pop(guest.fileno(), None)  # which epoll forgets when it is closed
            guest.end()
        except Exception:
            logger.exception("cannot end a connection")

    def _end_all_but_sending(self) -> None:
        idle = [fd for fd, (guest, _) in self._resting.items() if not guest.is_sending]
        for guest, _ in [self._resting.pop(fd) for fd in idle]:
            self._end(guest)

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        due = [fd for fd, (_, rest) in self._resting.items() if rest.until <= now]
        self._look_at = float("inf")
        for fd in due:
            self._rouse(fd, Cause.DEADLINE)
        soonest = min((rest.until for _, rest in self._resting.values()), default=float("inf"))
        self._look_at = max(soonest, now + _LOOK_PAUSE_SECONDS)

    # -- the watch

    def _keep_watch(self) -> None:
        """Look at the leader each moment while there is something to do; else sleep."""
        seen, calm = None, 0
        self._sleep_until_busy()
        while not self._is_stopped:
            time.sleep(MOMENT_SECONDS)
            turn = self._turn
            if turn is None:
                calm += 1
                if calm > _CALM_LOOKS:
                    self._sleep_until_busy()
            else:
                calm = 0
                if turn is seen:
                    self._relieve(turn)
            seen = turn

    def _sleep_until_busy(self) -> None:
        self._is_busy.clear()
        if self._turn is not None or self._is_stopped:  # it began before that
            self._is_busy.set()
        self._is_busy.wait()

    def _relieve(self, turn: _Turn[G]) -> None:
        """Let another thread lead, if the leader is in that turn still."""
        if len(self._threads) > THREADS:
            return
        thread = threading.Thread(target=self._take_over, args=(turn,), name="http-loop", daemon=True)
        with self._lock:
            self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError as exc:  # there is no room for it; the next moment there may be
            logger.warning("cannot begin a thread: %s", exc)
            with self._lock:
                self._threads.discard(thread)

    def _take_over(self, turn: _Turn[G]) -> None:
        me = threading.current_thread()
        with self._lock:
            if self._turn is not turn or self._is_stopped:
                self._threads.discard(me)
                return
            self._leader, self._turn = me, None
            self._long[turn.topic] += 1
        self._lead()
