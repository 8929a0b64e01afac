"""curl follows a chat of a real transcript: a long poll, and a stream of events."""

import json
import subprocess
from contextlib import contextmanager

import pytest

from tests.e2e.machine import SESSION, Machine, get, served

pytestmark = pytest.mark.e2e

CHAT = "/active/claude/601/chat/"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@contextmanager
def curl(*arguments):
    """Run curl while the block lasts."""
    command = ["curl", "-sSN", "--max-time", "60", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def next_event(process):
    """Return the next event of a stream as its kind and its data."""
    kind = "message"
    while line := process.stdout.readline():
        name, _, value = line.rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        if name == "data":
            return kind, json.loads(value)
    raise EOFError


def test_a_long_poll_ends_with_the_next_line_of_the_transcript(machine):
    with served(machine) as server, curl(f"{server.url}{CHAT}?after=0&wait=60") as waiting:
        assert get(f"{server.url}/version")
        machine.writes('{"type":"summary","summary":"no message"}\n')
        machine.says("assistant", [{"type": "text", "text": "two"}], 2)
        assert waiting.communicate(timeout=20)[0] == "00000001-assistant\n"


def test_a_stream_tells_each_message_and_another_transcript(machine):
    with served(machine) as server, curl("-H", "Accept: text/event-stream", server.url + CHAT) as stream:
        assert next_event(stream)[1]["name"] == "00000000-user"
        for number in range(1, 4):
            machine.says("user", "more", number)
            kind, row = next_event(stream)
            assert (kind, row["id"]) == ("message", number)
            assert get(server.url + row["href"]) == "more\n"
        other = SESSION.replace("0d0f", "0d0e")
        machine.transcript = machine.transcript.with_name(f"{other}.jsonl")
        machine.register(601, other)
        assert next_event(stream)[0] == "reset"
        machine.says("user", "afresh")
        kind, row = next_event(stream)
        while kind == "reset":  # the session had no transcript, and then it had one
            kind, row = next_event(stream)
        assert get(server.url + row["href"]) == "afresh\n"


def test_a_stream_ends_with_its_agent(machine):
    with served(machine) as server, curl("-H", "Accept: text/event-stream", server.url + CHAT) as stream:
        assert next_event(stream)[1]["id"] == 0
        machine.end(601)
        with pytest.raises(EOFError):
            next_event(stream)


def test_the_server_stops_while_it_is_followed(machine):
    with served(machine) as server, curl("-H", "Accept: text/event-stream", server.url + CHAT) as stream:
        assert next_event(stream)[1]["id"] == 0
        with curl(f"{server.url}{CHAT}?after=0&wait=60"):
            server.process.terminate()
            assert server.process.wait(3) == 0
