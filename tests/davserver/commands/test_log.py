import logging

import pytest

from davserver.log import LINES, SECONDS, RateLimitFilter


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sparing(clock):
    return RateLimitFilter(clock)


def record(line=1, level=logging.WARNING, path="server.py"):
    return logging.LogRecord("agents9", level, path, line, "%s: refused", ("somebody",), None)


def test_a_place_that_says_much_is_heard_some_times_a_minute(sparing, clock):
    assert sum(sparing.filter(record()) for _ in range(1000)) == LINES
    clock.now += SECONDS - 1
    assert not sparing.filter(record())


def test_later_it_is_said_how_many_were_kept_back(sparing, clock):
    for _ in range(LINES + 5):
        sparing.filter(record())
    clock.now += SECONDS
    later = record()
    assert sparing.filter(later)
    assert later.getMessage() == "somebody: refused (and 5 more before, not shown)"
    another = record()
    assert sparing.filter(another)
    assert another.getMessage() == "somebody: refused"


def test_other_places_are_heard_meanwhile(sparing):
    for _ in range(1000):
        sparing.filter(record())
    assert sparing.filter(record(line=2))
    assert sparing.filter(record(path="http.py"))


def test_what_was_asked_for_is_never_kept_back(sparing):
    assert all(sparing.filter(record(level=logging.DEBUG)) for _ in range(1000))
