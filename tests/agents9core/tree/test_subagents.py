"""The subagents of a session: which they are, what they are called, and their chats."""

import json

import pytest

from agents9core import resolver as resolver_module
from agents9core.errors import Gone, NotFound
from agents9core.files.root import Root
from agents9core.harness.codex import finder as codex_finder
from agents9core.resolver import Resolver
from agents9core.tree import context
from agents9core.tree.top import build_tree
from tests.e2e.machine import SESSION, STAMP, THREAD, Machine, claude_line

CHILD = "01a19bb3-9511-7000-8000-0000000000c2"
SECOND = "01a19bb3-9522-7000-8000-0000000000c3"
GRANDCHILD = "01a19bb3-9533-7000-8000-0000000000c4"


@pytest.fixture(autouse=True)
def _every_look_is_fresh(monkeypatch):
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(codex_finder, "SUBAGENTS_SECONDS", -1)
    monkeypatch.setattr(context, "SUBAGENTS_SECONDS", -1)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def claude(machine):
    return build_tree(Resolver(str(machine.proc))).walk("active").walk("claude").walk("601")


@pytest.fixture
def codex_entry(machine):
    return build_tree(Resolver(str(machine.proc))).walk("active").walk("codex").walk("611")


def names(directory):
    return [row.name for row in directory.members()]


def claude_agent(machine, path, session=SESSION, model="made-up"):
    said = {"type": "text", "text": "found it"}
    record = {"type": "assistant", "isSidechain": True, "sessionId": session, "timestamp": STAMP.format(1),
              "message": {"role": "assistant", "model": model, "content": [said]}}  # fmt: skip
    place = machine.transcript.parent / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(record) + "\n")


def codex_agent(machine, thread, parent, nickname=None, **more):
    meta = {"id": thread, "parent_thread_id": parent, "thread_source": "subagent", "agent_nickname": nickname}
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
    lines = [
        {"type": "session_meta", "payload": {**meta, **more}},
        {"type": "response_item", "payload": item},
    ]
    place = machine.rollout.with_name(f"rollout-2026-11-02T10-01-00-{thread}.jsonl")
    place.write_text("".join(json.dumps({"timestamp": STAMP.format(2), **line}) + "\n" for line in lines))


def test_without_subagents_there_is_no_directory(claude, codex_entry):
    assert "agents" not in names(claude) + names(codex_entry)
    with pytest.raises(NotFound):
        claude.walk("agents")


@pytest.mark.parametrize(
    "path",
    [
        f"{SESSION}/subagents/agent-a1.jsonl",
        f"{SESSION}/subagents/workflows/wf_1/agent-a1.jsonl",
        "agent-a1.jsonl",
    ],
)
def test_claude_s_subagents_in_each_layout(machine, claude, path):
    claude_agent(machine, path)
    assert names(claude.walk("agents")) == ["a1"]
    agent = claude.walk("agents").walk("a1")
    assert names(agent) == ["model", "transcript", "chat", "chat.md"]
    assert agent.walk("chat").walk("00000000-assistant").open().read(0, 99) == b"found it\n"
    assert agent.walk("model").open().read(0, 99) == b"made-up\n"


@pytest.mark.parametrize(
    "path",
    [f"{SESSION}/subagents/agent-acompact-1.jsonl", f"{SESSION}/subagents/journal.jsonl",
     f"{SESSION}/subagents/agent-a1.meta.json", f"{SESSION}/tool-results/agent-a1.jsonl"],
)  # fmt: skip
def test_what_is_no_subagent_of_claude_s(machine, claude, path):
    claude_agent(machine, path)
    assert "agents" not in names(claude)


def test_a_flat_file_of_another_session_is_not_this_one_s(machine, claude):
    claude_agent(machine, "agent-a1.jsonl", session="another")
    assert "agents" not in names(claude)


def test_what_is_no_file_is_no_subagent(machine, claude, tmp_path):
    claude_agent(machine, f"{SESSION}/subagents/agent-a1.jsonl")
    (tmp_path / "secret").write_text(claude_line("user", "secret"))
    directory = machine.transcript.parent / SESSION / "subagents"
    (directory / "agent-a2.jsonl").symlink_to(tmp_path / "secret")
    (directory / "agent-a3.jsonl").mkdir()
    assert names(claude.walk("agents")) == ["a1"]


FIRST, OTHER = "6340ddef-0000-4000-8000-000000000001", "83e2917c-0000-4000-8000-000000000002"


def side_line(kind, text, uuid, parent):
    said = {"role": kind, "model": "made-up", "content": [{"type": "text", "text": text}]}
    record = {"type": kind, "isSidechain": True, "uuid": uuid, "parentUuid": parent, "message": said}
    return json.dumps(record) + "\n"


SIDE_CHAINS = (
    side_line("user", "look for a", FIRST, None)
    + side_line("user", "look for b", OTHER, None)
    + claude_line("assistant", "they are looking")
    + side_line("assistant", "b is there", "b-2", OTHER)
    + side_line("assistant", "a is there", "a-2", FIRST)
    + side_line("assistant", "and so is a", "a-3", "a-2")
)


def messages(chat):
    return {row.name: chat.walk(row.name).open().read(0, 99) for row in chat.members()}


def test_side_chains_in_the_session_s_own_file_are_subagents_too(machine, claude):
    with open(machine.transcript, "a") as file:
        file.write(SIDE_CHAINS)
    agents = claude.walk("agents")
    assert names(agents) == [FIRST, OTHER]
    assert messages(agents.walk(FIRST).walk("chat")) == {
        "00000000-user": b"look for a\n",
        "00000001-assistant": b"a is there\n",
        "00000002-assistant": b"and so is a\n",
    }
    assert list(messages(agents.walk(OTHER).walk("chat")).values()) == [b"look for b\n", b"b is there\n"]
    assert "agents" in names(claude)
    assert b"b is there\n" not in messages(claude.walk("chat")).values()


def test_a_side_chain_grows_and_is_no_other_session_s(machine, claude):
    with open(machine.transcript, "a") as file:
        file.write(SIDE_CHAINS)
    agent = claude.walk("agents").walk(OTHER)
    chat = agent.walk("chat")
    with open(machine.transcript, "a") as file:
        file.write(side_line("assistant", "b has moved", "b-3", "b-2"))
    assert messages(chat)["00000002-assistant"] == b"b has moved\n"
    assert agent.walk("model").open().read(0, 99) == b"made-up\n"
    machine.transcript.write_text(claude_line("user", "all is new"))
    with pytest.raises(Gone):
        chat.members()
    assert "agents" not in names(claude)


@pytest.mark.parametrize("uuid", [None, "", "../../x", "a/b", ".", 7, "x" * 300])
def test_a_side_chain_without_a_name_for_a_file_is_not_listed(machine, claude, uuid):
    with open(machine.transcript, "a") as file:
        file.write(side_line("user", "look", uuid, None))
    assert "agents" not in names(claude)


def test_a_claude_with_very_many_side_chains_lists_the_first_of_them(machine, claude):
    with open(machine.transcript, "a") as file:
        file.writelines(side_line("user", "look", f"c-{number}", None) for number in range(1100))
    listed = names(claude.walk("agents"))
    assert (len(listed), listed[-1]) == (1000, "c-999")


def test_codex_s_subagents_are_the_threads_below_this_one(machine, codex_entry):
    codex_agent(machine, CHILD, THREAD, "Lagrange")
    codex_agent(machine, SECOND, "01a19bb3-9599-7000-8000-0000000000ff", "Stranger")
    assert names(codex_entry.walk("agents")) == ["Lagrange"]
    chat = codex_entry.walk("agents").walk("Lagrange").walk("chat")
    assert chat.walk("00000000-assistant").open().read(0, 99) == b"done\n"


def test_a_subagent_s_subagent_is_listed_once(machine, codex_entry):
    codex_agent(machine, CHILD, THREAD, "Lagrange")
    codex_agent(machine, GRANDCHILD, CHILD, "Euler")
    assert names(codex_entry.walk("agents")) == ["Lagrange", "Euler"]


def test_subagents_of_one_name_are_told_apart_and_keep_theirs(machine, codex_entry):
    codex_agent(machine, CHILD, THREAD, "Lagrange")
    codex_agent(machine, SECOND, THREAD, "Lagrange")
    assert names(codex_entry.walk("agents")) == ["Lagrange", "Lagrange-2"]
    assert codex_entry.walk("agents").walk("Lagrange").walk("transcript").stat().length > 0


SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "agent_nickname": "Gauss"}}}


def test_an_archived_subagent_keeps_its_name_and_its_children(machine, codex_entry):
    codex_agent(machine, CHILD, THREAD, "Anna")
    codex_agent(machine, SECOND, THREAD, "Anna")
    codex_agent(machine, GRANDCHILD, CHILD, "Kid")
    before = {name: session_of(codex_entry, name) for name in names(codex_entry.walk("agents"))}
    archive = machine.home / ".codex" / "archived_sessions"
    archive.mkdir()
    (file,) = machine.rollout.parent.glob(f"*{CHILD}.jsonl")
    file.rename(archive / file.name)
    assert {name: session_of(codex_entry, name) for name in names(codex_entry.walk("agents"))} == before


def test_a_subagent_that_was_seen_later_does_not_take_an_older_one_s_name(machine, codex_entry):
    codex_agent(machine, SECOND, THREAD, "Anna")
    assert names(codex_entry.walk("agents")) == ["Anna"]
    second = session_of(codex_entry, "Anna")
    codex_agent(machine, CHILD, THREAD, "Anna")
    assert session_of(codex_entry, "Anna") == second
    assert sorted(names(codex_entry.walk("agents"))) == ["Anna", "Anna-2"]


def session_of(entry, name):
    """Return the thread that a subagent's transcript names in its first line."""
    line = entry.walk("agents").walk(name).walk("transcript").open().read(0, 1 << 16).split(b"\n")[0]
    return json.loads(line)["payload"]["id"]


@pytest.mark.parametrize(
    ("meta", "name"),
    [
        ({"parent": THREAD, "agent_path": "/root/digger"}, "digger"),
        ({"parent": THREAD}, CHILD),
        ({"parent": THREAD, "nickname": "../up\n"}, "..-up-"),
        ({"parent": THREAD, "nickname": ".."}, CHILD),
        ({"parent": None, "source": SPAWN}, "Gauss"),
    ],
)
def test_what_a_codex_subagent_is_called(machine, codex_entry, meta, name):
    codex_agent(machine, CHILD, **meta)
    assert names(codex_entry.walk("agents")) == [name]


def test_a_subagent_whose_file_goes_is_gone(machine, claude):
    claude_agent(machine, f"{SESSION}/subagents/agent-a1.jsonl")
    held = claude.walk("agents").walk("a1")
    (machine.transcript.parent / SESSION / "subagents" / "agent-a1.jsonl").unlink()
    with pytest.raises(Gone):
        held.stat()


def test_subagents_go_with_their_agent(machine, claude):
    claude_agent(machine, f"{SESSION}/subagents/agent-a1.jsonl")
    held = claude.walk("agents").walk("a1").walk("chat").walk("00000000-assistant")
    machine.end(601)
    with pytest.raises(Gone):
        held.stat()


def test_a_process_with_several_threads_lists_them(machine, codex_entry):
    other = machine.rollout.with_name(f"rollout-2026-11-02T11-00-00-{SECOND}.jsonl")
    meta = {"type": "session_meta", "payload": {"id": SECOND, "cwd": "/srv/other", "source": "cli"}}
    other.write_text(json.dumps(meta) + "\n")
    (machine.proc / "611" / "fd" / "21").symlink_to(other)
    threads = codex_entry.walk("threads")
    assert names(threads) == [THREAD, SECOND]
    assert names(threads.walk(SECOND)) == ["cwd", "transcript", "chat", "chat.md"]
    assert threads.walk(SECOND).walk("cwd").open().read(0, 99) == b"/srv/other\n"
    assert names(threads.walk(THREAD).walk("chat")) == ["00000000-user"]


def looks_of(action, monkeypatch):
    """Return how many files are looked at while *action* runs."""
    looked = []
    look = Root.stat
    monkeypatch.setattr(Root, "stat", lambda root, path: looked.append(path) or look(root, path))
    action()
    return len(looked)


@pytest.mark.parametrize("count", [10, 100])
def test_a_listing_of_subagents_looks_at_each_a_few_times(machine, monkeypatch, count):
    monkeypatch.setattr(context, "SUBAGENTS_SECONDS", 60)
    for number in range(count):
        claude_agent(machine, f"{SESSION}/subagents/agent-a{number:07x}.jsonl")
    agents = build_tree(Resolver(str(machine.proc))).walk("active").walk("claude").walk("601").walk("agents")
    assert looks_of(agents.members, monkeypatch) <= 3 * count + 10
    assert len(agents.members()) == count


def test_a_walk_to_one_of_many_subagents_looks_at_few(machine, monkeypatch):
    monkeypatch.setattr(context, "SUBAGENTS_SECONDS", 60)
    for number in range(100):
        claude_agent(machine, f"{SESSION}/subagents/agent-a{number:07x}.jsonl")
    agents = build_tree(Resolver(str(machine.proc))).walk("active").walk("claude").walk("601").walk("agents")
    agents.members()
    assert looks_of(lambda: agents.walk("a0000007").stat(), monkeypatch) <= 10
