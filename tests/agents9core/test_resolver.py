"""Which agents run, and that an answer is never another process's."""

import logging
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents9core import resolver as resolver_module
from agents9core.errors import Gone, NotFound
from agents9core.harness.claude import finder as claude_finder
from agents9core.harness.codex import finder as codex_finder
from agents9core.harness.table import HARNESSES
from agents9core.resolver import Agent, Resolver
from agents9core.routes import process as process_module
from tests.support.fakeproc import BTIME
from tests.support.fakestore import SUBAGENT, CodexHome, claude_record, claude_transcript, uuid7

A, B = uuid7(1_795_000_100_000, 1), uuid7(1_795_000_200_000, 2)
ID = "79f8e585-4259-4a7e-a277-afb256243c22"
OTHER = "1d4ca084-4878-4d8c-9c1f-0a4b0c4e7a11"
ENVIRON = {"CODEX_HOME": "/nowhere"}


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(resolver_module, "_SCAN_SHARE", 0)
    monkeypatch.setattr(codex_finder, "SHARED_SECONDS", -1)


def pids(resolver, harness):
    return [agent.pid for agent in resolver.agents(harness)]


def test_the_harnesses_are_in_their_order():
    assert list(HARNESSES) == ["claude", "codex", "omp", "pi", "dsh", "hermes"]


def test_a_whole_table(proc, tmp_path, resolver):
    user, work = tmp_path / "u", tmp_path / "u" / ".claude-work"
    store = CodexHome(tmp_path / "codexhome")
    own, child = store.rollout(A, source="cli", cwd="/srv/demo"), store.rollout(B, **SUBAGENT)
    environ = {"HOME": str(user), "PATH": "/usr/bin"}
    claude_finder = "/home/u/.local/share/claude/versions/2.1.332"

    def put(pid, comm, argv, **more):
        proc.put(pid, comm, argv, start=pid * 10, cwd="/srv/demo", **{"environ": environ, **more})

    put(601, "claude", ["claude"], exe=claude_finder)
    put(602, "2.1.332", ["claude", "--resume"], exe=claude_finder)
    put(
        603,
        "node",
        ["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"],
        environ={**environ, "CLAUDE_CONFIG_DIR": str(work)},
    )
    put(604, "2.1.271", ["/home/u/.claude/remote/ccd-cli/2.1.271", "--output-format", "stream-json"])
    put(605, "vim", ["vim", "claude.md"])
    put(606, "bash", ["bash", "-c", "pgrep -f claude; codex-watch"])
    put(607, "weird) R 1 (x", ["./weird) R 1 (x"])
    put(608, "claude", [], state="Z")
    proc.put(609, "sleep", ["sleep", "999"], start=99999)
    put(610, "node", ["node", "/usr/bin/codex"], exe="/usr/bin/node")
    put(
        611,
        "codex",
        ["/opt/codex/bin/codex"],
        environ={**environ, "CODEX_HOME": str(store.path)},
        fds={12: own, 14: child, 15: store.path / "state_5.sqlite", 16: f"{own}.old (deleted)"},
    )
    put(612, "codex", ["/opt/codex/bin/codex", "mcp-server"])
    put(613, "claude", ["claude"], uid=os.getuid() + 1)
    proc.refuse(613)
    claude_record(user / ".claude", 601, sessionId=ID, procStart="6010")
    claude_record(user / ".claude", 603, sessionId=ID, procStart="6030")
    claude_record(work, 603, sessionId=OTHER, procStart="6030")
    claude_record(user / ".claude", 609, sessionId=OTHER, procStart="6090")

    assert pids(resolver, "claude") == [601, 602, 603, 604]
    assert pids(resolver, "codex") == [611]
    said = {agent.pid: resolver.session(agent).id for agent in resolver.agents("claude")}
    assert said == {601: ID, 602: None, 603: OTHER, 604: None}
    assert resolver.session(resolver.agent("codex", 611)).id == A
    for harness, pid in (("claude", 609), ("claude", 608), ("codex", 610), ("codex", 612), ("claude", 613)):
        with pytest.raises(NotFound):
            resolver.agent(harness, pid)


@pytest.mark.parametrize("name", list(HARNESSES))
def test_a_shell_that_speaks_of_a_harness_is_none(proc, resolver, name):
    proc.put(5, "bash", ["bash", "-c", name])
    proc.put(6, "bash", ["bash", name])
    assert resolver.agents(name) == []


def test_an_agent_is_a_harness_a_pid_and_a_start(proc, resolver):
    proc.put(5, "claude", ["claude"], start=77)
    assert resolver.agents("claude") == [resolver.agent("claude", 5)] == [Agent("claude", 5, 77)]
    assert resolver.started_ns(Agent("claude", 5, 77)) == BTIME * 10**9 + 770_000_000


@pytest.mark.parametrize(("harness", "pid"), [("claude", 6), ("codex", 5), ("claude", 0), ("claude", 2**70)])
def test_an_agent_that_does_not_run_is_not_found(proc, resolver, harness, pid):
    proc.put(5, "claude", ["claude"])
    with pytest.raises(NotFound):
        resolver.agent(harness, pid)


def test_every_listing_sees_who_came_and_went(proc, resolver):
    for pid in (5, 6):
        proc.put(pid, "claude", ["claude"])
        assert pids(resolver, "claude") == list(range(5, pid + 1))
    proc.end(5)
    assert pids(resolver, "claude") == [6]


def test_an_agent_looks_at_one_process_alone(proc, resolver, monkeypatch):
    for pid in range(5, 10):
        proc.put(pid, "claude", ["claude"])
    read = []
    real = process_module._read
    monkeypatch.setattr(process_module, "_read", lambda path, limit: read.append(path) or real(path, limit))
    resolver.agent("claude", 7)
    assert {Path(path).parent.name for path in read} == {"7"}


# Identity


def test_a_process_that_ended_is_gone(proc, resolver, fresh):
    proc.put(5, "claude", ["claude"])
    agent = resolver.agent("claude", 5)
    proc.end(5)
    for ask in (resolver.session, resolver.cwd):
        with pytest.raises(Gone):
            ask(agent)


@pytest.mark.parametrize(
    "now", [{"start": 78}, {"start": 77, "state": "Z"}, {"start": 77, "uid": os.getuid() + 1}]
)
def test_a_recycled_pid_is_another_agent(proc, resolver, now, fresh):
    proc.put(5, "claude", ["claude"], start=77)
    agent = resolver.agent("claude", 5)
    proc.put(5, "claude", ["claude"], **now)
    with pytest.raises(Gone):
        resolver.session(agent)


def test_a_process_that_is_recycled_during_the_look_is_gone(proc, resolver, monkeypatch, fresh):
    proc.put(5, "claude", ["claude"], start=77)
    agent = resolver.agent("claude", 5)
    finder = resolver._finders["claude"]
    real = type(finder).resolve

    def resolve(self, process, home, siblings):
        proc.put(5, "claude", ["claude"], start=78)
        return real(self, process, home, siblings)

    monkeypatch.setattr(type(finder), "resolve", resolve)
    with pytest.raises(Gone):
        resolver.session(agent)


def test_one_that_goes_during_a_listing_is_left_out(proc, resolver, monkeypatch, fresh):
    for pid in (5, 6):
        proc.put(pid, "claude", ["claude"])
    finder = resolver._finders["claude"]
    real = type(finder).resolve

    def resolve(self, process, home, siblings):
        if process.pid == 5:
            proc.end(5)
        return real(self, process, home, siblings)

    monkeypatch.setattr(type(finder), "resolve", resolve)
    assert pids(resolver, "claude") == [6]


def test_an_exec_under_the_same_pid_is_noticed_by_its_name(proc, resolver):
    proc.put(5, "node", ["node", "/usr/bin/codex"], environ=ENVIRON)
    assert pids(resolver, "codex") == []
    proc.put(5, "codex", ["/opt/codex/bin/codex"], environ=ENVIRON)
    assert pids(resolver, "codex") == [5]
    proc.put(5, "bash", ["bash"])
    assert pids(resolver, "codex") == []


@pytest.mark.parametrize("layouts", [(1, 2), (None, None)], ids=["shown", "refused"])
def test_an_exec_that_keeps_the_name_is_noticed(proc, resolver, layouts):
    proc.put(5, "codex", ["/bin/sh", "/usr/local/bin/codex"], environ=ENVIRON, layout=layouts[0])
    assert pids(resolver, "codex") == []
    proc.put(5, "codex", ["/opt/codex/bin/codex"], environ=ENVIRON, layout=layouts[1])
    assert pids(resolver, "codex") == [5]


def test_a_copy_of_an_agent_that_has_not_run_its_own_program_is_none(proc, resolver):
    directory = proc.put(5, "claude", ["claude"])
    fields = (directory / "stat").read_text().split()
    fields[8] = str(0x400040)
    (directory / "stat").write_text(" ".join(fields))
    assert pids(resolver, "claude") == []


def test_a_large_table_is_not_asked_twice(proc, resolver, monkeypatch):
    worker = proc.put(10, "worker", ["worker"])
    for pid in range(11, 10_000):
        os.symlink(worker, proc.root / str(pid))
    for pid in range(20_000, 20_020):
        proc.put(pid, "claude", ["claude"])
    read = Counter()
    real = process_module._read

    def reads(path, limit):
        read[os.path.basename(path)] += 1
        return real(path, limit)

    monkeypatch.setattr(process_module, "_read", reads)
    assert len(resolver.agents("claude")) == 20
    assert read["cmdline"] == 2 * 10_010
    read.clear()
    assert len(resolver.agents("claude")) == 20
    assert read["cmdline"] == 0
    assert (read["comm"], read["status"]) == (0, 20)
    assert read["stat"] <= 10_010 + 20


def test_a_listing_of_all_harnesses_is_one_scan(proc, resolver, monkeypatch):
    proc.put(5, "claude", ["claude"])
    scans = []
    real = Resolver._scan_processes
    monkeypatch.setattr(Resolver, "_scan_processes", lambda self: scans.append(1) or real(self))
    for name in HARNESSES:
        resolver.agents(name)
    assert len(scans) == 1
    for name in HARNESSES:
        resolver.agents(name)
    assert len(scans) == 2


# Following


def test_an_answer_may_be_as_old_as_it_says(proc, resolver, tmp_path, monkeypatch):
    proc.put(5, "claude", ["claude"], environ={"HOME": str(tmp_path)})
    now = [1000.0]
    monkeypatch.setattr(resolver_module.time, "monotonic", lambda: now[0])
    claude_record(tmp_path / ".claude", 5, sessionId=ID, procStart="5000")
    agent = resolver.agent("claude", 5)
    until = now[0] + resolver_module.REUSE_SECONDS
    claude_record(tmp_path / ".claude", 5, sessionId=OTHER, procStart="5000")
    now[0] += resolver_module.REUSE_SECONDS * 0.9
    assert resolver.session(agent).id == ID
    assert resolver.reusable_until(agent) == until
    now[0] += resolver_module.REUSE_SECONDS * 0.2
    assert resolver.session(agent).id == OTHER
    assert resolver_module.REUSE_SECONDS * 2 <= 0.1


def test_one_that_had_not_resolved_is_asked_again(proc, resolver, tmp_path, fresh):
    proc.put(5, "claude", ["claude"], environ={"HOME": str(tmp_path)})
    (agent,) = resolver.agents("claude")
    assert resolver.session(agent).via == "none"
    claude_record(tmp_path / ".claude", 5, sessionId=ID, procStart="5000")
    assert resolver.agents("claude") == [agent]
    assert resolver.session(agent).id == ID


def test_cwd_is_the_process_s_then_the_record_s_then_unknown(proc, resolver, tmp_path, fresh):
    proc.put(5, "claude", ["claude"], environ={"HOME": str(tmp_path)}, cwd="/srv/demo")
    claude_record(tmp_path / ".claude", 5, sessionId=ID, procStart="5000", cwd="/srv/said")
    agent = resolver.agent("claude", 5)
    assert resolver.cwd(agent) == "/srv/demo"
    (proc.root / "5" / "cwd").unlink()
    assert resolver.cwd(agent) == "/srv/said"
    claude_record(tmp_path / ".claude", 5, sessionId=ID, procStart="5000")
    assert resolver.cwd(agent) is None


def test_a_daemon_that_just_started_is_seen(proc, resolver, tmp_path, fresh):
    store = CodexHome(tmp_path / "home")
    environ = {"CODEX_HOME": str(store.path)}
    proc.put(5, "codex", ["/b/codex"], environ=environ, cwd="/srv/demo")
    agent = resolver.agent("codex", 5)
    daemon = ["/b/codex", "app-server", "--listen", "unix://", "--managed-daemon"]
    thread = uuid7(1_795_001_000_000)
    rollout = store.rollout(thread, cwd="/srv/demo", originator="codex-tui")
    proc.put(6, "codex", daemon, environ=environ, fds={9: rollout})
    assert resolver.session(agent).id == thread


# Roots


def test_a_given_root_that_is_not_there_is_an_empty_harness_and_said_once(proc, tmp_path, caplog):
    proc.put(5, "claude", ["claude"])
    proc.put(6, "codex", ["/b/codex"], environ=ENVIRON)
    root = tmp_path / "later"
    resolver = Resolver(str(proc.root), {"claude": str(root)})
    with caplog.at_level(logging.WARNING):
        assert resolver.agents("claude") == resolver.agents("claude") == []
        with pytest.raises(NotFound):
            resolver.agent("claude", 5)
    assert caplog.text.count(str(root)) == 1
    assert pids(resolver, "codex") == [6]
    root.mkdir()
    assert pids(resolver, "claude") == [5]


def test_a_process_that_names_its_own_home_needs_no_given_one(proc, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    proc.put(601, "claude", ["claude"], environ={"CLAUDE_CONFIG_DIR": str(own)}, cwd="/srv/demo")
    resolver = Resolver(str(proc.root), {"claude": str(tmp_path / "missing")})
    assert [agent.pid for agent in resolver.agents("claude")] == [601]


def test_a_fault_of_a_finder_costs_its_agent_only(proc, tmp_path, monkeypatch, caplog):
    for pid in (601, 602):
        proc.put(pid, "claude", ["claude"], environ={"HOME": str(tmp_path)}, cwd="/srv/demo")
    resolver = Resolver(str(proc.root))
    resolve = claude_finder.Claude.resolve

    def fails_for_one(self, process, *rest):
        if process.pid == 601:
            raise ZeroDivisionError
        return resolve(self, process, *rest)

    monkeypatch.setattr(claude_finder.Claude, "resolve", fails_for_one)
    assert [agent.pid for agent in resolver.agents("claude")] == [601, 602]
    assert resolver.session(resolver.agent("claude", 601)).via == "none"
    assert "claude/601 cannot be resolved" in caplog.text


def test_given_roots_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Resolver(roots={"claude": "x/../here"}).roots == {"claude": str(tmp_path / "here")}


# Bad tables, and several askers


def test_processes_of_nonsense_cost_themselves_only(proc, resolver):
    proc.put(5, "claude", ["claude"])
    for pid, stat in ((6, b""), (7, b"\xff" * 5000), (8, b"8 (claude"), (9, b"9 (claude) S 1 2 3")):
        proc.put(pid, "claude", ["claude"])
        (proc.root / str(pid) / "stat").write_bytes(stat)
    (proc.root / "10").mkdir()
    (proc.root / "11").write_text("a file")
    fifo = proc.put(12, "claude", ["claude"])
    (fifo / "stat").unlink()
    os.mkfifo(fifo / "stat")
    directory = proc.put(13, "claude", ["claude"])
    (directory / "cmdline").unlink()
    (directory / "cmdline").mkdir()
    (proc.root / "14").symlink_to(proc.root / "14")
    proc.put(15, "claude\n) S (", ["\udcff", "x" * 200_000], environ={"\udcff": "\udcff"}, exe="\udcff")
    assert pids(resolver, "claude") == [5]


def test_several_ask_at_once(proc, resolver, tmp_path, fresh):
    home = tmp_path / ".claude"
    claude_transcript(home, "-a", ID, "user")
    for pid in range(5, 10):
        proc.put(pid, "claude", ["claude"], environ={"HOME": str(tmp_path)})
        claude_record(home, pid, sessionId=ID, procStart="5000")

    def ask(_number):
        for _ in range(20):
            for agent in resolver.agents("claude"):
                assert resolver.session(agent).id == ID

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(6))) == [None] * 6


def test_a_slow_look_holds_nobody_up(proc, resolver, monkeypatch, fresh):
    for pid in (5, 6):
        proc.put(pid, "claude", ["claude"])
    one, other = resolver.agents("claude")
    waiting, go = threading.Event(), threading.Event()
    finder = resolver._finders["claude"]
    real = type(finder).resolve

    def resolve(self, process, home, siblings):
        if process.pid == 5:
            waiting.set()
            assert go.wait(10)
        return real(self, process, home, siblings)

    monkeypatch.setattr(type(finder), "resolve", resolve)
    slow = threading.Thread(target=resolver.session, args=(one,))
    slow.start()
    assert waiting.wait(10)
    assert resolver.session(other).via == "none"
    go.set()
    slow.join()


def test_a_look_that_took_long_does_not_replace_a_later_one(proc, resolver, tmp_path, monkeypatch):
    proc.put(5, "claude", ["claude"], environ={"HOME": str(tmp_path)})
    claude_record(tmp_path / ".claude", 5, sessionId=ID, procStart="5000")
    agent = resolver.agent("claude", 5)
    time.sleep(resolver_module.REUSE_SECONDS)
    finder = resolver._finders["claude"]
    real = type(finder).resolve
    looked, go = threading.Event(), threading.Event()

    def resolve(self, process, home, siblings):
        session = real(self, process, home, siblings)
        if threading.current_thread() is slow:
            looked.set()
            assert go.wait(10)
        return session

    slow = threading.Thread(target=resolver.session, args=(agent,))
    monkeypatch.setattr(type(finder), "resolve", resolve)
    slow.start()
    assert looked.wait(10)
    claude_record(tmp_path / ".claude", 5, sessionId=OTHER, procStart="5000")
    assert resolver.session(agent).id == OTHER
    go.set()
    slow.join()
    assert resolver.session(agent).id == OTHER
