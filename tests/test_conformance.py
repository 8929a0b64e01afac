"""Every front end shows the same tree: the one in memory, and the real one over a made machine."""

import json
import threading
import time

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from agents9core.resolver import Resolver
from agents9core.tree.sessions_dir import StoredHarnessDirectory
from agents9core.tree.top import HarnessDirectory, build_tree
from tests.e2e.machine import Machine, claude_line
from tests.support.conformance import check_growing_tree, check_tree, seen_by_nodes
from tests.support.fakeproc import FakeProc
from tests.support.fakestore import OmpHome, uuid7

NS = 1_000_000_000


def test_a_tree_in_memory():
    chat = MemoryChat()
    for number in range(300):
        chat.say("user" if number % 2 else "tool-call", b"x" * number, number * NS)
    odd = MemoryDirectory("a b%41&<ü", [MemoryFile("#?;'\"", b"data", 5 * NS), MemoryFile("empty")])
    long = MemoryFile("long", bytes(range(256)) * 100, 7 * NS)
    assert check_tree(MemoryDirectory("/", [chat, odd, long])) == 305


def test_the_tree_of_a_machine(tmp_path):
    machine = Machine(tmp_path)
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    machine.says("assistant", [{"type": "text", "text": "naïve \u6f22"}, call], 2)
    machine.says("user", [{"type": "tool_result", "tool_use_id": "t", "content": "a\n" * 9000}], 3)
    machine.says("user", [{"type": "tool_result", "tool_use_id": "u"}], 4)
    machine.writes('{"type":"user","message":{"content":"cut \\ud83d' + "\x01" + '"}}\n')
    machine.writes(json.dumps({"type": "user", "message": {"content": "long " * 220_000}}) + "\n")
    assert check_tree(build_tree(Resolver(str(machine.proc)))) > 30


def test_the_tree_of_an_omp_and_a_pi(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    proc = FakeProc(tmp_path / "proc")
    omp, pi = OmpHome(tmp_path / ".omp"), OmpHome(tmp_path / ".pi")
    main = omp.transcript("--srv-demo--", uuid7(1, 1), title="Pond")
    anna = omp.subagent(main, "Anna")
    other = pi.transcript("--srv-demo--", uuid7(2, 2), slot=False)
    call = {"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": "ls"}}
    said = [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "na\u00efve"}, call]},
        {"role": "toolResult", "toolCallId": "1", "content": [{"type": "text", "text": "long " * 220_000}]},
        {"role": "pythonExecution", "code": "1", "output": ""},
    ]
    for path in (main, anna, other):
        with path.open("a") as file:
            file.writelines(json.dumps({"type": "message", "message": message}) + "\n" for message in said)
    environ = {"HOME": str(tmp_path)}
    proc.put(701, "omp", ["omp"], cwd="/srv/demo", environ=environ, fds={0: "/dev/pts/3", 20: main})
    proc.put(702, "pi", ["pi"], cwd="/srv/demo", environ=environ)
    root = build_tree(Resolver(str(proc.root)))
    assert check_tree(root) > 70
    seen = seen_by_nodes(root)
    for chat in (
        "/active/omp/701/chat", "/active/omp/701/agents/Anna/chat", "/active/pi/702/chat",
        f"/sessions/omp/{uuid7(1, 1)}/agents/Anna/chat", f"/sessions/pi/{uuid7(2, 2)}/chat",
    ):  # fmt: skip
        result = next(node for name, node in seen.items() if name.startswith(f"{chat}/") and "-bash-" in name)
        assert result.data == b"long " * 220_000 + b"\n"


class Talk(threading.Thread):
    """Lets both agents of a machine talk until it is told to stop; the lines of one come in two pieces."""

    def __init__(self, machine):
        super().__init__()
        self.machine = machine
        self.enough = threading.Event()
        self.lines = 0

    def run(self):
        while not self.enough.is_set() and self.lines < 2000:
            self.lines += 1
            call = {"type": "tool_use", "id": f"t{self.lines}", "name": "Bash", "input": {"n": self.lines}}
            text = {"type": "text", "text": f"naïve {self.lines}\n" * (self.lines % 50)}
            line = claude_line("assistant", [text, call], self.lines % 10)
            cut = self.lines * 7 % len(line)
            self.machine.writes(line[:cut])
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 300}]}
            self.machine.rolls("response_item", item)
            time.sleep(0.1)
            self.machine.writes(line[cut:])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.enough.set()
        self.join()


def test_the_front_ends_agree_while_both_chats_grow(tmp_path, monkeypatch):
    machine = Machine(tmp_path)
    root = build_tree(Resolver(str(machine.proc)))
    with Talk(machine):
        first, last = check_growing_tree(root)
        assert last > first
    for listing in (HarnessDirectory, StoredHarnessDirectory):
        # What a walk passes through is as new as what it ends at.
        monkeypatch.setattr(listing, "stat_seconds", -1)
    assert check_tree(root) > 30
