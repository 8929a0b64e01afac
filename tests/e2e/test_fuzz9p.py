"""A minute of rubbish over sockets: the real server does not end, hang or grow, and serves others too."""

import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from davserver.ninep import messages as m
from davserver.ninep.wire import encode
from tests.davserver.ninep.test_fuzz import mutate
from tests.e2e.fuse import within
from tests.e2e.machine import Machine

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS = 60
CLIENTS = 3
ANSWER_SECONDS = 20
"""Longer than that is a hang, also on a machine that is busy."""
GROWTH_BYTES = 16 << 20
CHAT = ("active", "claude", "601", "chat")


def conversation(version: str) -> list[bytes]:
    """Return what a client says that looks at a chat, reads it and a transcript, and tries to remove it."""
    linux = version == "9P2000.L"
    attach = (
        m.Tattach(1, 0, m.NOFID, "g", "") if version == "9P2000" else m.TattachU(1, 0, m.NOFID, "g", "", 1)
    )
    opened = m.Tlopen if linux else m.Topen
    looked = m.Tgetattr(6, 1, 0x7FF) if linux else m.Tstat(6, 1)
    listed = m.Treaddir(9, 2, 0, 900) if linux else m.Tread(9, 2, 0, 900)
    said = [
        m.Tversion(m.NOTAG, 65536, version),
        attach,
        m.Twalk(2, 0, 1, (*CHAT, "00000001-user")),
        opened(3, 1, 0),
        m.Tread(4, 1, 0, 40_000),
        looked,
        m.Twalk(7, 0, 2, CHAT),
        opened(8, 2, 0),
        listed,
        m.Twalk(10, 0, 3, ("active", "claude", "601", "transcript")),
        opened(11, 3, 0),
        m.Tread(12, 3, 1000, 40_000),
        m.Twalk(13, 0, 4, ("active", "claude", "601", "nothing")),
        m.Tflush(14, 12),
        m.Tclunk(15, 1),
        m.Tremove(16, 2),
    ]
    return [encode(message) for message in said]


def connect(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(ANSWER_SECONDS)
    sock.connect(str(path))
    return sock


def exchange(path: Path, data: bytes, pieces: random.Random) -> bytes:
    """Send *data* in pieces while reading, say that no more comes, and return all that was answered."""
    answered = bytearray()
    with connect(path) as sock:
        sent = 0
        until = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < until:
            readable, writable, _ = select.select([sock], [sock] if sent < len(data) else [], [], 1)
            try:
                if writable:
                    sent += sock.send(data[sent : sent + pieces.choice((1, 7, 100, 4096, 1 << 16))])
                    if sent == len(data):
                        sock.shutdown(socket.SHUT_WR)
                if readable:
                    arrived = sock.recv(1 << 18)
                    if not arrived:
                        return bytes(answered)
                    answered += arrived
            except (BrokenPipeError, ConnectionResetError):
                return bytes(answered)
    raise AssertionError(f"no end after {ANSWER_SECONDS} s: {data[:2000].hex()}")


def frames(data: bytes) -> list[bytes]:
    """Cut *data* into messages. Raises AssertionError where it is none."""
    found = []
    while data:
        (size,) = struct.unpack_from("<I", data)
        assert 7 <= size <= len(data)
        found.append(data[:size])
        data = data[size:]
    return found


class Fuzzer(threading.Thread):
    """Talks rubbish until told to stop; `failure` is what went wrong."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__()
        self.path = path
        self.random = random.Random(seed)
        self.enough = threading.Event()
        self.failure: BaseException | None = None
        self.conversations = 0

    def run(self) -> None:
        try:
            while not self.enough.is_set():
                answered = exchange(self.path, self.rubbish(), self.random)
                assert all(frame[4] % 2 for frame in frames(answered))
                self.conversations += 1
        except BaseException as exc:  # noqa: BLE001 - the test raises it
            self.failure = exc

    def rubbish(self) -> bytes:
        if self.random.random() < 0.1:
            return self.random.randbytes(self.random.randint(1, 5000))
        said = conversation(self.random.choice(("9P2000", "9P2000.u", "9P2000.L")))
        if self.random.random() < 0.3:
            self.random.shuffle(said)
        often = self.random.choice((0.02, 0.2, 0.6))
        return b"".join(
            mutate(self.random, frame) if self.random.random() < often else frame for frame in said
        )


@pytest.fixture
def server(tmp_path):
    """A server of a made machine: the process, its socket, and where its standard error goes."""
    machine = Machine(tmp_path / "machine")
    machine.says("user", "x" * 300_000, 2)
    path = tmp_path / "9p.sock"
    command = [sys.executable, "-m", "davserver", "serve", "--proc", machine.proc]
    command += ["--http", "none", "--9p", f"unix:{path}"]
    with (tmp_path / "stderr").open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr)
    with process:
        assert process.stdout.readline().startswith(b"9p unix:")
        yield process, path, tmp_path / "stderr"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def state_of(pid: int) -> tuple[int, int, int]:
    """Return a process's resident bytes, threads and descriptors."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    threads, descriptors = os.listdir(f"/proc/{pid}/task"), os.listdir(f"/proc/{pid}/fd")
    return pages * os.sysconf("SC_PAGE_SIZE"), len(threads), len(descriptors)


def test_a_minute_of_rubbish(server):
    process, path, stderr = server
    sane = b"".join(conversation("9P2000.L"))
    right = exchange(path, sane, random.Random(0))
    assert len(frames(right)) == len(conversation("9P2000.L"))
    _, threads, descriptors = state_of(process.pid)
    fuzzers = [Fuzzer(path, seed) for seed in range(CLIENTS)]
    memory = []
    for fuzzer in fuzzers:
        fuzzer.start()
    begun = time.monotonic()
    while time.monotonic() - begun < SECONDS and all(fuzzer.is_alive() for fuzzer in fuzzers):
        assert exchange(path, sane, random.Random(0)) == right
        memory.append(state_of(process.pid)[0])
        time.sleep(0.5)
    for fuzzer in fuzzers:
        fuzzer.enough.set()
    for fuzzer in fuzzers:
        fuzzer.join()
    assert [fuzzer.failure for fuzzer in fuzzers] == [None] * CLIENTS
    assert sum(fuzzer.conversations for fuzzer in fuzzers) > 100
    assert exchange(path, sane, random.Random(0)) == right
    within(20, lambda: state_of(process.pid)[1:] <= (threads, descriptors))
    assert max(memory[-10:]) - max(memory[: len(memory) // 3]) < GROWTH_BYTES
    said = stderr.read_text()
    assert "Traceback" not in said
    assert {line for line in said.splitlines() if not re.match(r"agents9: unix:\S+: ", line)} == set()
