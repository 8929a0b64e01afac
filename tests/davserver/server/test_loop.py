"""The loop: events, wakes, deadlines and turns, each met once, and none lost."""

import contextlib
import os
import queue
import select
import socket
import threading
import time

import pytest

from davserver.server import loop as loop_module
from davserver.server.loop import BEGIN_IN_A_ROW, LONG_OF_ONE_TOPIC, THREADS, Cause, Loop, Next, Rest
from tests.support.waiting import eventually

FOR_EVER = float("inf")


class Guest:
    """A guest that rests as it is told, until it is told to go on, and says what is done to it."""

    is_woken = False
    is_sending = False
    goes_on = False

    def __init__(self, rest, turns):
        self.topic = b"of %d" % id(self)
        self.sock, self.other = socket.socketpair()
        self.fd = self.sock.fileno()
        self.rests = rest
        self.causes = []
        self.fates = []
        self.stays = True
        self.ended = 0
        self.threads = []
        self._turns = turns

    def fileno(self):
        return self.fd

    def rest(self):
        if isinstance(self.rests, Exception):
            raise self.rests
        return self.rests

    def roused(self, cause):
        self.causes.append(cause)
        return self.fates.pop(0) if self.fates else Next.WORK

    def work(self):
        self.threads.append(threading.current_thread())
        if self.rests is None:
            self.rests = Rest(0, FOR_EVER)
        with contextlib.suppress(BlockingIOError):
            self.sock.recv(100, socket.MSG_DONTWAIT)
        self._turns.put(self)
        return self.stays

    def end(self):
        self.ended += 1
        self.close()

    def close(self):
        self.sock.close()
        self.other.close()


@pytest.fixture
def turns():
    return queue.Queue()


@pytest.fixture
def guest(turns):
    made = []

    def make(events=0, until=FOR_EVER, wakes=False, rest=(), kind=Guest):
        made.append(kind(Rest(events, until, wakes) if rest == () else rest, turns))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def loop():
    made = Loop()
    made.start()
    yield made
    made.stop()


def pausing(guest):
    return guest(select.EPOLLRDHUP, wakes=True)


# -- rests


def test_an_event_is_a_turn(loop, turns, guest):
    loop.welcome(one := guest(select.EPOLLIN))
    one.other.send(b"x")
    assert turns.get(timeout=20) is one
    assert one.causes == [Cause.EVENT]


def test_who_waits_for_nothing_has_its_turn_at_once(loop, turns, guest):
    loop.welcome(one := guest(rest=None))
    assert turns.get(timeout=20) is one
    assert one.causes == []


def test_each_of_many_events_is_met(loop, turns, guest):
    loop.welcome(one := guest(select.EPOLLIN))
    for _ in range(200):
        one.other.send(b"x")
        assert turns.get(timeout=20) is one
    assert one.causes == [Cause.EVENT] * 200


def test_its_time_is_up_though_others_have_longer(loop, turns, guest):
    loop.welcome(guest(select.EPOLLIN, time.monotonic() + 1000))
    loop.welcome(one := guest(select.EPOLLIN, time.monotonic() + 0.05))
    one.fates = [Next.END]
    eventually(lambda: one.ended)
    assert one.causes == [Cause.DEADLINE]


def test_one_that_rests_again_is_met_again(loop, turns, guest):
    one = guest(select.EPOLLIN)
    one.fates = [Next.REST, Next.REST, Next.WORK]
    loop.welcome(one)
    one.other.send(b"x")
    assert turns.get(timeout=20) is one
    assert one.causes == [Cause.EVENT] * 3


def test_what_it_waits_for_may_change(loop, turns, guest):
    one = guest(select.EPOLLIN)
    loop.welcome(one)
    one.rests = Rest(select.EPOLLIN | select.EPOLLOUT, FOR_EVER)
    one.other.send(b"x")
    for _ in range(3):
        assert turns.get(timeout=20) is one
    one.rests = Rest(0, FOR_EVER)


def test_the_end_of_the_other_side_is_met_in_a_pause(loop, guest):
    one = pausing(guest)
    one.fates = [Next.END]
    loop.welcome(one)
    one.other.close()
    eventually(lambda: one.ended)
    assert one.causes == [Cause.EVENT]


def test_who_does_not_stay_is_ended(loop, turns, guest):
    one = guest(rest=None)
    one.stays = False
    loop.welcome(one)
    eventually(lambda: one.ended == 1)


# -- wakes


def test_a_wake_ends_a_pause(loop, turns, guest):
    loop.welcome(one := pausing(guest))
    loop.wake(one)
    assert turns.get(timeout=20) is one


def test_a_wake_that_comes_before_the_pause_is_not_lost(loop, turns, guest):
    one = pausing(guest)
    loop.wake(one)
    loop.welcome(one)
    assert turns.get(timeout=20) is one


def test_a_wake_while_it_is_sent_to_ends_the_next_pause(loop, turns, guest):
    one = guest(select.EPOLLIN)
    loop.welcome(one)
    loop.wake(one)
    eventually(lambda: one.is_woken)
    one.rests = Rest(select.EPOLLRDHUP, FOR_EVER, wakes=True)
    one.other.send(b"x")
    assert [turns.get(timeout=20) for _ in range(2)] == [one, one]
    assert one.causes == [Cause.EVENT]


def test_no_wake_of_many_is_lost(loop, turns, guest):
    loop.welcome(one := pausing(guest))
    for _ in range(500):
        loop.wake(one)
        assert turns.get(timeout=20) is one


def test_a_wake_after_the_end_hurts_nobody(loop, turns, guest):
    loop.welcome(one := pausing(guest))
    loop.stop()
    assert one.ended == 1
    loop.wake(one)
    assert turns.empty()


# -- turns


class Slow(Guest):
    """Its turn ends when it is let."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.start_stream, self.let = threading.Event(), threading.Event()

    def work(self):
        self.start_stream.set()
        assert self.let.wait(20)
        return super().work()


@pytest.fixture
def slow(loop, guest):
    made = []

    def make():
        one = guest(select.EPOLLIN, kind=Slow)
        made.append(one)
        loop.welcome(one)
        one.other.send(b"x")
        assert one.start_stream.wait(20)
        return one

    yield make
    for one in made:
        one.let.set()


def test_short_turns_are_had_in_one_thread(loop, turns, guest):
    guests = [guest(select.EPOLLIN) for _ in range(10)]
    for one in guests:
        loop.welcome(one)
        one.other.send(b"x")
    assert {turns.get(timeout=20) for _ in guests} == set(guests)
    threads = {thread for one in guests for thread in one.threads}
    assert len(threads) == 1


def test_a_long_turn_holds_up_nobody(loop, turns, guest, slow):
    held = slow()
    loop.welcome(one := guest(rest=None))
    assert turns.get(timeout=20) is one
    held.let.set()
    assert turns.get(timeout=20) is held
    assert held.threads != one.threads


def test_what_comes_for_it_in_its_turn_is_met_after_it(loop, turns, guest, slow):
    held = slow()
    loop.welcome(one := guest(rest=None))
    assert turns.get(timeout=20) is one  # others are looked after
    held.other.send(b"y")
    time.sleep(0.05)
    assert held.causes == [Cause.EVENT]
    held.let.set()
    assert turns.get(timeout=20) is held
    held.other.send(b"z")
    assert turns.get(timeout=20) is held


def test_as_many_as_there_are_threads_may_be_in_a_long_turn(loop, turns, guest, slow):
    for _ in range(THREADS):
        slow()
    loop.welcome(one := guest(rest=None))
    assert turns.get(timeout=20) is one


def test_long_turns_of_one_topic_leave_threads_to_others(loop, turns, guest):
    long = [slow_of(loop, guest, b"slow") for _ in range(LONG_OF_ONE_TOPIC)]
    waiting = [guest(select.EPOLLIN, kind=Slow) for _ in range(2 * THREADS)]
    for one in waiting:
        one.topic = b"slow"
        loop.welcome(one)
        one.other.send(b"x")
    loop.welcome(other := guest(rest=None))
    assert turns.get(timeout=20) is other
    assert not any(one.start_stream.is_set() for one in waiting)
    for one in (*long, *waiting):
        one.let.set()
    assert {turns.get(timeout=20) for _ in (*long, *waiting)} == {*long, *waiting}


def slow_of(loop, guest, topic):
    one = guest(select.EPOLLIN, kind=Slow)
    one.topic = topic
    loop.welcome(one)
    one.other.send(b"x")
    assert one.start_stream.wait(20)
    return one


def no_room(_thread):
    raise RuntimeError("can't start new thread")


def test_without_another_thread_the_turn_goes_on(loop, turns, guest, monkeypatch, caplog):
    one = guest(select.EPOLLIN, kind=Slow)
    monkeypatch.setattr(threading.Thread, "start", no_room)
    loop.welcome(one)
    one.other.send(b"x")
    assert one.start_stream.wait(20)
    eventually(lambda: caplog.records)
    monkeypatch.undo()
    one.let.set()
    assert turns.get(timeout=20) is one
    loop.welcome(another := guest(rest=None))
    assert turns.get(timeout=20) is another
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    caplog.clear()


def test_who_begins_goes_before_who_goes_on(turns, guest):
    made = Loop()
    going_on, beginning = [[guest(rest=None) for _ in range(3)] for _ in range(2)]
    for one in going_on:
        one.goes_on = True
    for one in (*going_on, *beginning):
        made.welcome(one)
    made.start()
    try:
        assert [turns.get(timeout=20) for _ in range(6)] == beginning + going_on
    finally:
        made.stop()


def test_of_many_who_begin_some_who_go_on_are_let_in_between(turns, guest):
    made = Loop()
    guests = [guest(rest=None) for _ in range(3 * BEGIN_IN_A_ROW + 2)]
    going_on, beginning = guests[:2], guests[2:]
    for one in going_on:
        one.goes_on = True
    for one in guests:
        made.welcome(one)
    made.start()
    try:
        had = [turns.get(timeout=20) for _ in guests]
    finally:
        made.stop()
    assert [one for one in had if one.goes_on] == going_on
    assert [one for one in had if not one.goes_on] == beginning
    assert [number for number, one in enumerate(had) if one.goes_on] == [
        BEGIN_IN_A_ROW,
        2 * BEGIN_IN_A_ROW + 1,
    ]


def test_who_can_go_on_is_found_among_many_who_begin(turns, guest):
    made = Loop()
    *beginning, one = guests = [guest(select.EPOLLIN) for _ in range(200)]
    one.goes_on = True
    for each in guests:
        each.other.send(b"x")
        made.welcome(each)
    made.start()
    try:
        had = [turns.get(timeout=20) for _ in guests]
    finally:
        made.stop()
    assert had == [*beginning[:BEGIN_IN_A_ROW], one, *beginning[BEGIN_IN_A_ROW:]]


def test_who_begins_has_the_next_turn_though_others_always_go_on(loop, turns, guest):
    loop.welcome(one := guest(select.EPOLLIN))
    restless = [guest(rest=None) for _ in range(3)]
    had = []

    def work():
        had.append(None)
        if len(had) == 20:
            one.other.send(b"x")
        return True

    one.work = lambda: turns.put(len(had)) or False
    for each in restless:
        each.goes_on = True
        each.work = work
        loop.welcome(each)
    assert turns.get(timeout=20) <= 22  # a thread that has lost the lead may have one turn more
    for each in restless:
        each.rests = Rest(0, FOR_EVER)


def test_who_goes_on_has_a_turn_though_others_always_begin(loop, turns, guest):
    restless = guest(rest=None)
    restless.work = lambda: setattr(restless, "rests", None) or True
    loop.welcome(restless)
    one = guest(rest=None)
    one.goes_on = True
    loop.welcome(one)
    assert turns.get(timeout=20) is one
    restless.rests = Rest(0, FOR_EVER)
    restless.work = lambda: True


def test_the_watch_sleeps_when_there_is_nothing_to_do(loop, turns, guest, monkeypatch):
    loop.welcome(one := guest(rest=None))
    assert turns.get(timeout=20) is one
    eventually(lambda: not loop._is_busy.is_set())
    loop.welcome(another := guest(rest=None))
    assert turns.get(timeout=20) is another
    assert loop._is_busy.is_set()


# -- ends


def test_draining_ends_all_but_what_is_sent(loop, turns, guest):
    idle, sending, late = guest(select.EPOLLIN), guest(select.EPOLLIN), guest(select.EPOLLIN)
    sending.is_sending = True
    for one in (idle, sending):
        loop.welcome(one)
    loop.drain()
    eventually(lambda: idle.ended)
    loop.welcome(late)
    eventually(lambda: late.ended)
    assert sending.ended == 0
    sending.other.send(b"x")
    assert turns.get(timeout=20) is sending


@pytest.mark.parametrize("what", ["roused", "work", "rest"])
def test_a_guest_that_fails_ends_alone(loop, turns, guest, caplog, what):
    bad, good = guest(select.EPOLLIN), guest(select.EPOLLIN)
    setattr(bad, what, lambda *_: 1 / 0)
    for one in (bad, good):
        one.other.send(b"x")
        loop.welcome(one)
    assert turns.get(timeout=20) is good
    eventually(lambda: bad.ended)
    assert len(caplog.records) == 1
    caplog.clear()


def test_a_closed_guest_is_ended(loop, guest, caplog):
    one = guest(select.EPOLLIN)
    one.close()
    loop.welcome(one)
    eventually(lambda: one.ended == 1)
    caplog.clear()


def test_the_number_of_one_that_ended_serves_the_next(loop, turns, guest):
    for _ in range(20):
        one = guest(select.EPOLLIN)
        one.stays = False
        loop.welcome(one)
        one.other.send(b"x")
        assert turns.get(timeout=20) is one
        eventually(lambda: one.ended)  # noqa: B023 - until it is so


def test_who_is_in_a_turn_when_all_ends_is_ended_after_it(turns, guest, monkeypatch):
    monkeypatch.setattr(loop_module, "_STOP_SECONDS", 0.05)
    made = Loop()
    made.start()
    one = guest(select.EPOLLIN, kind=Slow)
    made.welcome(one)
    one.other.send(b"x")
    assert one.start_stream.wait(20)
    made.stop()
    assert one.ended == 0
    one.let.set()
    eventually(lambda: one.ended == 1)


def test_who_waits_for_its_turn_when_all_ends_has_none(turns, guest, monkeypatch):
    monkeypatch.setattr(loop_module, "_STOP_SECONDS", 0.05)
    made = Loop()
    made._relieve = lambda _turn: None
    held, *waiting = guest(rest=None, kind=Slow), *(guest(rest=None) for _ in range(3))
    waiting[0].goes_on = True
    for one in (held, *waiting):
        made.welcome(one)
    made.start()
    assert held.start_stream.wait(20)
    made.stop()
    assert [one.ended for one in waiting] == [1, 1, 1]
    held.let.set()
    eventually(lambda: held.ended)
    eventually(lambda: not made._threads)
    assert turns.get(timeout=20) is held
    assert turns.empty()
    assert [one.ended for one in waiting] == [1, 1, 1]


def test_it_leaves_no_descriptor_and_no_thread():
    before, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    made = Loop()
    made.start()
    made.stop()
    assert len(os.listdir("/proc/self/fd")) == before
    assert threading.active_count() == threads
