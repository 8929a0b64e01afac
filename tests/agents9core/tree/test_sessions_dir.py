"""`sessions/`: what the stores hold, also of agents that have ended."""

import errno
import gc
import json
import os
import time

import pytest
import zstandard

from agents9core import caches
from agents9core import resolver as resolver_module
from agents9core import stored as kept_module
from agents9core.errors import Denied, Gone, NotFound, Unavailable
from agents9core.files import root as store_module
from agents9core.harness.codex import finder as codex_finder
from agents9core.harness.codex.store import Rollouts
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from tests.e2e.machine import SESSION, THREAD, Machine, claude_line
from tests.support.fakestore import SUBAGENT, CodexHome, DshHome, OmpHome, uuid7

ENDED = "0d0f6c1e-2222-4222-8333-944445555666"
MEMBERS = ["cwd", "started", "transcript", "chat", "chat.md"]


@pytest.fixture(autouse=True)
def _every_look_is_fresh(monkeypatch):
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(kept_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(codex_finder, "SUBAGENTS_SECONDS", -1)
    monkeypatch.setattr(caches, "TTL_SECONDS", -1)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def root(machine, monkeypatch):
    monkeypatch.setenv("HOME", str(machine.home))
    return build_tree(Resolver(str(machine.proc)))


@pytest.fixture
def claude(root):
    return root.walk("sessions").walk("claude")


@pytest.fixture
def codex_sessions(root):
    return root.walk("sessions").walk("codex")


def names(directory):
    return [row.name for row in directory.members()]


def read(node):
    return node.open().read(0, 1 << 16)


def texts(session):
    chat = session.walk("chat")
    return [read(chat.walk(row.name)) for row in chat.members()]


def claude_file(machine, session, text, project="-srv-demo"):
    path = machine.home / ".claude" / "projects" / project / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def first_line(text, **fields):
    record = json.loads(claude_line("user", text))
    return json.dumps({"cwd": "/srv/old", **record, **fields}) + "\n"


def test_every_harness_has_a_directory(root):
    assert names(root.walk("sessions")) == names(root.walk("active"))


def test_a_session_whose_agent_has_ended(machine, claude):
    claude_file(machine, ENDED, first_line("hello") + claude_line("assistant", "and goodbye", 2))
    assert names(claude) == [SESSION, ENDED]
    session = claude.walk(ENDED)
    assert names(session) == MEMBERS
    assert read(session.walk("cwd")) == b"/srv/old\n"
    assert read(session.walk("started")) == b"2026-11-02T10:00:01Z\n"
    assert texts(session) == [b"hello\n", b"and goodbye\n"]
    assert read(session.walk("transcript")).startswith(b'{"cwd": "/srv/old"')


def test_a_session_without_a_directory_and_a_time_has_neither_file(machine, claude):
    claude_file(machine, ENDED, '{"type":"user","message":{"content":"hi"}}\n')
    assert names(claude.walk(ENDED)) == ["transcript", "chat", "chat.md"]


def test_a_session_that_runs_is_kept_too_and_shares_its_messages(machine, root):
    active = root.walk("active").walk("claude").walk("601")
    kept = root.walk("sessions").walk("claude").walk(SESSION)
    chats = active.walk("chat"), kept.walk("chat")
    assert [row.stat for row in chats[0].members()] == [row.stat for row in chats[1].members()] != []
    assert chats[0].stat().path != chats[1].stat().path
    assert active.stat().path != kept.stat().path
    machine.says("user", "two", 2)
    assert texts(kept) == texts(active) == [b"one\n", b"two\n"]


def test_a_session_that_goes_on_in_a_process_keeps_its_nodes(machine, claude):
    path = claude_file(machine, ENDED, first_line("hello"))
    chat = claude.walk(ENDED).walk("chat")
    before = chat.members()[0]
    with path.open("a") as file:
        file.write(claude_line("user", "once more", 2))
    assert [before, *chat.members()[1:]] == list(chat.members())
    assert len(chat.members()) == 2


def test_a_session_whose_file_goes_is_gone(machine, claude):
    path = claude_file(machine, ENDED, first_line("hello"))
    session = claude.walk(ENDED)
    message = session.walk("chat").walk("00000000-user")
    path.unlink()
    for node in (session, message):
        with pytest.raises(Gone):
            node.stat()
    with pytest.raises(NotFound):
        claude.walk(ENDED)
    assert names(claude) == [SESSION]


def test_a_last_line_without_a_newline_counts_where_no_agent_is_in_the_session(machine, claude):
    whole = claude_line("assistant", "the last", 2).rstrip("\n")
    claude_file(machine, ENDED, first_line("hello") + whole)
    machine.writes(whole)
    assert texts(claude.walk(ENDED)) == [b"hello\n", b"the last\n"]
    assert texts(claude.walk(SESSION)) == [b"one\n"]
    machine.end(601)
    assert texts(claude.walk(SESSION)) == [b"one\n", b"the last\n"]


@pytest.mark.parametrize(
    "id",
    ["..", ".", "", "*", "a/b", "agent-a1", f"{ENDED}.jsonl", f"../-srv-demo/{SESSION}", SESSION.upper(),
     "x" * 5000, "nul\0", "\udc80", SESSION[:8]],
)  # fmt: skip
def test_what_names_no_session(machine, root, id):
    claude_file(machine, "agent-a1", first_line("hello"))
    for harness in ("claude", "codex", "omp", "pi", "dsh", "hermes"):
        with pytest.raises(NotFound):
            root.walk("sessions").walk(harness).walk(id)


def test_a_subagent_is_no_session_but_one_s_member(machine, claude, root):
    claude_file(machine, "agent-a1", first_line("sub", sessionId=ENDED))
    claude_file(machine, ENDED, first_line("hello"))
    (machine.transcript.parent / "notes.txt").write_text("no transcript")
    (machine.transcript.parent / "odd name.jsonl").write_text(first_line("hello"))
    assert names(claude) == [SESSION, ENDED]
    agent = claude.walk(ENDED).walk("agents").walk("a1")
    assert texts(agent) == [b"sub\n"]


def test_of_a_session_in_two_projects_the_one_with_messages_counts(machine, claude):
    claude_file(machine, ENDED, '{"type":"summary","summary":"moved"}\n' * 99, "-srv-a")
    claude_file(machine, ENDED, first_line("hello"), "-srv-b")
    claude_file(machine, ENDED, '{"type":"summary","summary":"moved"}\n' * 99, "-srv-c")
    assert names(claude) == [SESSION, ENDED]
    session = claude.walk(ENDED)
    assert texts(session) == [b"hello\n"]
    (row,) = [row for row in claude.members() if row.name == ENDED]
    assert row.stat == session.stat()


def test_of_a_session_in_two_projects_the_newest_with_messages_counts(machine, claude, monkeypatch):
    """Also while they change, and though the places were found a moment ago."""
    monkeypatch.setattr(caches, "TTL_SECONDS", 60)
    large = claude_file(machine, ENDED, first_line("large") + first_line("x" * 999), "-srv-a")
    os.utime(large, (1000, 1000))
    names(claude)
    assert texts(claude.walk(ENDED))[0] == b"large\n"
    small = claude_file(machine, ENDED, first_line("small"), "-srv-demo")
    time.sleep(0.05)
    assert texts(claude.walk(ENDED)) == [b"small\n"]
    (row,) = [row for row in claude.members() if row.name == ENDED]
    assert row.stat == claude.walk(ENDED).stat()
    os.utime(small, (500, 500))
    assert texts(claude.walk(ENDED))[0] == b"large\n"


def test_what_is_no_plain_file_is_no_session(machine, claude, tmp_path):
    (tmp_path / "secret").write_text(first_line("secret"))
    store = machine.transcript.parent
    (store / f"{ENDED}.jsonl").symlink_to(tmp_path / "secret")
    (store / f"{ENDED[:-1]}7.jsonl").mkdir()
    os.mkfifo(store / f"{ENDED[:-1]}8.jsonl")
    assert names(claude) == [SESSION]
    for last in "678":
        with pytest.raises(NotFound):
            claude.walk(f"{ENDED[:-1]}{last}")


def test_the_look_of_a_session_moves_with_its_file(machine, claude):
    path = claude_file(machine, ENDED, first_line("hello"))
    session = claude.walk(ENDED)
    before = session.stat()
    assert before.mtime_ns == path.stat().st_mtime_ns
    with path.open("a") as file:
        file.write(claude_line("user", "once more", 2))
    after = session.stat()
    assert (after.path, after.version != before.version) == (before.path, True)
    (row,) = [row for row in claude.members() if row.name == ENDED]
    assert row.stat == after


def test_a_fault_of_one_harness_costs_no_other_its_listing(root, monkeypatch, caplog):
    def fail(*_args):
        raise ZeroDivisionError

    monkeypatch.setattr(codex_finder.Codex, "stored", fail)
    monkeypatch.setattr(codex_finder.Codex, "stored_session", fail)
    assert names(root.walk("sessions").walk("codex")) == []
    with pytest.raises(NotFound):
        root.walk("sessions").walk("codex").walk(THREAD)
    assert names(root.walk("sessions").walk("claude")) == [SESSION]
    assert "ZeroDivisionError" in caplog.text


def test_a_last_line_that_has_to_be_mended_counts_too(machine, claude):
    cut = '{"type":"user","message":{"content":"cut \\ud83d"}}'
    for number, tail in enumerate((cut, "\0\0" + cut, "\ufeff" + cut, cut + " ", cut + cut)):
        claude_file(machine, f"{ENDED[:-1]}{number}", first_line("hello") + tail)
        said = texts(claude.walk(f"{ENDED[:-1]}{number}"))
        assert said[1:] == ["cut \ufffd\n".encode()] * tail.count("cut"), number


def test_an_agent_of_another_home_is_not_in_this_one_s_session(machine, claude):
    whole = claude_line("assistant", "the last", 2).rstrip("\n")
    machine.writes(whole)
    other = machine.home / "other"
    moved = other / "projects" / "-srv-demo" / f"{SESSION}.jsonl"
    moved.parent.mkdir(parents=True)
    moved.write_text(claude_line("user", "elsewhere"))
    (machine.home / ".claude" / "sessions").rename(other / "sessions")
    (machine.proc / "601" / "environ").write_bytes(b"CLAUDE_CONFIG_DIR=" + os.fsencode(other) + b"\0")
    assert texts(claude.walk(SESSION)) == [b"one\n", b"the last\n"]


def test_the_homes_of_processes_that_have_ended_are_remembered(machine, root, claude):
    other = machine.home / "other"
    kept = other / "projects" / "-srv-demo" / f"{ENDED}.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text(first_line("elsewhere"))
    (other / "sessions").mkdir()
    machine.start(602, "claude")
    (machine.proc / "602" / "environ").write_bytes(b"CLAUDE_CONFIG_DIR=" + os.fsencode(other) + b"\0")
    root.walk("active").walk("claude").members()
    machine.end(602)
    assert names(claude) == [SESSION, ENDED]
    assert texts(claude.walk(ENDED)) == [b"elsewhere\n"]


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.ENOMEM])
@pytest.mark.parametrize("call", ["open", "listdir"])
def test_a_disk_that_fails_is_not_an_empty_store(machine, root, monkeypatch, call, error):
    sessions = root.walk("sessions")
    kept = {name: names(sessions.walk(name)) for name in ("claude", "codex")}
    real = getattr(os, call)

    def fail(path, *rest, **named):
        if isinstance(path, int) or "/proc" not in os.fspath(path):
            raise OSError(error, os.strerror(error))
        return real(path, *rest, **named)

    monkeypatch.setattr(store_module.os, call, fail)
    for name, (id_,) in kept.items():
        with pytest.raises(Unavailable):
            sessions.walk(name).members()
        if call == "open":
            with pytest.raises(Unavailable):
                sessions.walk(name).walk(id_)


@pytest.mark.parametrize("call", ["open", "listdir"])
def test_a_directory_that_may_not_be_read_is_said_once_in_the_log(machine, root, monkeypatch, caplog, call):
    real = getattr(os, call)
    refused = "-srv-demo" if call == "open" else None
    monkeypatch.setattr(store_module, "_SAID_REFUSED", set())

    def refuse(path, *rest, **named):
        if path == refused or (call == "listdir" and isinstance(path, int)):
            raise PermissionError(errno.EACCES, "no")
        return real(path, *rest, **named)

    monkeypatch.setattr(store_module.os, call, refuse)
    for _ in range(3):
        root.walk("sessions").walk("claude").members()
    said = [record.message for record in caplog.records if "may not be read" in record.message]
    assert len(said) == len(set(said)) >= 1
    assert "projects" in "".join(said)


def test_what_a_store_does_not_let_us_read_is_listed_and_refused(machine, claude, monkeypatch):
    claude_file(machine, ENDED, first_line("hello"))
    real = os.open

    def refuse(path, flags, *rest, **named):
        if os.fspath(path).startswith(ENDED) and not flags & os.O_PATH:
            raise PermissionError(errno.EACCES, "no")
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(store_module.os, "open", refuse)
    assert names(claude) == [SESSION, ENDED]
    session = claude.walk(ENDED)
    assert names(session) == ["chat"]
    with pytest.raises(Denied):
        session.walk("chat").members()


def test_between_two_looks_a_session_that_went_is_gone_and_not_empty(machine, claude, monkeypatch):
    monkeypatch.setattr(kept_module, "REUSE_SECONDS", 60)
    path = claude_file(machine, ENDED, first_line("hello"))
    session = claude.walk(ENDED)
    path.unlink()
    with pytest.raises(Gone):
        session.members()


# codex

OLD = uuid7(1_790_000_000_000)
OTHER = uuid7(1_790_000_500_000, 2)


@pytest.fixture
def store(machine):
    home = CodexHome.__new__(CodexHome)
    home.path = machine.home / ".codex"
    return home


def say(path, text):
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    record = {"timestamp": "2026-09-22T10:00:00Z", "type": "response_item", "payload": item}
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def test_codex_s_threads_that_somebody_started(store, codex_sessions):
    say(store.rollout(OLD, cwd="/srv/old"), "done")
    store.rollout(OTHER, **SUBAGENT)
    store.name(OLD, "An old thread")
    assert names(codex_sessions) == sorted([OLD, THREAD])
    session = codex_sessions.walk(OLD)
    assert names(session) == ["cwd", "title", *MEMBERS[1:]]
    assert read(session.walk("title")) == b"An old thread\n"
    assert read(session.walk("started")) == b"2026-09-21T14:13:20Z\n"
    assert texts(session) == [b"done\n"]
    with pytest.raises(NotFound):
        codex_sessions.walk(OTHER)


def test_a_codex_thread_that_was_archived_or_compressed(store, codex_sessions):
    archived = store.rollout(OLD, archived=True)
    say(archived, "in the archive")
    plain = store.rollout(OTHER)
    say(plain, "packed")
    packed = plain.with_name(plain.name + ".zst")
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    whole = plain.read_bytes()
    plain.unlink()
    assert names(codex_sessions) == sorted([OLD, OTHER, THREAD])
    assert texts(codex_sessions.walk(OLD)) == [b"in the archive\n"]
    assert texts(codex_sessions.walk(OTHER)) == [b"packed\n"]
    assert read(codex_sessions.walk(OTHER).walk("transcript")) == whole


def test_of_a_codex_thread_of_several_files_the_newest_counts(store, codex_sessions):
    say(store.rollout(OLD), "first")
    say(store.rollout(OLD, ms=1_790_000_900_000, segment=uuid7(1_790_000_900_000, 9)), "second")
    assert texts(codex_sessions.walk(OLD)) == [b"second\n"]
    (row,) = [row for row in codex_sessions.members() if row.name == OLD]
    assert row.stat == codex_sessions.walk(OLD).stat()


def test_a_segment_that_is_made_now_is_seen_at_once(store, codex_sessions, monkeypatch):
    """A place that was found a moment ago serves on, but not beyond what the days of the store show."""
    monkeypatch.setattr(caches, "TTL_SECONDS", 60)
    now = time.time_ns() // 1_000_000
    say(store.rollout(OLD), "first")
    say(store.rollout(OTHER, ms=now), "today's")
    names(codex_sessions)
    assert texts(codex_sessions.walk(OLD)) == [b"first\n"]
    say(store.rollout(OLD, ms=now, segment=uuid7(now, 9)), "second")
    assert texts(codex_sessions.walk(OLD)) == [b"second\n"]
    names(codex_sessions)
    say(store.rollout(OLD, ms=now + 1000, segment=uuid7(now + 1000, 8)), "third")
    assert texts(codex_sessions.walk(OLD)) == [b"third\n"]


def test_a_codex_thread_of_2025_without_a_header(store, codex_sessions):
    meta = json.dumps({"id": OLD, "timestamp": "2025-09-22T10:00:00Z", "instructions": None})
    store.rollout(OLD, first=meta)
    assert "transcript" in names(codex_sessions.walk(OLD))


def test_a_codex_thread_has_its_subagents_also_when_it_has_ended(store, codex_sessions):
    store.rollout(OLD)
    say(store.rollout(OTHER, parent_thread_id=OLD, agent_nickname="Anna", **SUBAGENT), "found")
    late = uuid7(1_795_000_000_000, 3)
    store.rollout(late)
    assert "agents" not in names(codex_sessions.walk(late))
    assert names(codex_sessions.walk(OLD).walk("agents")) == ["Anna"]
    assert texts(codex_sessions.walk(OLD).walk("agents").walk("Anna")) == [b"found\n"]


def test_what_a_look_for_another_thread_has_found_changes_no_answer(store, codex_sessions, monkeypatch):
    monkeypatch.setattr(codex_finder, "SUBAGENTS_SECONDS", 60)
    late = uuid7(1_795_000_000_000, 3)
    store.rollout(late)
    store.rollout(OLD)
    early = {"ms": 1_790_000_000_000, "parent_thread_id": late, "agent_nickname": "Anna"}
    store.rollout(OTHER, **early, **SUBAGENT)
    assert "agents" not in names(codex_sessions.walk(OLD))
    assert "agents" not in names(codex_sessions.walk(late))


# omp, dsh, hermes


def test_omp_s_sessions(machine, root):
    home = OmpHome(machine.home / ".omp")
    id_ = uuid7(1_790_000_000_000)
    main = home.transcript("-srv-demo", id_, title="Omp's", timestamp="2026-09-21T14:13:20.000Z")
    home.subagent(main, "Anna")
    home.transcript("-srv-demo", "x_advisor").rename(main.with_name("__advisor_1.jsonl"))
    sessions = root.walk("sessions").walk("omp")
    assert names(sessions) == [id_]
    session = sessions.walk(id_)
    assert names(session) == ["cwd", "title", "started", "transcript", "chat", "chat.md", "agents"]
    assert read(session.walk("title")) == b"Omp's\n"
    assert read(session.walk("started")) == b"2026-09-21T14:13:20Z\n"
    assert names(session.walk("agents")) == ["Anna"]


def test_dsh_s_sessions_with_a_transcript(machine, root):
    home = DshHome(machine.home / ".dsh")
    home.session("session-a", "session.v3.jsonl", cwd="/srv/demo", createdAt=1_790_000_000_000)
    home.session("session-b", "session.v4.jsonl.zstd")
    home.session("session-c", "session.v3.jsonl", origin="subagent")
    sessions = root.walk("sessions").walk("dsh")
    assert names(sessions) == ["session-a", "session-b"]
    session = sessions.walk("session-a")
    assert names(session) == ["cwd", "started", "transcript", "chat", "chat.md"]
    assert read(session.walk("started")) == b"2026-09-21T14:13:20Z\n"
    with pytest.raises(NotFound):
        sessions.walk("session-c")


def test_of_two_dsh_sessions_of_one_name_the_first_project_s_counts(machine, root):
    home = DshHome(machine.home / ".dsh")
    for project in ("b", "a", "c"):
        home.session("session-a", "session.v3.jsonl", project=project, cwd=f"/srv/{project}")
    sessions = root.walk("sessions").walk("dsh")
    assert read(sessions.walk("session-a").walk("cwd")) == b"/srv/a\n"
    (row,) = sessions.members()
    assert row.stat == sessions.walk("session-a").stat()


def test_headers_that_are_bombs_leave_no_memory(machine, codex_sessions):
    """First lines of megabytes in a few kilobytes: each field is cut before it is remembered."""
    home = CodexHome.__new__(CodexHome)
    home.path = machine.home / ".codex"
    for number in range(40):
        path = home.rollout(
            uuid7(1_796_000_000_000 + number, number), cwd="x" * (4 << 20), originator="y" * (1 << 20)
        )
        path.with_suffix(".jsonl.zst").write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
    names(codex_sessions)
    assert len(names(codex_sessions)) >= 40
    rollouts = [thing for thing in gc.get_objects() if isinstance(thing, Rollouts)]
    assert rollouts
    assert all(rollout._headers.nbytes < 2 << 20 for rollout in rollouts)
