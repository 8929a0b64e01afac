"""Following transcripts that are written, replaced and left: every move wakes, and nothing is left behind."""

import errno
import os
import threading
import time

import pytest

from agents9core.errors import Gone
from agents9core.files.inotify import Inotify
from agents9core.files.root import Root
from agents9core.memory import MemoryChat
from agents9core.session import Session, Source
from agents9core.tree import followers
from agents9core.tree.followers import Watchers
from tests.support.waiting import eventually


class Wakes:
    """Counts wakes, and waits for the next."""

    def __init__(self):
        self.count = 0
        self._condition = threading.Condition()

    def __call__(self):
        with self._condition:
            self.count += 1
            self._condition.notify_all()

    def after(self, move, seconds=20):
        """Make a move; tell how long the wake took."""
        with self._condition:
            before = self.count
        started = time.monotonic()
        move()
        with self._condition:
            assert self._condition.wait_for(lambda: self.count > before, seconds)
        return time.monotonic() - started


@pytest.fixture(autouse=True)
def looks_are_quick(monkeypatch):
    monkeypatch.setattr(followers, "POLL_SECONDS", 0.2)
    monkeypatch.setattr(followers, "POLL_SECONDS_WITHOUT_INOTIFY", 0.05)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text("{}\n")
    return path


def session_of(*paths, id_="s"):
    return Session("test", id_, sources=tuple(Source(Root(str(path.parent)), (path.name,)) for path in paths))


def append(path):
    with path.open("a") as out:
        out.write("{}\n")


@pytest.fixture(params=["inotify", "no instance left", "no watch left", "an instance that is deaf"])
def kind(request, monkeypatch):
    def refuse(number):
        def refused(*_arguments):
            raise OSError(number, "of the test")

        return refused

    if request.param == "no instance left":
        monkeypatch.setattr(Inotify, "__init__", refuse(errno.EMFILE))
    elif request.param == "no watch left":
        monkeypatch.setattr(Inotify, "add", refuse(errno.ENOSPC))
    elif request.param == "an instance that is deaf":
        monkeypatch.setattr(Inotify, "read", lambda self: os.read(self.fileno(), 1 << 16) and [])
    return request.param


@pytest.fixture
def watch():
    """Follows handles, and leaves them at the end; then nothing may be left."""
    descriptors = len(os.listdir("/proc/self/fd"))
    made = Watchers()
    ends = []

    def follow(session, wake, key="seat", **more):
        ends.append(made.watch(key, session, wake, **more))
        return ends[-1]

    yield follow
    for end in ends:
        end()
    eventually(lambda: not any(thread.name == "watching" for thread in threading.enumerate()))
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_every_append_wakes(watch, file, kind):
    watch(lambda: session_of(file), wakes := Wakes())
    took = [wakes.after(lambda: append(file)) for _ in range(3)]
    assert sorted(took)[1] < (0.5 if kind == "inotify" else 5)


def test_that_nobody_writes_it_any_more_wakes(watch, file, kind):
    ended = []
    watch(lambda: session_of(file), wakes := Wakes(), has_ended=lambda: bool(ended))
    wakes.after(lambda: ended.append(True))


def test_a_file_that_is_replaced_wakes_and_is_followed_on(watch, file, kind):
    watch(lambda: session_of(file), wakes := Wakes())

    def replace():
        (other := file.with_name("other")).write_text("{}\n{}\n")
        other.rename(file)

    wakes.after(replace)
    wakes.after(lambda: append(file))


def test_a_file_that_is_replaced_while_it_is_open_elsewhere_wakes(watch, file):
    watch(lambda: session_of(file), wakes := Wakes())
    with file.open():
        (other := file.with_name("other")).write_text("{}\n{}\n")
        wakes.after(lambda: other.rename(file))
        wakes.after(lambda: append(file))


def test_a_file_that_goes_and_comes_again_wakes(watch, file, kind):
    watch(lambda: session_of(file), wakes := Wakes())
    wakes.after(file.unlink)
    wakes.after(lambda: file.write_text("{}\n"))
    wakes.after(lambda: append(file))


def test_a_transcript_that_is_yet_to_come_wakes(watch, tmp_path):
    path = tmp_path / "later.jsonl"
    watch(lambda: session_of(path), wakes := Wakes())
    wakes.after(lambda: path.write_text("{}\n"))
    wakes.after(lambda: append(path))


def test_another_session_wakes_and_its_file_is_followed(watch, file):
    now = [session_of(file)]
    watch(lambda: now[0], wakes := Wakes())
    other = file.with_name("other.jsonl")
    other.write_text("")
    wakes.after(lambda: now.__setitem__(0, Session("test", "without a transcript")))
    wakes.after(lambda: now.__setitem__(0, session_of(other)))
    wakes.after(lambda: append(other))


def test_the_end_of_a_handle_wakes(watch, file):
    ended = []

    def session():
        if ended:
            raise Gone("it has ended")
        return session_of(file)

    watch(session, wakes := Wakes())
    wakes.after(lambda: ended.append(True))


def test_all_who_follow_a_handle_are_woken_by_one_watcher(watch, file):
    looks = []

    def session():
        looks.append(True)
        return session_of(file)

    wakes = [Wakes() for _ in range(50)]
    for wake in wakes:
        watch(session, wake)
    assert len(looks) < 50
    append(file)
    eventually(lambda: all(wake.count for wake in wakes))


def test_who_has_left_is_woken_no_more_and_the_others_are(watch, file):
    gone, stays, elsewhere = Wakes(), Wakes(), Wakes()
    ends = [watch(lambda: session_of(file), gone), watch(lambda: session_of(file), gone, "another")]
    watch(lambda: session_of(file), stays)
    watch(lambda: session_of(file), elsewhere, "third")
    for end in ends:
        end()
    gone.count = 0
    stays.after(lambda: append(file))
    elsewhere.after(lambda: append(file))
    eventually(lambda: stays.count > 1 or elsewhere.count > 1)
    assert gone.count == 0


def test_who_comes_again_at_once_is_woken(watch, file):
    for _ in range(20):
        end = watch(lambda: session_of(file), wakes := Wakes())
        wakes.after(lambda: append(file))
        end()


def test_events_that_were_lost_wake_everybody(watch, file, monkeypatch):
    read = Inotify.read

    def lossy(self):
        read(self)
        return [followers.Event(-1, followers.OVERFLOW)]

    monkeypatch.setattr(Inotify, "read", lossy)
    other = file.with_name("other.jsonl")
    other.write_text("")
    first, second = Wakes(), Wakes()
    watch(lambda: session_of(file), first)
    watch(lambda: session_of(other), second, "another")
    append(file)
    eventually(lambda: first.count and second.count)


def test_a_look_that_fails_ends_nothing(watch, file, monkeypatch, caplog):
    monkeypatch.setattr(followers, "POLL_SECONDS", 0.05)
    watch(lambda: session_of(file), wakes := Wakes())
    trouble = [RuntimeError("of the test")]

    def session():
        if trouble:
            raise trouble.pop()
        return session_of(file)

    monkeypatch.setattr(
        followers._Watcher, "_see", lambda self, see=followers._Watcher._see: (session(), see(self))[1]
    )
    eventually(lambda: not trouble)
    wakes.after(lambda: append(file))
    assert "cannot watch" in caplog.text


def test_a_memory_chat_wakes_when_it_says_something_and_when_it_is_cleared():
    chat = MemoryChat()
    end = chat.watch(wakes := Wakes())
    chat.say("user", b"x")
    chat.clear()
    assert wakes.count == 2
    end()
    end()
    chat.say("user", b"x")
    assert wakes.count == 2
