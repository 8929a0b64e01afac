"""The tree over a made machine: what is where, what it is, and what is Gone."""

import errno
import os

import pytest

from agents9core import resolver as resolver_module
from agents9core.errors import Denied, Gone, NotFound
from agents9core.files import root as store_module
from agents9core.node import Chat, Directory, File
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from tests.e2e.machine import BTIME, SESSION, STAMP, START, THREAD, Machine

STARTED_NS = (BTIME + START // 100) * 1_000_000_000


@pytest.fixture(autouse=True)
def _every_look_is_fresh(monkeypatch):
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def root(machine):
    return build_tree(Resolver(str(machine.proc)))


def walk(node, path):
    for name in path.split("/"):
        assert isinstance(node, Directory)
        node = node.walk(name)
    return node


def read(node):
    assert isinstance(node, File)
    return node.open().read(0, 1 << 20)


def names(directory):
    return [row.name for row in directory.members()]


def test_the_top(root):
    harnesses = ["claude", "codex", "omp", "pi", "dsh", "hermes"]
    assert names(root) == ["version", "roots", "README", "active", "sessions", *harnesses, "skills"]


def test_every_harness_has_a_directory(root):
    assert names(walk(root, "active")) == ["claude", "codex", "omp", "pi", "dsh", "hermes"]


def test_an_entry_lists_what_applies(machine, root):
    machine.register(601, SESSION, name="n", status="waiting", waitingFor="permission prompt")
    machine.says("assistant", [{"type": "text", "text": "hi"}])
    machine.writes('{"type":"summary","summary":"t"}\n')
    assert names(walk(root, "active/claude/601")) == [
        "via", "session", "cwd", "title", "name", "status", "waitingfor", "version", "started",
        "transcript", "chat", "chat.md",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("active/claude/601/via", "registry\n"),
        ("active/claude/601/session", SESSION + "\n"),
        ("active/claude/601/cwd", "/srv/demo\n"),
        ("active/claude/601/status", "idle\n"),
        ("active/claude/601/version", "2.1.332\n"),
        ("active/claude/601/started", "2026-11-18T11:07:30Z\n"),
        ("active/codex/611/session", THREAD + "\n"),
        ("active/codex/611/chat/00000000-user", "hi\n"),
    ],
)
def test_facts(root, path, text):
    assert read(walk(root, path)) == text.encode()


def test_roots_names_each_harness(root):
    assert [line.split("=")[0] for line in read(walk(root, "roots")).decode().splitlines()] == names(
        walk(root, "active")
    )


def test_the_readme_names_every_leaf(root):
    text = read(walk(root, "README")).decode()
    assert [name for name in names(walk(root, "active/claude/601")) if name not in text] == []


def every_node(node, path=""):
    yield path, node
    if isinstance(node, Directory):
        for row in node.members():
            yield from every_node(node.walk(row.name), f"{path}/{row.name}")


def test_a_listing_shows_what_its_members_say_of_themselves(root):
    for path, node in every_node(root):
        if isinstance(node, Directory):
            for row in node.members():
                assert node.walk(row.name).stat() == row.stat, f"{path}/{row.name}"


def test_no_two_nodes_share_a_path_number(root):
    found = dict(every_node(root))
    numbers = {path: node.stat().path for path, node in found.items()}
    files = {path for path, node in found.items() if isinstance(node, File)}
    shared = {path for path in files if path.startswith("/sessions/")}
    own = [number for path, number in numbers.items() if path not in shared]
    assert len(own) == len(set(own))
    kept = [numbers[path] for path in shared]
    assert len(kept) == len(set(kept))
    assert set(own) & set(kept) == {
        numbers[f"/active/{place}/{name}"]
        for place in ("claude/601", "codex/611")
        for name in ("transcript", "chat.md", "chat/00000000-user")
    }


def test_the_length_of_a_file_is_what_reading_gives(root):
    for path, node in every_node(root):
        if isinstance(node, File):
            assert len(read(node)) == node.stat().length, path


def test_a_directory_is_as_new_as_its_newest_member(root):
    for path, node in every_node(walk(root, "active")):
        if isinstance(node, Directory) and node.members():
            assert node.stat().mtime_ns == max(row.stat.mtime_ns for row in node.members()), path


def test_a_chat_grows_and_its_version_moves(machine, root):
    chat = walk(root, "active/claude/601/chat")
    before = chat.stat()
    machine.says("user", "two", 5)
    after = chat.stat()
    assert (after.path, len(chat.members())) == (before.path, 2)
    assert after.version != before.version


def test_a_snapshot_does_not_grow(machine, root):
    chat = walk(root, "active/claude/601/chat")
    snapshot = chat.members()
    machine.says("user", "two")
    assert len(chat.members()) == 2
    assert [row.name for row in snapshot] == ["00000000-user"]


def test_an_ended_agent_s_handles_are_gone(machine, root):
    held = [walk(root, f"active/claude/601{path}") for path in ("", "/via", "/chat", "/chat/00000000-user")]
    machine.end(601)
    for node in held:
        with pytest.raises(Gone):
            node.stat()


def test_an_ended_agent_is_not_listed(machine, root):
    machine.end(601)
    assert names(walk(root, "active/claude")) == []
    with pytest.raises(NotFound):
        walk(root, "active/claude/601")


def test_a_reader_of_an_ended_agent_is_gone(machine, root):
    readers = [walk(root, f"active/claude/601/{path}").open() for path in ("via", "transcript")]
    readers.append(walk(root, "active/claude/601/chat/00000000-user").open())
    machine.end(601)
    for reader in readers:
        with pytest.raises(Gone):
            reader.read(0, 10)


def test_a_recycled_pid_is_another_agent(machine, root):
    held = walk(root, "active/claude/601/chat/00000000-user")
    machine.end(601)
    machine.start(601, "claude", start=9000)
    machine.register(601, SESSION, procStart="9000")
    with pytest.raises(Gone):
        held.stat()
    assert read(walk(root, "active/claude/601/chat/00000000-user")) == b"one\n"


def test_clear_makes_old_handles_gone_and_shows_the_new_chat(machine, root):
    chat = walk(root, "active/claude/601/chat")
    message = chat.walk("00000000-user")
    machine.transcript = machine.transcript.with_name("0d0f6c1e-2222-4222-8333-944445555666.jsonl")
    machine.says("user", "afresh")
    machine.register(601, machine.transcript.stem)
    for node in (chat, message):
        with pytest.raises(Gone):
            node.stat()
    assert read(walk(root, "active/claude/601/chat/00000000-user")) == b"afresh\n"


def test_a_session_without_a_transcript_has_an_empty_chat(machine, root):
    machine.register(601, "0d0f6c1e-3333-4222-8333-944445555666")
    chat = walk(root, "active/claude/601/chat")
    assert isinstance(chat, Chat)
    assert (len(chat.members()), chat.stat().mtime_ns) == (0, STARTED_NS)
    assert "transcript" not in names(walk(root, "active/claude/601"))


def test_the_first_message_of_an_empty_chat_is_seen(machine, root):
    machine.register(601, "0d0f6c1e-3333-4222-8333-944445555666")
    empty = walk(root, "active/claude/601/chat").members().transcript
    machine.transcript = machine.transcript.with_name("0d0f6c1e-3333-4222-8333-944445555666.jsonl")
    machine.says("user", "first")
    messages = walk(root, "active/claude/601/chat").members()
    assert [row.name for row in messages] == ["00000000-user"]
    assert messages.transcript != empty


def test_a_fact_that_no_longer_applies_is_gone(machine, root):
    machine.register(601, SESSION, status="waiting", waitingFor="an answer")
    held = walk(root, "active/claude/601/waitingfor")
    machine.register(601, SESSION, status="busy")
    with pytest.raises(Gone):
        held.stat()


def test_a_transcript_is_served_byte_for_byte(machine, root):
    assert read(walk(root, "active/claude/601/transcript")) == machine.transcript.read_bytes()


def test_a_transcript_moves_its_version_with_every_write(machine, root):
    file = walk(root, "active/claude/601/transcript")
    before = file.stat().version
    machine.says("user", "two")
    assert file.stat().version != before


def test_an_unreadable_transcript_costs_its_own_chat_only(machine, root, monkeypatch):
    from agents9core.files import root as store

    real = os.open

    def refuse(path, flags, *rest, **named):
        if str(path).endswith(".jsonl") and SESSION in str(path) and not flags & os.O_PATH:
            raise PermissionError(13, "no", path)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(store.os, "open", refuse)
    assert {"via", "chat"} < set(names(walk(root, "active/claude/601")))
    assert "transcript" not in names(walk(root, "active/claude/601"))
    with pytest.raises(Denied):
        walk(root, "active/claude/601/chat").members()
    assert SESSION in names(walk(root, "sessions/claude"))
    with pytest.raises(Denied):
        walk(root, f"sessions/claude/{SESSION}/chat").members()
    assert read(walk(root, "active/codex/611/chat/00000000-user")) == b"hi\n"


def test_message_times_are_those_of_the_records(machine, root):
    machine.says("user", "two", 7)
    listing = walk(root, "active/claude/601/chat").members()
    assert STAMP.format(7) == "2026-11-02T10:00:07.000Z"
    assert listing[1].stat.mtime_ns == 1_793_613_607_000_000_000


@pytest.mark.parametrize(
    "name", ["601 ", "+601", "0601", "\uff16\uff10\uff11", "601/", "", ".", "..", "9" * 5000]
)
def test_a_pid_has_one_spelling(root, name):
    with pytest.raises(NotFound):
        walk(root, "active/claude").walk(name)


def test_a_stale_handle_of_a_transcript_costs_no_listing(root, monkeypatch):
    """What a server of NFS answers of a file that it has lost, for as long as it does."""
    real = os.open

    def stale(path, *rest, **named):
        if os.fspath(path).endswith((".jsonl", "projects", "sessions")):
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(path, *rest, **named)

    active = root.walk("active")
    before = {name: names(active.walk(name)) for name in ("claude", "codex")}
    assert all(before.values())
    monkeypatch.setattr(store_module.os, "open", stale)
    assert {name: names(active.walk(name)) for name in before} == before
