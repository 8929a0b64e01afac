"""Every door shows the same tree: the one in memory, and the real one over a made machine."""

import json

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from agents9core.resolver import Resolver
from agents9core.tree import build_tree
from tests.conformance import check_tree
from tests.e2e.machine import Machine

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
