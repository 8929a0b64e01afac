"""A system that fails: each front end says so, others are served, and when it is over it is over.

The faults of the file system are put between the tree and the system: what opens, looks at, lists or reads
a file below a directory gets an error instead.
"""

import contextlib
import errno
import functools
import os
import time
import urllib.error
import urllib.request

import pytest

from agents9core.files import statx as statx_module
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.ninep.dialect import DIALECTS
from davserver.server.http_server import HttpServer
from tests.davserver.ninep.conftest import Refused, Talk
from tests.e2e.machine import Machine
from tests.support.waiting import eventually

pytestmark = pytest.mark.e2e

MESSAGE, TRANSCRIPT, CHAT = (
    f"active/claude/601/{leaf}" for leaf in ("chat/00000001-assistant", "transcript", "chat")
)
MIRRORED = "claude/projects/-srv-demo/{}"
OTHER = "active/codex/611/chat/00000000-user"
CALLS = ("open", "pread", "listdir", "statx", "fstat")


class Faults:
    """Errors of the calls that reach what is below a directory."""

    def __init__(self, monkeypatch, below) -> None:
        self.below = str(below)
        self.number = 0
        self.calls: frozenset[str] = frozenset()
        for name in ("open", "pread", "listdir", "fstat"):
            monkeypatch.setattr(os, name, functools.partial(self._call, name, getattr(os, name)))
        monkeypatch.setattr(statx_module, "_statx", functools.partial(self._statx, statx_module._statx))

    def fail(self, number, calls) -> None:
        """Let *calls* fail from now on."""
        self.number, self.calls = number, frozenset(calls)

    def end(self) -> None:
        """Let nothing fail any more."""
        self.calls = frozenset()

    def _is_hit(self, name, at, dir_fd=None) -> bool:
        if name not in self.calls:
            return False
        if isinstance(at, int):
            at = os.readlink(f"/proc/self/fd/{at}")
        elif dir_fd is not None:
            at = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), os.fsdecode(at))
        return os.fsdecode(at).startswith(self.below)

    def _call(self, name, call, at, *arguments, **options):
        if self._is_hit(name, at, options.get("dir_fd")):
            raise OSError(self.number, os.strerror(self.number))
        return call(at, *arguments, **options)

    def _statx(self, call, fd, *arguments):
        if self._is_hit("statx", fd):
            statx_module.ctypes.set_errno(self.number)
            return -1
        return call(fd, *arguments)


def fetched(url):
    """Return the status, and the bytes where it is 200."""
    try:
        with urllib.request.urlopen(url, timeout=20) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, b""


class Doors:
    """Both front ends to a machine whose claude has said two things, and the faults of where it keeps
    them."""

    def __init__(self, base, monkeypatch, door_of) -> None:
        self.machine = Machine(base)
        self.machine.says("assistant", [{"type": "text", "text": "two"}], 2)
        self.mirrored = MIRRORED.format(self.machine.transcript.name)
        self.faults = Faults(monkeypatch, self.machine.transcript.parent.parent)
        root = build_tree(Resolver(str(self.machine.proc), {}))
        self.url = door_of(root)
        self.talks = [Talk(root, version) for version in DIALECTS]
        self.fid = 10

    def get(self, path):
        return fetched(f"{self.url}/{path}")

    def read(self, talk, path):
        """Return a file's bytes over 9P, or the number of the error."""
        self.fid += 1
        talk.walk(0, self.fid)
        try:
            for name in path.split(
                "/"
            ):  # as the kernel's client does: of several, the first error alone is told
                talk.walk(self.fid, self.fid, name)
            talk.open(self.fid)
            return talk.read(self.fid)
        except Refused as exc:
            return exc.errno
        finally:
            talk.clunk(self.fid)

    def answers(self, path):
        """Return what each front end answers, HTTP first."""
        return [self.get(path), *(self.read(talk, path) for talk in self.talks)]

    def well(self, path, data):
        """Tell whether every front end serves these bytes."""
        return self.answers(path) == [(200, data), *[data] * len(self.talks)]

    def all_well(self):
        transcript = self.machine.transcript.read_bytes()
        return (
            self.well(MESSAGE, b"two\n")
            and self.well(TRANSCRIPT, transcript)
            and self.well(self.mirrored, transcript)
            and self.get("active/claude/") == (200, b"601/\n")
            and self.get(CHAT + "/")[1].count(b"\n") == 2
        )


@pytest.fixture
def door_of():
    """Opens an HTTP front end to a tree; returns its address."""
    with contextlib.ExitStack() as stack:

        def opened(root):
            peers = Peers()
            front_end = HttpServer(App(root), [("127.0.0.1", 0)], peers)
            front_end.start()
            stack.callback(peers.close)
            stack.callback(front_end.stop)
            host, port = front_end.addresses[0]
            return f"http://{host}:{port}"

        yield opened


@pytest.fixture
def doors(tmp_path, monkeypatch, door_of):
    made = Doors(tmp_path, monkeypatch, door_of)
    assert made.all_well()
    return made


NUMBERS = [errno.EIO, errno.EMFILE, errno.ENOMEM]
REFUSALS = (errno.EIO, errno.ENOENT, errno.ESTALE, errno.EIDRM)


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
def test_a_file_system_that_fails_costs_only_what_is_on_it(doors, number):
    doors.faults.fail(number, CALLS)
    over_http, *over_9p = doors.answers(doors.mirrored)
    assert (over_http[0], set(over_9p)) == (503, {errno.EIO})
    for path in (MESSAGE, TRANSCRIPT):  # what cannot be found out of an agent is unknown: 404
        over_http, *over_9p = doors.answers(path)
        assert over_http[0] in (503, 404)
        assert set(over_9p) <= set(REFUSALS)
    assert doors.get("active/claude/") == (200, b"601/\n")
    assert doors.get("active/claude/601/session")[0] == 200
    assert doors.well(OTHER, b"hi\n")
    doors.faults.end()
    eventually(doors.all_well)


@pytest.mark.parametrize("grown", [False, True])
def test_a_call_that_fails_is_no_bug_and_changes_nothing(doors, grown, caplog):
    for call in CALLS:
        if grown:
            doors.machine.writes(" \n")
        doors.faults.fail(errno.EIO, [call])
        for path in (CHAT, "claude/projects", "active/claude", "active/claude/601"):
            assert doors.get(path)[0] in (200, 404, 503)
        for path in (MESSAGE, TRANSCRIPT, doors.mirrored, "active/claude/601/chat.md"):
            over_http, *over_9p = doors.answers(path)
            assert over_http[0] in (200, 404, 503)
            assert all(isinstance(said, bytes) or said in REFUSALS for said in over_9p)
        assert doors.well(OTHER, b"hi\n")
        assert caplog.records == []
        doors.faults.end()
        eventually(doors.all_well)


def test_a_store_that_cannot_be_listed_is_not_shown_empty(doors):
    """A copy of it would take what is not listed for removed."""
    for call in ("open", "listdir"):
        doors.faults.fail(errno.EMFILE, [call])
        assert doors.get("claude/projects/") == (503, b"")
        assert doors.get("claude/projects/-srv-demo/") == (503, b"")
    doors.faults.end()
    assert doors.get("claude/projects/") == (200, b"-srv-demo/\n")


def test_faults_leak_no_descriptor(doors):
    def everything_fails_once():
        for call in CALLS:
            doors.faults.fail(errno.EIO, [call])
            doors.get(CHAT)
            for path in (MESSAGE, TRANSCRIPT, doors.mirrored):
                doors.answers(path)
        doors.faults.end()
        eventually(doors.all_well)

    everything_fails_once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        everything_fails_once()
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)


# -- a clock that is set back, or forth


def test_a_clock_that_is_set_changes_nothing(doors, monkeypatch):
    now, now_ns = time.time, time.time_ns
    for number, by_seconds in enumerate((-86_400, -1, 86_400, -2_000_000_000), 1):
        monkeypatch.setattr(time, "time", lambda: now() + by_seconds)  # noqa: B023 - until the next round
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + by_seconds * 10**9)  # noqa: B023
        name = f"active/claude/601/chat/{number + 1:08d}-assistant"
        assert doors.get(MESSAGE) == (200, b"two\n")
        doors.machine.says("assistant", [{"type": "text", "text": "three"}], 3)
        assert doors.well(name, b"three\n")
        whole = doors.machine.transcript.read_text()
        doors.machine.transcript.write_text(whole.replace("three", "seven"))
        eventually(lambda: doors.well(name, b"seven\n"))  # noqa: B023
