"""Which processes are codex, and which thread each is in."""

import json
import os
import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agents9core.errors import Malformed, NotFound, TooLarge
from agents9core.files.zstd import LARGEST, inflate
from agents9core.harness.codex import finder as codex_finder
from agents9core.harness.codex import process as codex_process
from agents9core.harness.codex import store as rollout_module
from agents9core.harness.codex.store import parse_header
from agents9core.harness.codex.threads import Thread
from agents9core.harness.codex.titles import ThreadNames
from agents9core.resolver import Resolver
from agents9core.routes.choice import OpenThreads, choose
from agents9core.routes.process import ProcessTable
from agents9core.routes.uuid7 import born_ms, parse_uuid
from tests.support.fakeproc import started_ms
from tests.support.fakestore import SUBAGENT, CodexHome, uuid7

DAY_MS = 86_400_000
START = 6110
NOON_MS = started_ms(START) + 5000
"""When the first thread was started: a few seconds after its process."""
A, B, C, D = (uuid7(NOON_MS + 60_000 * number, number) for number in range(1, 5))
OLD = uuid7(NOON_MS - 10 * DAY_MS, 99)
V4 = "cf4def41-21e0-4b91-8c1e-0123456789ab"
BIN = "/opt/codex/bin/codex"
DAEMON = [BIN, "app-server", "--listen", "unix://", "--analytics-default-enabled", "--managed-daemon"]
TUI = {"originator": "codex-tui", "source": "vscode", "thread_source": "user", "cwd": "/srv/demo"}


@pytest.fixture(autouse=True)
def _every_look_is_fresh(every_look_is_fresh, monkeypatch):
    monkeypatch.setattr(codex_finder, "SHARED_SECONDS", -1)


@pytest.fixture
def home(tmp_path):
    return CodexHome(tmp_path / "codexhome")


@pytest.fixture
def put(proc, home):
    def put(pid=611, argv=(), start=START, cwd="/srv/demo", **more):
        more.setdefault("environ", {"HOME": "/home/u", "CODEX_HOME": str(home.path)})
        return proc.put(pid, "codex", [BIN, *argv], start=start, cwd=cwd, **more)

    return put


@pytest.fixture
def resolve(resolver):
    def resolve(pid=611):
        return resolver.session(resolver.agent("codex", pid))

    return resolve


def said(session):
    return session.via, session.id


def files(session):
    return [(os.path.join(source.root.path, *source.path), source.limit) for source in session.sources]


# Which processes


@pytest.mark.parametrize(
    "argv",
    [
        ["codex"],
        [BIN, "fix the bug"],
        [BIN, "--", "login"],
        [BIN, "-m", "login"],
        [BIN, "-c", "model=mcp", "--search"],
        [BIN, "resume", A],
        [BIN, "exec", "--json", "hi"],
        [BIN, "-C", "/srv", "e", "hi"],
        [BIN, "review"],
        [BIN, "fork", "--last"],
        [BIN, "app-server"],
        [BIN, "app-server", "--listen", "stdio://"],
        [BIN, "login page is broken"],
        DAEMON,
    ],
)
def test_an_agent_is_recognised(proc, argv):
    proc.put(5, "codex", argv)
    assert codex_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["bash", "/usr/bin/codex"],
        ["codex-linux-sandbox", "ls"],
        ["/opt/apply_patch", "x"],
        ["applypatch", "x"],
        [BIN, "app-server", "proxy"],
        [BIN, "app-server", "daemon", "pid-update-loop"],
        [BIN, "app-server", "daemon", "start"],
        [BIN, "app-server", "generate-ts"],
        [BIN, "exec-server"],
        [BIN, "mcp", "list"],
        [BIN, "mcp-server"],
        [BIN, "-c", "a=b", "mcp-server"],
        [BIN, "login"],
        [BIN, "logout"],
        [BIN, "completion", "bash"],
        [BIN, "sandbox", "linux", "ls"],
        [BIN, "debug", "seatbelt"],
        [BIN, "apply", "7"],
        [BIN, "update"],
        [BIN, "features"],
        [BIN, "agents"],
        [BIN, "--version"],
        [BIN, "-V"],
        [BIN, "exec", "--help"],
        [BIN, "--codex-run-as-apply-patch", "x"],
    ],
)
def test_a_helper_is_not(proc, argv):
    proc.put(5, "codex", argv)
    assert not codex_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        (".codex-wrapped", ["/etc/profiles/per-user/u/bin/codex"], "/nix/store/a/bin/.codex-wrapped"),
        (".codex-wrapped_", ["/nix/store/a/bin/.codex-wrapped_"], None),
        ("codex-raw", ["/nix/store/bbb-codex/bin/codex-raw"], None),
        ("codex-unwrapped", ["/nix/store/ccc-codex-0.131.0/bin/codex-unwrapped"], None),
        ("codex-x86_64-un", ["/home/u/bin/codex-x86_64-unknown-linux-musl", "exec", "hi"], None),
        ("codex-aarch64-u", ["codex-aarch64-unknown-linux-gnu"], None),
        ("cx", ["cx"], "/usr/lib/codex/codex-bin"),
        ("cx", ["codex"], "/opt/cx"),
    ],
)
def test_a_packager_s_name_hides_no_agent(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert codex_process.matches(ProcessTable(str(proc.root)).read_own(5))


@pytest.mark.parametrize(
    ("comm", "argv", "exe"),
    [
        ("MainThread", ["node", "/usr/bin/codex"], "/usr/bin/node"),
        ("codex", ["node", "/usr/bin/codex"], "/usr/bin/node"),
        ("tail", ["tail", "-f", "codex"], "/usr/bin/tail"),
        ("vim", ["vim", "codex"], "/usr/bin/vim"),
        ("codex", ["/bin/bash", "/usr/local/bin/codex"], "/bin/bash"),
        ("bash", ["codex"], "/bin/bash"),
        ("apply_patch", ["apply_patch", "x"], "/nix/store/a/bin/.codex-wrapped"),
        ("codex-code-mode", ["codex-code-mode-host"], "/opt/codex-code-mode-host"),
        (".codex-wrapped", ["/nix/store/a/bin/codex", "mcp-server"], None),
    ],
)
def test_what_only_speaks_of_it_is_not(proc, comm, argv, exe):
    proc.put(5, comm, argv, exe=exe)
    assert not codex_process.matches(ProcessTable(str(proc.root)).read_own(5))


def test_what_may_be_a_subcommand_is_listed_by_its_thread_alone(put, home, resolver):
    put(argv=["frobnicate", "list"])
    assert resolver.agents("codex") == []
    put(argv=["frobnicate", "list"], fds={12: home.rollout(A)})
    assert [agent.pid for agent in resolver.agents("codex")] == [611]


@pytest.mark.parametrize("argv", [["fix it"], ["--", "frobnicate"], ["--not-known-yet", "value"], ["Hello"]])
def test_a_prompt_is_listed_before_there_is_a_thread(put, resolver, argv):
    put(argv=argv)
    assert [agent.pid for agent in resolver.agents("codex")] == [611]


# By what it holds


@pytest.fixture
def unnamed(proc, home):
    """A process that no name gives away."""

    def unnamed(pid=700, argv=("/opt/company/assistant",)):
        proc.put(pid, os.path.basename(argv[0]), list(argv), environ={"HOME": "/home/u"})
        return Resolver(str(proc.root), {"codex": str(home.path)})

    return unnamed


def listed(resolver):
    return [(agent.pid, resolver.session(agent).id) for agent in resolver.agents("codex")]


def test_an_own_rollout_that_is_written_shows_a_codex(unnamed, proc, home):
    resolver = unnamed()
    assert listed(resolver) == []
    proc.open(700, 12, home.rollout(A), os.O_RDWR | os.O_APPEND)
    assert listed(resolver) == listed(unnamed()) == [(700, A)]
    assert resolver.agent("codex", 700).pid == 700


@pytest.mark.parametrize("flags", [os.O_RDONLY, None])
def test_a_rollout_that_is_read_shows_none(unnamed, proc, home, flags):
    resolver = unnamed()
    proc.open(700, 12, home.rollout(A), flags)
    assert listed(resolver) == []
    with pytest.raises(NotFound):
        resolver.agent("codex", 700)


def test_a_subagent_s_rollout_shows_none(unnamed, proc, home):
    resolver = unnamed()
    proc.open(700, 12, home.rollout(A, **SUBAGENT), os.O_RDWR)
    assert listed(resolver) == []


@pytest.mark.parametrize("name", ["vim", "tail", "bash", "rsync", "python3"])
def test_an_editor_that_writes_a_rollout_is_none(unnamed, proc, home, name):
    resolver = unnamed(argv=(f"/usr/bin/{name}", "x"))
    proc.open(700, 12, home.rollout(A), os.O_RDWR)
    assert listed(resolver) == []


def test_the_lock_of_a_thread_shows_a_codex(unnamed, proc, home):
    resolver = unnamed()
    home.rollout(A)
    proc.flock(700, home.lock(A))
    assert listed(resolver) == listed(unnamed()) == [(700, A)]


def test_one_of_very_many_is_found_at_the_first_listing(unnamed, proc, home):
    for pid in range(1000, 1100):
        proc.put(pid, "worker", ["worker"])
    unnamed(pid=1099)
    proc.open(1099, 12, home.rollout(A), os.O_RDWR)
    assert listed(Resolver(str(proc.root), {"codex": str(home.path)})) == [(1099, A)]


def test_one_of_very_many_is_found_in_a_few_listings(unnamed, proc, home):
    for pid in range(1000, 1100):
        proc.put(pid, "worker", ["worker"])
    resolver = unnamed(pid=1099)
    assert listed(resolver) == []
    proc.open(1099, 12, home.rollout(A), os.O_RDWR)
    assert [(1099, A)] in [listed(resolver) for _ in range(8)]


def test_a_rollout_below_the_user_s_own_home_counts_where_another_is_given(proc, tmp_path):
    own, given = CodexHome(tmp_path / "u" / ".codex"), CodexHome(tmp_path / "given")
    proc.put(611, "codex", [BIN], environ={"HOME": str(tmp_path / "u")})
    resolver = Resolver(str(proc.root), {"codex": str(given.path)})
    assert listed(resolver) == [(611, None)]
    proc.open(611, 12, own.rollout(A), os.O_RDWR)
    assert listed(resolver) == [(611, A)]
    assert resolver.session(resolver.agent("codex", 611)).via == "fd"


def test_a_rollout_below_neither_home_does_not(proc, tmp_path):
    CodexHome(tmp_path / "u" / ".codex")
    other, given = CodexHome(tmp_path / "other"), CodexHome(tmp_path / "given")
    environ = {"HOME": str(tmp_path / "u")}
    proc.put(611, "codex", [BIN], environ=environ, fds={12: other.rollout(A)})
    assert listed(Resolver(str(proc.root), {"codex": str(given.path)})) == [(611, None)]


def test_the_node_wrapper_is_not(proc):
    proc.put(5, "node", ["node", "/usr/bin/codex"], exe="/usr/bin/node")
    assert not codex_process.matches(ProcessTable(str(proc.root)).read_own(5))


@given(st.lists(st.text(max_size=12) | st.sampled_from(["--", "-c", "-C", "exec", "resume"]), max_size=6))
def test_no_command_line_raises(argv):
    codex_process.parse_argv(tuple(argv))


# By open file


def test_the_rollout_that_is_open(put, home, resolve):
    path = home.rollout(A, cwd="/srv/demo", cli_version="0.171.0", source="cli")
    put(fds={3: "/dev/null", 12: path, 13: "socket:[9]"})
    session = resolve()
    assert said(session) == ("fd", A)
    assert files(session) == [(str(path), None)]
    assert (session.cwd, session.version, session.status) == ("/srv/demo", "0.171.0", None)


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"source": "cli"},
        {"source": "vscode", "thread_source": "user"},
        {"thread_source": "feature"},
        {"source": {"custom": "atlas"}},
        {"parent_thread_id": None, "thread_source": None},
    ],
)
def test_a_person_s_thread_is_own(put, home, resolve, meta):
    put(fds={12: home.rollout(A, **meta)})
    assert resolve().id == A


@pytest.mark.parametrize(
    "meta",
    [
        SUBAGENT,
        {"source": {"subagent": "review"}},
        {"source": {"subagent": {"other": "guardian"}}},
        {"source": {"internal": "memory_consolidation"}},
        {"parent_thread_id": A},
        {"thread_source": "subagent"},
        {"thread_source": "memory_consolidation"},
        {"thread_source": "guardian_review"},
    ],
)
def test_a_subagent_s_or_a_helper_s_thread_is_not(put, home, resolve, meta):
    put(fds={14: home.rollout(A), 12: home.rollout(B, **meta)})
    os.utime(home.rollout(B, **meta))
    assert resolve().id == A


def test_only_the_first_record_says_whose_it_is(put, home, resolve):
    path = home.rollout(B, **SUBAGENT)
    path.write_text(path.read_text() + json.dumps({"type": "session_meta", "payload": {"id": A}}) + "\n")
    put(fds={12: path})
    assert said(resolve()) == ("none", None)


def test_a_second_record_with_the_parent_s_id_is_not_the_identity(put, home, resolve):
    path = home.rollout(A, cwd="/srv/demo")
    meta = {"type": "session_meta", "payload": {"id": B, "cwd": "/srv/old", **SUBAGENT}}
    path.write_text(path.read_text() + json.dumps(meta) + "\n")
    put(fds={12: path})
    assert (resolve().id, resolve().cwd) == (A, "/srv/demo")


def test_a_file_of_2025_is_known_by_its_bare_first_line(put, home, resolve):
    first = json.dumps({"id": V4, "timestamp": "2025-09-10T18:58:38.331Z", "instructions": "x"})
    put(fds={12: home.rollout(V4, ms=NOON_MS, first=first)})
    assert said(resolve()) == ("fd", V4)


@pytest.mark.parametrize(
    "first",
    [
        "\0\0\0",
        "{",
        "[1]",
        "7",
        '{"type":"response_item","payload":{}}',
        "[" * 100_000,
        '{"type":"session_meta"}',
    ],
)
def test_a_file_with_a_damaged_first_line_is_known_by_its_name(put, home, resolve, first):
    put(fds={12: home.rollout(A, first=first)})
    assert said(resolve()) == ("fd", A)


@pytest.mark.parametrize("id_", ["../../x", "", 7, None, ["a"], "x" * 70000, "\ud800"])
def test_an_id_that_is_none_gives_way_to_the_name(put, home, resolve, id_):
    first = json.dumps({"type": "session_meta", "payload": {"id": id_, "cwd": 7, "cli_version": []}})
    put(fds={12: home.rollout(A, first=first)})
    assert (resolve().id, resolve().cwd, resolve().version) == (A, None, None)


def test_two_records_on_the_first_line_are_told_apart():
    line = json.dumps({"type": "session_meta", "payload": {"id": A}}) + json.dumps({"type": "x"})
    assert parse_header(line.encode(), B).thread == A


@given(st.binary(max_size=200))
def test_no_first_line_raises(line):
    assert parse_header(line, A).thread == A


def test_a_first_line_that_is_not_whole_yet_is_no_thread(put, home, resolve):
    path = home.rollout(A)
    path.write_text(path.read_text().rstrip("\n"))
    put(fds={12: path})
    assert said(resolve()) == ("none", None)
    path.write_text(path.read_text() + "\n")
    assert said(resolve()) == ("fd", A)


def test_a_deleted_file_is_not_believed(put, home, resolve):
    path = home.rollout(A)
    put(fds={12: f"{path} (deleted)"})
    assert said(resolve()) == ("none", None)


def test_a_path_that_leads_to_another_file_is_not_believed(put, proc, home, resolve, monkeypatch):
    path = home.rollout(A)
    put(fds={12: path})
    monkeypatch.setattr(codex_finder.OpenDescriptor, "identity", lambda _file: (1, 2))
    assert said(resolve()) == ("none", None)


def test_a_symlink_in_the_store_is_not_followed(put, home, resolve, tmp_path):
    path = home.rollout(A)
    path.rename(tmp_path / "elsewhere.jsonl")
    path.symlink_to(tmp_path / "elsewhere.jsonl")
    put(fds={12: path})
    assert said(resolve()) == ("none", None)


def test_a_rollout_of_another_home_is_not_this_one_s(put, resolve, tmp_path):
    put(fds={12: CodexHome(tmp_path / "another").rollout(A)})
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize(
    "name", ["state_5.sqlite", "rollout-x.jsonl", "rollout-2026-11-02T10-00-00-zz.jsonl.tmp"]
)
def test_other_files_of_the_store_are_no_rollouts(put, home, resolve, name):
    (home.path / "sessions" / name).write_text("{}\n")
    put(fds={12: home.path / "sessions" / name})
    assert said(resolve()) == ("none", None)


def test_an_archived_rollout_is_found_where_it_lies(put, home, resolve):
    path = home.rollout(A, archived=True)
    put(fds={12: path})
    assert files(resolve()) == [(str(path), None)]


@pytest.mark.parametrize("linked", ["home", "sessions"])
def test_a_home_behind_symlinks_is_compared_by_real_paths(proc, tmp_path, resolve, linked):
    real = CodexHome(tmp_path / "real")
    path = real.rollout(A)
    named = tmp_path / "named"
    if linked == "home":
        named.symlink_to(real.path)
    else:
        named.mkdir()
        (named / "sessions").symlink_to(real.path / "sessions")
    proc.put(611, "codex", [BIN], environ={"CODEX_HOME": str(named)}, fds={12: path})
    (source,) = resolve().sources
    assert source.root.read(source.path, 1 << 16) == path.read_bytes()


def test_a_file_open_for_reading_gives_way_to_one_that_is_written(put, proc, home, resolve):
    written, looked_at = home.rollout(A), home.rollout(B)
    put()
    proc.open(611, 12, looked_at, os.O_RDONLY)
    assert resolve().id == B
    proc.open(611, 13, written, os.O_RDWR | os.O_APPEND)
    assert resolve().id == A


def test_of_two_files_of_one_thread_the_newest_counts(put, home, resolve):
    first = home.rollout(A)
    newest = home.rollout(A, ms=NOON_MS + DAY_MS, segment=uuid7(NOON_MS + DAY_MS))
    os.utime(newest, (1000, 1000))
    put(fds={12: newest, 13: first})
    assert files(resolve()) == [(str(newest), None)]


# Several threads of its own


def age(path, seconds):
    when = time.time() - seconds
    os.utime(path, (when, when))


def opened(home, thread, seconds):
    """Let a thread have been opened so many seconds after NOON: its lock is made then."""
    path = home.lock(thread)
    when = NOON_MS / 1000 + seconds
    os.utime(path, (when, when))
    return path


def test_of_several_the_one_written_last(put, home, resolve):
    paths = {id_: home.rollout(id_) for id_ in (A, B, C)}
    for id_, seconds in ((A, 300), (B, 100), (C, 200)):
        age(paths[id_], seconds)
    put(fds=dict(enumerate(paths.values(), 10)))
    assert said(resolve()) == ("fd", B)


def begin(path, seconds, kind="turn_context"):
    """Let a turn begin in a rollout, so many seconds after NOON; then the file is written on."""
    when = datetime.fromtimestamp(NOON_MS / 1000 + seconds, UTC).isoformat().replace("+00:00", "Z")
    record = {"timestamp": when, "type": kind, "payload": {"turn_id": "t"}}
    if kind != "turn_context":
        record = {"timestamp": when, "type": "event_msg", "payload": {"type": kind}}
    with path.open("a") as rollout:
        rollout.write(json.dumps(record) + "\n")
        rollout.write(json.dumps({"timestamp": when, "type": "response_item", "payload": {}}) + "\n")
    return path


@pytest.mark.parametrize("kind", ["turn_context", "task_started", "turn_started"])
def test_the_one_in_which_a_turn_began_last_counts(put, home, resolve, kind):
    """A left thread may go on to be written: its turn began before."""
    paths = {id_: begin(home.rollout(id_), seconds, kind) for id_, seconds in ((A, 30), (B, 90), (C, 60))}
    put(fds=dict(enumerate(paths.values(), 10)))
    for id_, ages in ((A, 1), (B, 500), (C, 100)):
        age(paths[id_], ages)
    assert resolve().id == B
    begin(paths[A], 120, kind)
    assert resolve().id == A
    with paths[C].open("a") as rollout:
        rollout.write('{"type":"event_msg","payload":{"type":"task_complete"}}\n' * 3)
    assert resolve().id == A
    begin(paths[C], 180, kind)
    assert resolve().id == C


def test_a_thread_that_is_opened_again_is_the_one(put, proc, home, resolve):
    """`/new` and `/resume` within one process: a thread's lock is made anew when it is opened."""
    first, second = begin(home.rollout(A), 1), begin(home.rollout(B), 100)
    put(fds={12: first, 13: second})
    opened(home, A, 0), opened(home, B, 90)
    assert resolve().id == B
    opened(home, A, 150)
    assert resolve().id == A
    begin(second, 200)
    assert resolve().id == B


def test_threads_that_were_opened_at_once_were_opened_by_a_program(put, home, resolve):
    first, second = begin(home.rollout(A), 50), begin(home.rollout(B), 20)
    put(fds={12: first, 13: second})
    opened(home, A, 100), opened(home, B, 100.3)
    assert resolve().id == A


@pytest.mark.parametrize("length", [10, 300_000, 3_000_000])
def test_a_turn_is_found_behind_long_lines(put, home, resolve, length):
    first, second = begin(home.rollout(A), 50), begin(home.rollout(B), 20)
    for path in (first, second):
        with path.open("a") as rollout:
            rollout.write(json.dumps({"type": "response_item", "payload": {"text": "x" * length}}) + "\n")
            rollout.write(
                json.dumps({"payload": {"text": '{"type":"turn_context"}' * 9}, "type": "x"}) + "\n"
            )
    put(fds={12: first, 13: second})
    assert resolve().id == A


def test_a_turn_that_is_being_written_is_seen_when_it_is_whole(put, home, resolve):
    first, second = begin(home.rollout(A), 50), begin(home.rollout(B), 20)
    put(fds={12: first, 13: second})
    assert resolve().id == A
    when = datetime.fromtimestamp(NOON_MS / 1000 + 90, UTC).isoformat()
    line = json.dumps({"timestamp": when, "type": "turn_context", "payload": {}})
    with second.open("a") as rollout:
        rollout.write(line[:40])
        rollout.flush()
        assert resolve().id == A
        rollout.write(line[40:] + "\n")
    assert resolve().id == B


@pytest.mark.parametrize(
    "line", [b"\xff\n", b'{"type":"turn_context"}\n', b'{"timestamp":7,"type":"turn_context"}\n']
)
def test_a_damaged_turn_is_none(put, home, resolve, line):
    first, second = begin(home.rollout(A), 50), begin(home.rollout(B), 20)
    second.write_bytes(second.read_bytes() + line)
    put(fds={12: first, 13: second})
    assert resolve().id == A


def test_it_does_not_move_to_a_subagent_s(put, proc, home, resolve):
    put(fds={12: home.rollout(A)})
    assert resolve().id == A
    proc.open(611, 13, home.rollout(B, **SUBAGENT))
    assert resolve().id == A


def test_a_process_with_several_has_them_all_as_threads(put, home, resolve):
    put(fds={12: home.rollout(B, cwd="/b"), 13: home.rollout(A, cwd="/a"), 14: home.rollout(C, **SUBAGENT)})
    assert [(thread.id, thread.cwd) for thread in resolve().threads] == [(A, "/a"), (B, "/b")]


def test_a_process_with_one_has_no_threads(put, home, resolve):
    put(fds={12: home.rollout(A)})
    assert resolve().threads == ()


@given(
    st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(0, 9), st.integers(0, 9))),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)),
)
def test_what_is_chosen_is_open(fds, locks):
    by_fd = {name: Thread(name, "fd", 1, opened_ns=one, turn_ns=two) for name, (one, two) in fds.items()}
    by_lock = {name: Thread(name, "lock", at, opened_ns=at) for name, at in locks.items()}
    chosen = choose(OpenThreads(by_fd, by_lock, ()))
    assert (chosen in by_fd or chosen in by_lock) if fds or locks else chosen is None


# By lock


def test_the_thread_whose_lock_is_held(put, proc, home, resolve):
    path = home.rollout(A, cwd="/srv/said")
    put()
    proc.refuse(611)
    proc.flock(611, home.lock(A))
    resolver = Resolver(str(proc.root), {"codex": str(home.path)})
    agent = resolver.agent("codex", 611)
    session = resolver.session(agent)
    assert (said(session), files(session)) == (("lock", A), [(str(path), None)])
    assert resolver.cwd(agent) == "/srv/said"


def test_a_lock_is_matched_by_inode_alone(put, proc, home, resolve):
    home.rollout(A)
    put()
    proc.flock(611, home.lock(A), device="00:2f")
    assert said(resolve()) == ("lock", A)


def test_a_stale_lock_file_and_one_that_another_holds_say_nothing(put, proc, home, resolve):
    home.rollout(A)
    home.rollout(B)
    home.lock(A)
    put()
    proc.flock(612, home.lock(B))
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize("name", [".coordination.lock", "x.lock", f"{A}.tmp", f"{A}.lock.lock"])
def test_other_locks_are_no_threads(put, proc, home, resolve, name):
    home.rollout(A)
    put()
    path = home.path / "thread-writer-locks" / name
    path.touch()
    proc.flock(611, path)
    assert said(resolve()) == ("none", None)


def test_a_lock_without_a_rollout_is_an_empty_session(put, proc, home, resolve):
    put()
    proc.flock(611, home.lock(A))
    assert (said(resolve()), resolve().sources) == (("lock", A), ())
    path = home.rollout(A)
    assert files(resolve()) == [(str(path), None)]


def test_a_lock_that_was_just_taken_may_be_a_subagent_s(put, proc, home, resolve):
    put(fds={12: home.rollout(A)})
    assert resolve().id == A
    proc.flock(611, home.lock(B, age_seconds=0))
    assert resolve().id == A
    home.lock(B, age_seconds=0.1)
    assert said(resolve()) == ("lock", B)


def test_a_subagent_s_lock_is_not_the_session_s(put, proc, home, resolve):
    home.rollout(A)
    home.rollout(B, **SUBAGENT)
    put()
    proc.flock(611, home.lock(B))
    assert said(resolve()) == ("none", None)
    proc.flock(611, home.lock(A))
    assert said(resolve()) == ("lock", A)


def test_of_several_locks_the_rollout_written_last(put, proc, home, resolve):
    age(home.rollout(A), 100)
    age(home.rollout(B), 200)
    put()
    proc.flock(611, home.lock(B))
    proc.flock(611, home.lock(A))
    assert said(resolve()) == ("lock", A)
    assert [thread.id for thread in resolve().threads] == [A, B]


def test_an_open_file_goes_before_a_lock(put, proc, home, resolve):
    age(home.rollout(A), 100)
    home.rollout(B)
    put(fds={12: next(home.path.rglob(f"*{A}.jsonl"))})
    proc.flock(611, home.lock(B))
    assert said(resolve()) == ("fd", A)


def test_a_thread_started_meanwhile_is_followed_before_it_has_a_file(put, proc, home, resolve):
    put(fds={12: home.rollout(A)})
    assert said(resolve()) == ("fd", A)
    proc.flock(611, home.lock(B))
    assert (said(resolve()), resolve().sources) == (("lock", B), ())
    proc.open(611, 13, home.rollout(B))
    assert said(resolve()) == ("fd", B)


def test_a_lock_directory_that_is_a_symlink_copes(put, proc, home, resolve, tmp_path):
    home.rollout(A)
    put()
    proc.flock(611, home.lock(A))
    locks = home.path / "thread-writer-locks"
    locks.rename(tmp_path / "locks")
    locks.symlink_to(tmp_path / "locks")
    assert said(resolve()) == ("lock", A)


# Thread id to rollout


@pytest.fixture
def locked(put, proc, home, resolve):
    def locked(thread):
        put()
        proc.flock(611, home.lock(thread))
        return [path for path, _ in files(resolve())]

    return locked


@pytest.mark.parametrize("days", [-1, 0, 1])
def test_the_day_of_a_name_is_local_time(home, locked, days):
    path = home.rollout(A, ms=NOON_MS + days * DAY_MS)
    assert locked(A) == [str(path)]


def test_a_revert_is_filed_under_its_own_day(home, locked):
    home.rollout(A)
    home.rollout(A, ms=NOON_MS + 3 * DAY_MS, segment=uuid7(NOON_MS + 3 * DAY_MS))
    newest = home.rollout(A, ms=NOON_MS + 40 * DAY_MS, segment=uuid7(NOON_MS + 40 * DAY_MS))
    assert locked(A) == [str(newest)]


def test_a_v4_thread_may_lie_under_any_day(home, locked):
    home.rollout(B)
    path = home.rollout(V4, ms=NOON_MS - 400 * DAY_MS)
    assert locked(V4) == [str(path)]


def test_a_v4_thread_may_lie_under_no_day(home, locked):
    path = home.rollout(V4, ms=NOON_MS)
    flat = path.rename(home.path / "sessions" / path.name)
    assert locked(V4) == [str(flat)]


def test_an_archived_thread_is_found(home, locked):
    path = home.rollout(A, archived=True)
    assert locked(A) == [str(path)]


def test_a_thread_s_compressed_file_is_not_one_that_grows(home, locked):
    path = home.rollout(A)
    path.with_name(path.name + ".zst").write_bytes(b"")
    assert locked(A) == [str(path)]
    path.unlink()
    assert locked(A) == []


def test_a_file_of_an_earlier_day_than_its_id_is_found(home, locked):
    path = home.rollout(A, ms=NOON_MS - 20 * DAY_MS)
    assert locked(A) == [str(path)]


def test_a_segment_that_is_made_later_is_noticed(home, locked):
    home.rollout(A)
    assert len(locked(A)) == 1
    later = home.rollout(A, ms=NOON_MS + 3 * DAY_MS, segment=uuid7(NOON_MS + 3 * DAY_MS))
    assert locked(A) == [str(later)]


def test_a_later_segment_and_a_moved_file_are_noticed(home, locked):
    first = home.rollout(A)
    assert locked(A) == [str(first)]
    now = time.time_ns() // 1_000_000
    second = home.rollout(A, ms=now, segment=uuid7(now))
    assert locked(A) == [str(second)]
    second.rename(home.path / "archived_sessions" / second.name)
    assert locked(A) == [str(home.path / "archived_sessions" / second.name)]
    (home.path / "archived_sessions" / second.name).unlink()
    assert locked(A) == [str(first)]


def test_another_thread_whose_name_holds_the_id_is_not_it(home, locked):
    home.rollout(B, segment=A)
    assert locked(A) == []


def test_a_store_of_strange_names_costs_nothing(home, locked):
    path = home.rollout(A)
    for name in ("x", "2026/xx", "2026/11/99x", "9" * 200, "2026/11/\udcff"):
        (home.path / "sessions" / name).mkdir(parents=True)
    os.mkfifo(path.parent / f"rollout-2099-01-01T00-00-00-{A}.jsonl")
    (path.parent / f"rollout-2098-01-01T00-00-00-{A}_{B}.jsonl").mkdir()
    path.parent.joinpath("x" * 200).touch()
    assert locked(A) == [str(path)]


# Several files, one thread


def based(thread, base, end, **more):
    return {"history_base": {"thread_id": base, "end_ordinal_exclusive": 9, "end_byte_offset": end}, **more}


def test_a_fork_begins_with_its_base(put, home, resolve):
    base = home.rollout(A)
    fork = home.rollout(B, **based(B, A, 120), forked_from_id=A)
    put(fds={12: fork})
    assert files(resolve()) == [(str(base), 120), (str(fork), None)]
    assert resolve().missing_base is None


def test_bases_go_back_as_far_as_they_do(put, home, resolve):
    first = home.rollout(A, archived=True)
    second = home.rollout(B, **based(B, A, 100))
    segment = uuid7(NOON_MS + 2 * DAY_MS)
    third = home.rollout(B, ms=NOON_MS + 2 * DAY_MS, segment=segment, **based(B, B, 200))
    fourth = home.rollout(C, **based(C, segment, 300))
    put(fds={12: fourth})
    assert files(resolve()) == [(str(first), 100), (str(second), 200), (str(third), 300), (str(fourth), None)]


def test_a_compressed_base_is_said_by_its_name(put, home, resolve):
    base = home.rollout(A)
    packed = base.with_name(base.name + ".zst")
    packed.write_bytes(zstandard.compress(base.read_bytes()))
    base.unlink()
    put(fds={12: home.rollout(B, **based(B, A, 50))})
    first, last = resolve().sources
    assert (first.compressed, last.compressed, first.limit) == (True, False, 50)
    home.rollout(A)
    assert not resolve().sources[0].compressed


def test_a_compressed_base_goes_on_from_its_own(put, home, resolve):
    first = home.rollout(A)
    base = home.rollout(B, **based(B, A, 10))
    packed = base.with_name(base.name + ".zst")
    packed.write_bytes(
        zstandard.compress(base.read_bytes()[:40]) + zstandard.compress(base.read_bytes()[40:])
    )
    base.unlink()
    fork = home.rollout(C, **based(C, B, 20))
    put(fds={12: fork})
    assert files(resolve()) == [(str(first), 10), (str(packed), 20), (str(fork), None)]


def test_a_base_that_cannot_be_found_is_said(put, home, resolve):
    fork = home.rollout(B, **based(B, A, 120))
    put(fds={12: fork})
    assert (files(resolve()), resolve().missing_base) == ([(str(fork), None)], A)
    base = home.rollout(A)
    assert (files(resolve())[0], resolve().missing_base) == ((str(base), 120), None)
    base.unlink()
    assert resolve().missing_base == A


def test_a_damaged_compressed_base_is_missing(put, home, resolve):
    base = home.rollout(A)
    base.rename(base.with_name(base.name + ".zst"))
    put(fds={12: home.rollout(B, **based(B, A, 120))})
    assert resolve().missing_base == A


def test_a_base_that_lies_far_from_its_day_is_found_within_a_second(put, home, resolve, monkeypatch):
    fork = home.rollout(B, **based(B, A, 120))
    put(fds={12: fork})
    assert resolve().missing_base == A
    base = home.rollout(A, ms=NOON_MS - 90 * DAY_MS)
    assert resolve().missing_base == A
    monkeypatch.setattr(rollout_module, "_SEARCH_SECONDS", 0)
    assert files(resolve())[0] == (str(base), 120)


@pytest.mark.parametrize(
    ("base", "end", "missing"),
    [
        ("../../etc/passwd", 5, "unknown"),
        (None, 5, "unknown"),
        (7, 5, "unknown"),
        (A, -1, A),
        (A, "5", A),
        (A, True, A),
        (A, 1.5, A),
        (A, None, A),
        (A, 1 << 63, A),
        (A, 1 << 70, A),
    ],
)
def test_a_base_that_is_none_is_missing(put, home, resolve, base, end, missing):
    home.rollout(A)
    fork = home.rollout(B, **based(B, base, end))
    put(fds={12: fork})
    assert (files(resolve()), resolve().missing_base) == ([(str(fork), None)], missing)


@pytest.mark.parametrize("value", ["x", 7, [], [A], True])
def test_a_base_of_another_type_is_missing(put, home, resolve, value):
    put(fds={12: home.rollout(B, history_base=value)})
    assert resolve().missing_base == "unknown"


def test_a_first_line_rewritten_in_place_is_read_again(put, home, resolve):
    rollout = home.rollout(A, cli_version="0.171.0")
    put(fds={12: rollout})
    assert resolve().version == "0.171.0"
    rollout.write_text(rollout.read_text().replace("0.171.0", "0.172.0"))
    assert resolve().version == "0.172.0"
    rollout.write_text(rollout.read_text().replace('"cli_version"', '"parent_thread_id": "x", "cli_version"'))
    assert resolve().via == "none"


def test_a_circle_of_bases_ends(put, home, resolve):
    first = home.rollout(A, **based(A, B, 5))
    fork = home.rollout(B, **based(B, A, 6))
    put(fds={12: fork})
    assert (files(resolve()), resolve().missing_base) == ([(str(first), 6), (str(fork), None)], B)


@pytest.mark.parametrize(("bases", "missing"), [(64, False), (65, True)])
def test_bases_go_no_deeper_than_64(put, home, resolve, bases, missing):
    ids = [uuid7(NOON_MS + number, number) for number in range(bases + 1)]
    home.rollout(ids[0])
    for before, id_ in pairwise(ids):
        path = home.rollout(id_, **based(id_, before, 5))
    put(fds={12: path})
    assert (len(resolve().sources), resolve().missing_base is not None) == (65, missing)


def test_inflate_reads_frames_up_to_the_limit(tmp_path):
    packed = tmp_path / "a.zst"
    packed.write_bytes(zstandard.compress(b"first\n") + zstandard.compress(b"second\n"))
    with packed.open("rb") as file:
        for limit, expected in ((0, b""), (3, b"fir"), (9, b"first\nsec"), (99, b"first\nsecond\n")):
            fd = inflate(file.fileno(), limit)
            stat = os.fstat(fd)
            assert (os.pread(fd, 100, 0), stat.st_nlink, stat.st_mode & 0o777) == (expected, 0, 0o600)
            os.close(fd)


def test_inflate_refuses_more_than_4_gib(tmp_path):
    with (tmp_path / "a.zst").open("wb+") as file, pytest.raises(TooLarge):
        inflate(file.fileno(), LARGEST + 1)


def test_inflate_of_what_is_not_compressed_is_malformed(tmp_path):
    (tmp_path / "a.zst").write_text('{"type":"session_meta"}\n')
    with (tmp_path / "a.zst").open("rb") as file, pytest.raises(Malformed):
        inflate(file.fileno(), 10)


# Titles


def test_the_last_name_of_the_thread_is_its_title(put, home, resolve):
    put(fds={12: home.rollout(A)})
    assert resolve().title is None
    home.name(A, "one")
    home.name(B, "other")
    assert resolve().title == "one"
    home.name(A, "two")
    assert resolve().title == "two"


def test_an_index_of_bad_lines_costs_nothing(home):
    home.name(A, "good")
    with (home.path / "session_index.jsonl").open("ab") as index:
        index.write(b'{"id":\n[]\n\xff\xff\n\n{"id":7,"thread_name":"x"}\n' + b"x" * 3_000_000 + b"\n")
    home.name("../x", "x")
    home.name(B, 7)
    home.name(C, "after")
    names = ThreadNames(str(home.path))
    assert [names.get(id_) for id_ in (A, B, C, D)] == ["good", None, "after", None]


def test_an_index_is_read_on_from_where_it_stopped(home, monkeypatch):
    home.name(A, "one")
    names = ThreadNames(str(home.path))
    assert names.get(A) == "one"
    read = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read.append(at) or real(fd, size, at))
    assert names.get(A) == "one"
    assert read == []
    home.name(A, "two")
    assert names.get(A) == "two"
    assert min(read) > 0


def test_an_unfinished_line_of_the_index_waits(home):
    home.name(A, "one")
    path = home.path / "session_index.jsonl"
    names = ThreadNames(str(home.path))
    line = json.dumps({"id": A, "thread_name": "two"})
    with path.open("a") as index:
        index.write(line[:20])
    assert names.get(A) == "one"
    with path.open("a") as index:
        index.write(line[20:] + "\n")
    assert names.get(A) == "two"


def test_an_index_that_was_replaced_is_read_anew(home):
    path = home.path / "session_index.jsonl"
    home.name(A, "one")
    home.name(B, "two")
    names = ThreadNames(str(home.path))
    assert names.get(B) == "two"
    path.unlink()
    home.name(A, "three")
    assert (names.get(A), names.get(B)) == ("three", None)
    path.unlink()
    os.mkfifo(path)
    assert names.get(A) is None


# The shared daemon


@pytest.fixture
def daemon(proc, put, home):
    """Start the daemon; return what lets it hold a thread."""
    put(900, DAEMON[1:], start=START + 10, cwd="/")
    numbers = iter(range(20, 90))

    def holds(thread, at=None, **meta):
        """*at*: when it opened it, in seconds after NOON; without, as the thread was born."""
        proc.open(900, next(numbers), home.rollout(thread, **{**TUI, **meta}))
        if at is not None:
            opened(home, thread, at)

    return holds


def test_the_daemon_s_own_entry_has_threads_only(daemon, resolve):
    daemon(A)
    daemon(B, **SUBAGENT)
    session = resolve(900)
    assert (session.via, session.id, session.sources) == ("none", None, ())
    assert [thread.id for thread in session.threads] == [A]


def test_the_daemon_s_locks_are_threads_too(daemon, proc, home, resolve):
    proc.refuse(900)
    proc.flock(900, home.lock(A))
    resolver = Resolver(str(proc.root), {"codex": str(home.path)})
    (thread,) = resolver.session(resolver.agent("codex", 900)).threads
    assert said(thread) == ("lock", A)


def test_a_tui_has_the_daemon_s_thread_that_can_only_be_its(put, daemon, home, resolve):
    put()
    assert said(resolve()) == ("none", None)
    daemon(A)
    home.name(A, "demo")
    assert said(resolve()) == ("daemon", A)
    assert (resolve().title, resolve().cwd, len(resolve().sources)) == ("demo", "/srv/demo", 1)


@pytest.mark.parametrize(
    "meta",
    [{"cwd": "/srv/other"}, {"cwd": None}, {"originator": "codex_vscode"}, {"originator": 7}, SUBAGENT],
)
def test_a_thread_of_another_directory_or_client_is_not_its(put, daemon, resolve, meta):
    put()
    daemon(A, **meta)
    assert said(resolve()) == ("none", None)


@pytest.mark.parametrize(("later_ms", "via"), [(-1, "none"), (0, "daemon")])
def test_a_thread_that_is_older_than_the_tui_is_not_its(put, daemon, resolve, later_ms, via):
    put()
    daemon(uuid7(started_ms(START) + later_ms))
    assert resolve().via == via


def test_a_thread_without_a_time_is_nobody_s(put, daemon, home, proc, resolve):
    put()
    proc.open(900, 20, home.rollout(V4, ms=NOON_MS, **TUI))
    assert said(resolve()) == ("none", None)


def test_a_tui_whose_directory_is_unknown_gets_no_answer(put, daemon, proc, resolve):
    put()
    daemon(A)
    (proc.root / "611" / "cwd").unlink()
    assert said(resolve()) == ("none", None)


def test_a_tui_that_changed_its_directory_loses_its_thread(put, daemon, proc, resolve):
    put()
    daemon(A)
    assert resolve().id == A
    proc.link(611, "cwd", "/srv/other")
    assert said(resolve()) == ("none", None)


def test_the_directory_may_be_given_on_the_command_line(put, daemon, resolve, tmp_path):
    put(argv=["--cd", "sub"], cwd=str(tmp_path))
    daemon(A, cwd=str(tmp_path / "sub"))
    assert said(resolve()) == ("daemon", A)


def test_of_two_threads_that_fit_it_alone_the_one_opened_last(put, daemon, resolve):
    """After `/fork` and `/clear` the daemon has both for a minute."""
    put()
    daemon(A)
    daemon(B)
    assert said(resolve()) == ("daemon", B)


def test_two_tuis_in_two_directories(put, daemon, resolve):
    put(611)
    put(612, cwd="/srv/other")
    daemon(B, cwd="/srv/other")
    daemon(A)
    assert [resolve(pid).id for pid in (611, 612)] == [A, B]


def test_one_thread_that_could_be_two_tuis_is_neither_s(put, daemon, resolve):
    put(611)
    put(612, start=START + 100)
    daemon(A)
    assert [said(resolve(pid)) for pid in (611, 612)] == [("none", None)] * 2


def test_the_thread_of_the_second_tui_is_out_for_the_first(put, daemon, resolve):
    put(611)
    put(612, start=START + 8000)
    daemon(A)
    daemon(B)
    assert (born_ms(A), born_ms(B)) == (NOON_MS + 60_000, NOON_MS + 120_000)
    assert [resolve(pid).id for pid in (611, 612)] == [A, B]


def test_two_threads_that_were_in_use_at_one_time_are_not_one_tui_s(put, daemon, home, proc, resolve):
    """The other's TUI has ended, and the daemon has its thread for a minute."""
    put()
    daemon(A, at=60)
    daemon(B, at=120)
    begin(next(home.path.rglob(f"*{A}.jsonl")), 100)
    assert said(resolve()) == ("daemon", B)
    begin(next(home.path.rglob(f"*{A}.jsonl")), 180)
    assert said(resolve()) == ("none", None)
    assert "has left" in resolve().steps[-1]
    opened(home, A, 200)
    assert said(resolve()) == ("daemon", A)
    opened(home, A, 60)
    proc.close(900, 21)
    assert said(resolve()) == ("daemon", A)


def test_a_thread_that_is_resumed_is_followed(put, daemon, home, resolve):
    """`/resume` of a thread older than the TUI, and back."""
    put()
    daemon(B)
    daemon(OLD, at=200)
    assert said(resolve()) == ("daemon", OLD)
    opened(home, B, 300)
    assert said(resolve()) == ("daemon", B)
    opened(home, OLD, 301)
    assert said(resolve()) == ("daemon", OLD)


def test_a_left_thread_is_not_shown_on(put, daemon, proc, home, resolve):
    put()
    daemon(A)
    assert said(resolve()) == ("daemon", A)
    proc.flock(900, opened(home, B, 200))
    assert said(resolve()) == ("none", None)
    assert "no file yet" in resolve().steps[-1]
    daemon(B, at=200)
    assert said(resolve()) == ("daemon", B)


def test_an_old_thread_that_was_open_before_the_tui_is_not_its(put, daemon, resolve):
    put()
    daemon(OLD, at=-3600)
    daemon(A, at=-10)
    assert said(resolve()) == ("none", None)


def test_a_new_thread_of_the_only_tui_is_followed(put, daemon, resolve):
    put()
    daemon(A)
    assert resolve().id == A
    daemon(B)
    assert resolve().id == B
    daemon(C)
    assert resolve().id == C


def test_a_new_thread_that_another_tui_could_have_started_is_not_followed(put, daemon, resolve):
    put(611)
    daemon(A)
    assert resolve().id == A
    put(612, start=START + 8000)
    daemon(B, cwd="/srv/other")
    daemon(C)
    assert [resolve(pid).id for pid in (611, 612)] == [A, C]


def test_a_new_thread_is_not_an_idle_tui_s_while_its_own_may_be_unwritten(put, daemon, proc, home, resolve):
    put(611)
    daemon(A)
    put(612, start=START + 8000)
    proc.flock(900, opened(home, B, 120))
    daemon(C)
    assert [resolve(pid).id for pid in (611, 612)] == [None, None]


def test_a_new_thread_beside_another_tui_puts_both_in_doubt(put, daemon, proc, resolve):
    put(611)
    put(612, start=START + 8000)
    daemon(A)
    daemon(B)
    assert [resolve(pid).id for pid in (611, 612)] == [A, B]
    daemon(C)
    assert [said(resolve(pid)) for pid in (611, 612)] == [("none", None)] * 2
    assert "cannot be told apart" in resolve(611).steps[-1]
    proc.close(900, 21)
    assert [resolve(pid).id for pid in (611, 612)] == [A, C]


def test_a_tui_with_a_list_to_pick_from_may_have_no_thread(put, daemon, resolve):
    put(611)
    put(612, argv=["resume"], start=START + 8000)
    daemon(A)
    assert [resolve(pid).id for pid in (611, 612)] == [A, None]
    daemon(B)
    assert [resolve(pid).id for pid in (611, 612)] == [None, None]


def test_an_elsewhere_unwritten_thread_is_the_other_tui_s(put, daemon, proc, home, resolve):
    put(611)
    daemon(A)
    put(612, start=START + 8000, cwd="/srv/other")
    proc.flock(900, opened(home, B, 120))
    assert [resolve(pid).id for pid in (611, 612)] == [A, None]


def test_one_whose_directory_is_unknown_may_have_any(put, daemon, proc, home, resolve):
    put(611)
    put(612, start=START + 8000)
    (proc.root / "612" / "cwd").unlink()
    daemon(A)
    daemon(B)
    assert [resolve(pid).id for pid in (611, 612)] == [None, None]
    proc.close(900, 21)
    assert [resolve(pid).id for pid in (611, 612)] == [A, None]


def test_a_new_thread_that_is_a_new_tui_s_leaves_the_others_where_they_are(put, daemon, resolve):
    put(611)
    daemon(A)
    assert resolve(611).id == A
    daemon(B)
    assert resolve(611).id == B
    put(612, start=START + 13_000)
    daemon(C)
    assert [resolve(pid).id for pid in (611, 612)] == [B, C]


def test_an_unwritten_thread_that_was_left_for_a_resumed_one_is_no_doubt(put, daemon, proc, home, resolve):
    """codex, then `/resume`: the thread that it began with has no file."""
    put()
    proc.flock(900, opened(home, A, 1))
    assert said(resolve()) == ("none", None)
    daemon(OLD, at=20)
    assert said(resolve()) == ("daemon", OLD)


def test_an_unwritten_thread_that_is_older_than_a_tui_is_no_doubt(put, daemon, proc, home, resolve):
    put(612, start=START + 100)
    proc.flock(900, opened(home, uuid7(started_ms(START) + 300, 7), -4.7))
    daemon(B)
    assert resolve(612).id == B


def test_an_unwritten_thread_puts_all_in_doubt_that_may_have_opened_it(put, daemon, proc, home, resolve):
    put(611)
    put(612, argv=["resume", OLD])
    daemon(A)
    daemon(OLD, at=10, cwd="/srv/elsewhere")
    assert [resolve(pid).id for pid in (611, 612)] == [A, OLD]
    proc.flock(900, opened(home, B, 200))
    assert [resolve(pid).id for pid in (611, 612)] == [None, None]


def test_of_two_that_a_thread_fits_neither_has_it_while_both_run(put, daemon, proc, resolve):
    put(611)
    put(612, start=START + 100)
    daemon(A)
    assert [resolve(pid).id for pid in (611, 612)] == [None, None]
    proc.end(612)
    assert resolve(611).id == A


def test_a_tui_that_started_after_a_thread_was_never_in_doubt(put, daemon, proc, resolve):
    put(611)
    put(612, start=START + 8000)
    daemon(A)
    proc.end(612)
    assert resolve(611).id == A


@pytest.mark.usefixtures("counts_looks")
def test_many_tuis_are_one_look(put, daemon, resolve, monkeypatch):
    monkeypatch.setattr(codex_finder, "SHARED_SECONDS", 60)
    looks = []
    real = codex_finder.assign
    monkeypatch.setattr(codex_finder, "assign", lambda *args: looks.append(1) or real(*args))
    ids = [uuid7(NOON_MS + number, number) for number in range(5)]
    for number, id_ in enumerate(ids):
        put(700 + number, cwd=f"/srv/{number}")
        daemon(id_, cwd=f"/srv/{number}")
    assert [resolve(700 + number).id for number in range(5)] == ids
    assert len(looks) == 1
    put(705, cwd="/srv/5")
    daemon(A, cwd="/srv/5")
    assert resolve(705).id == A


def test_a_command_line_that_names_the_thread_is_proof(put, daemon, resolve):
    put(611, argv=["resume", OLD])
    put(612)
    daemon(OLD, cwd="/srv/elsewhere")
    daemon(A)
    assert [resolve(pid).id for pid in (611, 612)] == [OLD, A]


def test_a_tui_follows_from_the_thread_that_it_named_and_comes_back_to_it(put, daemon, proc, resolve):
    put(argv=["resume", OLD])
    daemon(OLD, cwd="/srv/elsewhere")
    assert resolve().id == OLD
    daemon(A)
    assert resolve().id == A
    proc.close(900, 21)
    assert resolve().id == OLD


@pytest.mark.parametrize("argv", [["resume", "--last"], ["resume"], ["resume", "--all"]])
def test_a_tui_that_resumes_one_that_it_does_not_name(put, daemon, resolve, argv):
    put(argv=argv)
    assert said(resolve()) == ("none", None)
    daemon(OLD, at=1)
    assert said(resolve()) == ("daemon", OLD)


@pytest.mark.parametrize(
    ("argv", "via"),
    [
        (["--no-daemon"], "none"),
        (["--disable", "daemon_auto_start"], "none"),
        (["--disable=daemon_auto_start", "-c", "model=x"], "none"),
        (["-c", "features.daemon_auto_start=false"], "none"),
        (["-c=features.daemon_auto_start = false"], "none"),
        (["-cfeatures.daemon_auto_start=false"], "none"),
        (["--config", "features.daemon_auto_start=false", "hi"], "none"),
        (["--config=features.daemon_auto_start=false", "-c", "model=x"], "none"),
        (["--disable", "daemon_auto_start", "--enable", "daemon_auto_start"], "daemon"),
        (["-c", "features.daemon_auto_start=true"], "daemon"),
        (["--disable", "another"], "daemon"),
        (["-c"], "daemon"),
        (["--", "--no-daemon"], "daemon"),
    ],
)
def test_a_tui_without_the_daemon_gets_none_of_its_threads(put, daemon, resolve, argv, via):
    put(argv=argv)
    daemon(A)
    assert resolve().via == via


def test_a_tui_without_the_daemon_competes_for_none_of_its_threads(put, daemon, resolve):
    put(611, argv=["--disable", "daemon_auto_start"])
    put(612)
    daemon(A)
    assert [said(resolve(pid)) for pid in (611, 612)] == [("none", None), ("daemon", A)]


def test_exec_is_no_tui(put, daemon, resolve):
    put(argv=["exec", "hi"])
    daemon(A)
    assert said(resolve()) == ("none", None)


def test_a_tui_with_a_thread_of_its_own_competes_for_none(put, daemon, home, resolve):
    put(611, fds={12: home.rollout(B, **TUI)})
    put(612)
    daemon(A)
    assert [said(resolve(pid)) for pid in (611, 612)] == [("fd", B), ("daemon", A)]


def test_a_daemon_of_another_home_is_not_asked(put, daemon, resolve, tmp_path):
    put(environ={"CODEX_HOME": str(CodexHome(tmp_path / "another").path)})
    daemon(A)
    assert said(resolve()) == ("none", None)


def test_a_home_under_two_names_is_one(put, daemon, home, resolve, tmp_path):
    (tmp_path / "named").symlink_to(home.path)
    put(environ={"CODEX_HOME": str(tmp_path / "named")})
    daemon(A)
    assert said(resolve()) == ("daemon", A)


def test_a_thread_that_the_daemon_let_go_is_gone(put, daemon, proc, resolve):
    put()
    daemon(A)
    assert resolve().id == A
    proc.close(900, 20)
    assert said(resolve()) == ("none", None)


# And no answer


def test_nothing_open_is_none(put, resolve):
    put()
    session = resolve()
    assert (session.via, session.id, session.sources, session.threads) == ("none", None, (), ())


def test_the_steps_say_what_each_route_saw(put, home, resolve):
    put(fds={12: home.rollout(A, **SUBAGENT)})
    text = "\n".join(resolve().steps)
    assert "subagent" in text
    assert "lock: holds 0" in text
    assert "daemon: 0 threads" in text


@pytest.mark.parametrize(
    ("value", "id_"), [(A, A), (A.upper(), A), (A + "\n", None), ("٣" + A[1:], None), (7, None), (None, None)]
)
def test_an_id_has_one_spelling(value, id_):
    assert parse_uuid(value) == id_
