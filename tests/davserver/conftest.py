"""One HTTP front end for the whole run, in front of a memory tree that each test has for itself."""

import http.client
import io
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.server.http_server import HttpServer

MTIME_NS = 1_700_000_000_123_000_000
"""Tue, 14 Nov 2023 22:13:20 GMT"""
TEXT = bytes(range(32, 127)) * 21 + b"end of file.\n"
"""2008 bytes, as in the measured exchanges."""


@dataclass
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes
    closes: bool = field(default=False)

    def __getitem__(self, name: str) -> str | None:
        return self.headers[name]


class Unclosed(io.BufferedReader):
    """What is read of a connection so far; HTTPResponse closes it after every reply."""

    def close(self) -> None:
        pass


class Client:
    """Sends bytes as given, and reads replies one by one from one connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.sock = socket.create_connection(address, timeout=20)
        self.file = Unclosed(socket.SocketIO(self.sock, "r"))

    def send(self, raw: bytes) -> None:
        self.sock.sendall(raw)

    def makefile(self, _mode: str) -> "Unclosed":
        """Give HTTPResponse what it asks a socket for: the one buffer, so that it takes no later reply."""
        return self.file

    def reply(self, method: str = "GET") -> Reply:
        response = http.client.HTTPResponse(self, method=method)
        try:
            response.begin()
            return Reply(response.status, response.headers, response.read(), response.will_close)
        finally:
            response.close()

    def ask(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Reply:
        lines = {"Host": f"{self.sock.getpeername()[0]}", **headers}
        if body is not None and "Transfer_Encoding" not in headers:
            lines["Content-Length"] = str(len(body))
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
        self.send(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b""))
        return self.reply(method)

    def get(self, target: str, **headers: str) -> Reply:
        return self.ask("GET", target, **headers)

    def ended(self) -> bool:
        """Tell whether the server has closed the connection."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.sock.close()


class Swap:
    """A WSGI application that is another one for each test."""

    app: App

    def __call__(self, environ, start_response):
        return self.app(environ, start_response)


@pytest.fixture(scope="session")
def running() -> Iterator[tuple[HttpServer, Swap]]:
    swap = Swap()
    peers = Peers()
    front_end = HttpServer(swap, [("127.0.0.1", 0)], peers)
    front_end.start()
    yield front_end, swap
    front_end.stop()
    peers.close()


@pytest.fixture
def tree() -> MemoryDirectory:
    chat = MemoryChat()
    for number in range(5):
        chat.say(
            "user" if number % 2 == 0 else "assistant", b"message %d\n" % number, MTIME_NS + number * 10**9
        )
    return MemoryDirectory(
        "",
        [
            MemoryFile("version", b"0.1\n", MTIME_NS),
            MemoryFile("file.txt", TEXT, MTIME_NS),
            MemoryFile("transcript", b"{}\n", MTIME_NS, "application/x-ndjson"),
            MemoryDirectory("active", [MemoryDirectory("claude", [MemoryDirectory("7", [chat])])]),
            MemoryDirectory("names", [MemoryFile(name, b"x", MTIME_NS) for name in ODD_NAMES]),
        ],
    )


ODD_NAMES = (
    "a b",
    "t #:?3.txt",
    "a%2Fb",
    "a&b<c>",
    "(2)",
    "ä€😀",
    "tab\there",
    "esc\x1b[31m",
    'quo"te',
    "a,b;c",
)


@pytest.fixture
def chat(tree: MemoryDirectory) -> MemoryChat:
    return tree.walk("active").walk("claude").walk("7").walk("chat")


@pytest.fixture
def client(running: tuple[HttpServer, Swap], tree: MemoryDirectory) -> Iterator[Client]:
    front_end, swap = running
    swap.app = App(tree, ["agents.example"])
    made = Client(front_end.addresses[0])
    yield made
    made.close()


@pytest.fixture
def limit(running: tuple[HttpServer, Swap], monkeypatch: pytest.MonkeyPatch):
    """Gives the server other limits for this test."""

    def set_limits(**limits: float) -> None:
        server, _ = running
        monkeypatch.setattr(server, "limits", server.limits._replace(**limits))

    return set_limits


@pytest.fixture
def another(running: tuple[HttpServer, Swap]):
    """Opens further connections to the same front end."""
    made: list[Client] = []

    def connect() -> Client:
        made.append(Client(running[0].addresses[0]))
        return made[-1]

    yield connect
    for one in made:
        one.close()


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that logs a warning it did not expect (expected ones are cleared by the test)."""
    yield
    said = [record for record in caplog.get_records("call") if record.levelno >= logging.WARNING]
    assert not said, [record.getMessage() for record in said]
