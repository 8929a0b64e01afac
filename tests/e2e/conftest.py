"""An HTTP front end on a free port, in front of a small tree, for real clients."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.server.http_server import HttpServer

MTIME_NS = 1_700_000_000_000_000_000
LONG = bytes(range(256)) * 8192
"""2 MiB, so that a body is streamed."""

Run = Callable[..., subprocess.CompletedProcess[str]]


class Served(NamedTuple):
    url: str
    root: MemoryDirectory
    chat: MemoryChat
    transcript: MemoryFile


@pytest.fixture
def http_door() -> Iterator[Served]:
    chat = MemoryChat()
    chat.say("user", "Is it the naïve cache? 🤔\n".encode(), MTIME_NS)
    chat.say("assistant", b"Let me look.\n", MTIME_NS + 10**9)
    transcript = MemoryFile("transcript", b'{"type":"user"}\n' * 1000, MTIME_NS, "application/x-ndjson")
    agent = MemoryDirectory("345104", [MemoryFile("title", b"Fix it\n", MTIME_NS), transcript, chat])
    root = MemoryDirectory(
        "",
        [
            MemoryDirectory("active", [MemoryDirectory("claude", [agent])]),
            MemoryFile("long", LONG, MTIME_NS),
            MemoryDirectory("names", [MemoryFile("a b & (c) ä?#%.txt", b"odd\n", MTIME_NS)]),
        ],
    )
    peers = Peers()
    front_end = HttpServer(App(root), [("127.0.0.1", 0)], peers)
    front_end.start()
    host, port = front_end.addresses[0]
    yield Served(f"http://{host}:{port}", root, chat, transcript)
    front_end.stop()
    peers.close()


@pytest.fixture
def run() -> Run:
    """Runs a program that must be installed (tests/e2e/packages.txt)."""

    def call(program: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        path = shutil.which(program)
        assert path, f"{program} is not installed; run tests/e2e/install-clients"
        options = {"capture_output": True, "text": True, "timeout": 60, "check": False, **options}
        return subprocess.run([path, *arguments], **options)

    return call
