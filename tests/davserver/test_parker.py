"""The waiting room: events, wakes and deadlines, each met once, and none lost."""

import os
import queue
import select
import socket
import time

import pytest

from davserver.parker import Cause, Next, Parker, Rest

FOR_EVER = float("inf")


class Guest:
    """A guest that rests as it is told."""

    is_known = is_woken = False
    is_sending = False

    def __init__(self, rest):
        self.sock, self.other = socket.socketpair()
        self._rest = rest
        self.causes = []
        self.fates = []
        self.ended = 0

    def fileno(self):
        return self.sock.fileno()

    def rest(self):
        if isinstance(self._rest, Exception):
            raise self._rest
        return self._rest

    def roused(self, cause):
        self.causes.append(cause)
        return self.fates.pop(0) if self.fates else Next.WORK

    def end(self):
        self.ended += 1
        self.close()

    def close(self):
        self.sock.close()
        self.other.close()


@pytest.fixture
def guest():
    made = []

    def make(events=0, until=FOR_EVER, wakes=False, rest=()):
        made.append(Guest(Rest(events, until, wakes) if rest == () else rest))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def work():
    return queue.Queue()


@pytest.fixture
def parker(work):
    made = Parker(work.put)
    made.start()
    yield made
    made.stop()


def pausing(guest):
    return guest(select.EPOLLRDHUP, wakes=True)


def eventually(is_so):
    until = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_an_event_gives_it_to_a_worker(parker, work, guest):
    parker.park(one := guest(select.EPOLLIN))
    one.other.send(b"x")
    assert work.get(timeout=20) is one
    assert one.causes == [Cause.EVENT]


def test_who_waits_for_nothing_goes_to_a_worker_at_once(parker, work, guest):
    parker.park(one := guest(rest=None))
    assert work.get_nowait() is one


def test_its_time_is_up_though_others_have_longer(parker, work, guest):
    parker.park(guest(select.EPOLLIN, time.monotonic() + 1000))
    parker.park(one := guest(select.EPOLLIN, time.monotonic() + 0.05))
    assert work.get(timeout=20) is one
    assert one.causes == [Cause.DEADLINE]


def test_one_that_rests_again_is_met_again(parker, work, guest):
    one = guest(select.EPOLLIN)
    one.fates = [Next.REST, Next.REST, Next.WORK]
    parker.park(one)
    one.other.send(b"x")
    assert work.get(timeout=20) is one
    assert one.causes == [Cause.EVENT] * 3


def test_the_end_of_the_other_side_is_met_in_a_pause(parker, guest):
    one = pausing(guest)
    one.fates = [Next.END]
    parker.park(one)
    one.other.close()
    eventually(lambda: one.ended)
    assert one.causes == [Cause.EVENT]


def test_a_wake_ends_a_pause(parker, work, guest):
    parker.park(one := pausing(guest))
    parker.wake(one)
    assert work.get(timeout=20) is one
    assert one.causes == [Cause.WAKE]


def test_a_wake_that_comes_before_the_pause_is_not_lost(parker, work, guest):
    one = pausing(guest)
    parker.wake(one)
    parker.park(one)
    assert work.get(timeout=20) is one


def test_a_wake_while_it_is_sent_to_ends_the_next_pause(parker, work, guest):
    one = guest(select.EPOLLIN)
    parker.park(one)
    parker.wake(one)
    one.other.send(b"x")
    assert work.get(timeout=20) is one
    one._rest = Rest(select.EPOLLRDHUP, FOR_EVER, wakes=True)
    parker.park(one)
    assert work.get(timeout=20) is one
    assert one.causes[0] is Cause.EVENT


def test_no_wake_of_many_is_lost(parker, work, guest):
    one = pausing(guest)
    for _ in range(500):
        parker.wake(one)
        parker.park(one)
        assert work.get(timeout=20) is one


def test_a_wake_after_the_end_hurts_nobody(parker, work, guest):
    parker.park(one := pausing(guest))
    parker.stop()
    assert one.ended == 1
    parker.wake(one)
    assert work.empty()


def test_draining_ends_all_but_what_is_sent(parker, work, guest):
    idle, sending, late = guest(select.EPOLLIN), guest(select.EPOLLIN), guest(select.EPOLLIN)
    sending.is_sending = True
    for one in (idle, sending):
        parker.park(one)
    parker.drain()
    eventually(lambda: idle.ended)
    parker.park(late)
    assert (late.ended, sending.ended) == (1, 0)
    sending.other.send(b"x")
    assert work.get(timeout=20) is sending


def test_a_guest_that_fails_ends_alone(parker, work, guest, caplog):
    bad, good = guest(select.EPOLLIN), guest(select.EPOLLIN)
    bad.roused = lambda cause: 1 / 0
    for one in (bad, good, worse := guest(rest=ValueError("of the test"))):
        parker.park(one)
    assert worse.ended == 1
    for one in (bad, good):
        one.other.send(b"x")
    assert work.get(timeout=20) is good
    eventually(lambda: bad.ended)
    assert len(caplog.records) == 2
    caplog.clear()


def test_a_closed_guest_is_ended_instead_of_parked(parker, guest, caplog):
    one = guest(select.EPOLLIN)
    one.close()
    parker.park(one)
    assert one.ended == 1
    caplog.clear()


def test_it_leaves_no_descriptor(work):
    before = len(os.listdir("/proc/self/fd"))
    made = Parker(work.put)
    made.start()
    made.stop()
    assert len(os.listdir("/proc/self/fd")) == before
