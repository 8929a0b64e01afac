"""Transcripts that nobody writes by accident, in full size: right answers, bounded memory, others served."""

import hashlib
import http.client
import json
import os
import re
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.machine import Machine, served

pytestmark = pytest.mark.e2e

MIB = 1 << 20
ENTRY = "/active/claude/601"
STAMP = "2026-11-02T10:00:01.000Z"


def said(content="fine", **fields):
    """Return a line by a user."""
    record = {"type": "user", "timestamp": STAMP, "message": {"role": "user", "content": content}, **fields}
    return json.dumps(record).encode() + b"\n"


def call(name, number=0, **fields):
    return {"type": "tool_use", "id": f"c{number}", "name": name, "input": {}, **fields}


def calls(*blocks):
    message = {"role": "assistant", "content": list(blocks)}
    return json.dumps({"type": "assistant", "timestamp": STAMP, "message": message}).encode() + b"\n"


class Scene:
    """A server, and a claude that is in one session after the other."""

    def __init__(self, machine, server) -> None:
        self.machine, self.server = machine, server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=100)

    def now(self, *lines: bytes) -> Path:
        """Let the claude be in another session, of these lines; return its transcript."""
        session = str(uuid.uuid4())
        self.machine.transcript.unlink()
        self.machine.transcript = self.machine.transcript.with_name(f"{session}.jsonl")
        with self.machine.transcript.open("wb") as out:
            out.writelines(lines)
        self.machine.register(601, session)
        while self.get(f"{ENTRY}/session")[1] != session.encode() + b"\n":
            continue
        self.idle_bytes = self._reset_peak()
        return self.machine.transcript

    def get(self, path):
        self.connection.request("GET", path)
        reply = self.connection.getresponse()
        return reply.status, reply.read()

    def names(self):
        status, body = self.get(f"{ENTRY}/chat/")
        assert status == 200
        return body.decode().split()

    def text(self, name):
        status, body = self.get(f"{ENTRY}/chat/{name}")
        assert status == 200
        return body

    def check(self, growth_mib=64):
        """See that another agent is served, and that the server has not grown by more."""
        assert self.get("/active/codex/611/chat/00000000-user") == (200, b"hi\n")
        assert self._peak() - self.idle_bytes < growth_mib * MIB

    def _peak(self):
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024

    def _reset_peak(self):
        Path(f"/proc/{self.server.process.pid}/clear_refs").write_text("5")
        return self._peak()


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp("hostile"))
    with served(machine) as server:
        made = Scene(machine, server)
        with closing(made.connection):
            yield made


DEEP = b'{"x":' * 100_000 + b"1" + b"}" * 100_000
ONE_MESSAGE = {
    "nested 100,000 deep": said(x="DEEP").replace(b'"DEEP"', DEEP),
    "arrays nested 100,000 deep": said(x="DEEP").replace(b'"DEEP"', b"[" * 100_000 + b"]" * 100_000),
    "100,000 keys": said(**{f"key{number}": number for number in range(100_000)}),
    "a number of 10,000 digits": said(x="DIGITS").replace(b'"DIGITS"', b"9" * 10_000),
    "an exponent that is no float": said(x="DIGITS").replace(b'"DIGITS"', b"1e99999999"),
    "a megabyte of rubbish": os.urandom(MIB).replace(b"{", b"x") + b"\n" + said(),
    "16 MiB of NULs": bytes(16 * MIB) + b"\n" + said(),
    "the year 99999": said(timestamp="99999-01-01T00:00:00Z"),
    "a negative year": said(timestamp="-0001-01-01T00:00:00Z"),
    "a time that is a number": said(timestamp=-1e300),
    "a million brackets that close nothing": b"}]" * 500_000 + b"\n" + said(),
    "two equal keys": b'{"message":{"content":"first"},' + said()[1:],
}


@pytest.mark.parametrize("data", ONE_MESSAGE.values(), ids=ONE_MESSAGE)
def test_what_is_said_beside_it_is_served(scene, data):
    scene.now(data)
    assert scene.names() == ["00000000-user"]
    assert scene.text("00000000-user") == b"fine\n"
    assert scene.get(f"{ENTRY}/chat.md")[0] == 200
    assert scene.get(f"{ENTRY}/")[0] == 200
    scene.check()


def test_a_million_lines_of_a_byte_are_skipped(scene):
    """What is read at once holds many of them, and each is an object while it is looked at."""
    scene.now(b"x\n" * 1_000_000 + said())
    assert scene.names() == ["00000000-user"]
    assert scene.text("00000000-user") == b"fine\n"
    scene.check(growth_mib=192)


def test_a_million_lone_surrogates_are_a_million_marks(scene):
    scene.now(said("MARK").replace(b"MARK", rb"\ud800" * 1_000_000))
    assert scene.names() == ["00000000-user"]
    assert scene.text("00000000-user") == "\ufffd".encode() * 1_000_000 + b"\n"
    scene.check()


def test_a_string_of_64_mb_is_a_message_of_64_mb(scene):
    """An object is read whole when it is indexed, and piece by piece from then on."""
    text = (b"0123456789abcde\n" * 4 * MIB).decode()
    scene.now(said(text))
    assert scene.names() == ["00000000-user"]
    assert hashlib.sha256(scene.text("00000000-user")).digest() == hashlib.sha256(text.encode()).digest()
    scene.check(growth_mib=3 * 80 + 64)


def test_a_line_of_2_gb_without_an_end_waits_and_is_skipped_once_it_ends(scene):
    transcript = scene.now(said())
    with transcript.open("r+b") as out:
        out.seek(0, os.SEEK_END)
        out.write(b'{"type":"user"')
        out.truncate(2 << 30)
    assert scene.names() == ["00000000-user"]
    assert scene.text("00000000-user") == b"fine\n"
    with transcript.open("ab") as out:
        out.write(b"\n" + said("afterwards"))
    assert scene.names() == ["00000000-user", "00000001-user"]
    assert scene.text("00000001-user") == b"afterwards\n"
    scene.check(growth_mib=256 + 64)


def test_300_tools_are_255_names(scene):
    scene.now(*(calls(call(f"tool{number}", number)) for number in range(300)))
    names = scene.names()
    assert names[254] == "00000254-tool254"
    assert {name[9:] for name in names[255:]} == {"tool-call"}
    scene.check()


def test_20_000_parallel_calls_are_as_many_messages(scene):
    scene.now(calls(*(call("Do", number, input={"n": number}) for number in range(20_000))))
    assert len(scene.names()) == 20_000
    assert scene.text("00019999-do") == b'Do\n{"n": 19999}\n'
    scene.check()


def test_300_000_messages_are_too_many_and_it_says_so(scene):
    scene.now(said() * 300_000)
    status, body = scene.get(f"{ENTRY}/chat/")
    assert status == 507
    assert body.strip()
    assert scene.text("00262143-user") == b"fine\n"
    assert scene.get(f"{ENTRY}/chat/00262144-user")[0] == 404
    assert scene.get(f"{ENTRY}/chat.md")[0] == 404
    assert b"chat/" in scene.get(f"{ENTRY}/")[1]
    scene.check(growth_mib=128)
