"""A server that was just started says what one says that saw everything happen, in any made-up world."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents9core.errors import TreeError
from agents9core.harness.codex import finder as codex_finder
from agents9core.harness.codex.threads import Thread, Tui, assign
from agents9core.harness.omp import finder as omp_finder
from agents9core.resolver import Resolver
from tests.support.fakeproc import FakeProc, started_ms
from tests.support.fakestore import CodexHome, OmpHome, aged, claude_record, claude_transcript, uuid7

START = 6000
BIN = "/opt/codex/bin/codex"
CODEX_COMMANDS = ([], ["resume"], ["resume", "--last"], ["--disable", "daemon_auto_start"], ["frob"])
NUMBERS = st.integers(0, 3)
SECONDS = st.integers(0, 5)


@pytest.fixture(autouse=True)
def _every_look_is_fresh(every_look_is_fresh, monkeypatch):
    monkeypatch.setattr(codex_finder, "SHARED_SECONDS", -1)
    monkeypatch.setattr(omp_finder, "SHARED_SECONDS", -1)


def ask_all(resolver, *harnesses):
    """Ask for each agent's session; the fixture asks a second server, too."""
    for harness in harnesses:
        for agent in resolver.agents(harness):
            try:
                resolver.session(agent)
            except TreeError:
                continue


class CodexWorld:
    """Terminals, a daemon and threads that come and go."""

    def __init__(self, directory):
        self.proc = FakeProc(directory / "proc")
        self.home = CodexHome(directory / "home")
        self.environ = {"HOME": str(directory), "CODEX_HOME": str(self.home.path)}
        daemon = [BIN, "app-server", "--listen", "unix://", "--managed-daemon"]
        self.proc.put(900, "codex", daemon, start=START, environ=self.environ, cwd="/")
        self.resolver = Resolver(str(self.proc.root))

    def thread(self, number):
        return uuid7(started_ms(START) + number * 1000, number + 1)

    def start(self, number, where, command):
        argv = CODEX_COMMANDS[command % len(CODEX_COMMANDS)]
        argv = [*argv, self.thread(where)] if argv == ["resume"] and where else argv
        self.end(600 + number)
        start = START + number * 100 + where
        cwd = f"/srv/{where % 2}"
        self.proc.put(600 + number, "codex", [BIN, *argv], start=start, environ=self.environ, cwd=cwd)

    def end(self, pid):
        if (self.proc.root / str(pid)).exists():
            self.proc.end(pid)

    def open(self, number, where, holder):
        """Let the daemon, or a terminal, open a thread, at some time."""
        pid = 900 if holder < 3 else 600 + where
        if not (self.proc.root / str(pid)).exists():
            return
        meta = {"originator": "codex-tui", "cwd": f"/srv/{where % 2}"}
        self.proc.open(pid, 20 + number, self.home.rollout(self.thread(number), **meta), os.O_RDWR)
        self.lock(number, where + holder, pid)

    def lock(self, number, seconds, pid=900):
        path = self.home.lock(self.thread(number))
        aged(path, started_ms(START) / 1000 + seconds)
        self.proc.flock(pid, path)

    def close(self, number, *_):
        if (self.proc.root / "900" / "fd" / str(20 + number)).is_symlink():
            self.proc.close(900, 20 + number)


class OmpWorld:
    """Several omps without terminals, and files in one directory."""

    def __init__(self, directory):
        self.proc = FakeProc(directory / "proc")
        self.home = OmpHome(directory / ".omp")
        self.environ = {"HOME": str(directory)}
        self.resolver = Resolver(str(self.proc.root))

    def start(self, number, where, _):
        self.end(700 + number)
        start = START + number * 100 + where
        self.proc.put(700 + number, "omp", ["bun", "omp"], start=start, environ=self.environ, cwd="/srv/demo")

    def end(self, pid):
        if (self.proc.root / str(pid)).exists():
            self.proc.end(pid)

    def open(self, number, where, holder):
        id_ = uuid7(started_ms(START) + number * 1000, number + 1)
        path = self.home.transcript("--srv-demo--", id_, mtime=started_ms(START) / 1000 + where + holder)
        if holder > 3 and (self.proc.root / str(700 + where)).exists():
            self.proc.open(700 + where, 20 + number, path, os.O_WRONLY)

    def lock(self, number, where, *_):
        self.home.note(f"pts-{number}", "/srv/demo", f"/nowhere/{where}")

    def close(self, number, where, *_):
        if (self.proc.root / str(700 + where) / "fd" / str(20 + number)).is_symlink():
            self.proc.close(700 + where, 20 + number)


class ClaudeWorld:
    """Claudes, spares and others, with and without records."""

    def __init__(self, directory):
        self.proc = FakeProc(directory / "proc")
        self.home = directory / ".claude"
        self.environ = {"HOME": str(directory)}
        self.resolver = Resolver(str(self.proc.root), {"claude": str(self.home)})

    def start(self, number, where, command):
        self.end(800 + number)
        session = f"s{where}"
        words = [
            ["claude"],
            ["claude", "bg-spare"],
            ["claude", "--resume", session],
            ["odd"],
            ["claude", "x"],
        ]
        argv = words[command % len(words)]
        start = START + 5 * where + command % 5  # another process is another (pid, start)
        self.proc.put(800 + number, argv[0], argv, start=start, environ=self.environ, cwd="/srv/demo")

    def end(self, pid):
        if (self.proc.root / str(pid)).exists():
            self.proc.end(pid)

    def open(self, number, where, holder):
        claude_transcript(self.home, "-srv-demo", f"s{where}", "user")
        start = str(START + 5 * holder + where % 5)
        claude_record(self.home, 800 + number, sessionId=f"s{where}", procStart=start, spare=holder == 5)

    def lock(self, number, *_):
        (self.home / "sessions" / f"{800 + number}.json").unlink(missing_ok=True)

    close = lock


FIRST_PID = {CodexWorld: 600, OmpWorld: 700, ClaudeWorld: 800}
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["start", "start", "end", "open", "open", "lock", "close"]), NUMBERS, NUMBERS, SECONDS
    ),
    max_size=12,
)


@pytest.mark.parametrize("world", list(FIRST_PID))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS)
def test_what_was_seen_before_changes_no_answer(world, events):
    with tempfile.TemporaryDirectory() as directory:
        made = world(Path(directory))
        for event, number, where, seconds in events:
            if event == "end":
                made.end(FIRST_PID[world] + number)
            else:
                getattr(made, event)(number, where, seconds)
            ask_all(made.resolver, "claude", "codex", "omp")


TUIS = st.builds(
    Tui,
    key=st.tuples(st.integers(1, 9), st.just(1)),
    started_ms=st.integers(0, 9),
    directory=st.sampled_from(["/a", "/b", None]),
    resumes=st.sampled_from([None, None, uuid7(1, 1), uuid7(2, 2)]),
    picks=st.booleans(),
)
THREADS = st.builds(
    Thread,
    id=st.integers(1, 6).map(lambda number: uuid7(number, number)),
    via=st.just("fd"),
    written_ns=st.just(0),
    opened_ns=st.integers(0, 9).map(lambda ms: ms * 1_000_000),
)


@given(st.lists(TUIS, unique_by=lambda tui: tui.key), st.lists(THREADS, unique_by=lambda thread: thread.id))
def test_no_thread_is_given_twice_nor_by_the_order_of_things(tuis, threads):
    given = assign(tuis, threads)
    assert len(set(given.values())) == len(given)
    assert assign(tuis[::-1], threads[::-1]) == given
