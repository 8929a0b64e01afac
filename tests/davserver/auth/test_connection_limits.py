"""A client of another user at the front end: refused, or asked for a password where there are some."""

import base64
import contextlib
import socket
import threading
import time

import pytest

from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.app import App
from davserver.auth import connection_limits as strangers
from davserver.auth.passwords import CHALLENGE, Cost, Hash, Passwords
from davserver.auth.peer_credentials import Peers, UnknownPeer
from davserver.server.http_server import HttpServer
from tests.davserver.conftest import Client

GOOD = "Basic " + base64.b64encode(b"alice:secret").decode()
BAD = "Basic " + base64.b64encode(b"alice:guess").decode()
BODY = b'<propfind xmlns="DAV:"><prop><getetag/></prop></propfind>'


class Others(Peers):
    """Takes every client for that of another user."""

    uid: int | None = 4242
    """None is nobody on this machine, -1 who comes from another one."""
    knows_us = False

    def __init__(self):
        super().__init__()
        self.may_tell = threading.Event()
        self.may_tell.set()

    def admits(self, sock):
        return self.knows_us

    def uid_of(self, sock):
        if self.uid is None:
            raise UnknownPeer("nobody")
        return self.uid

    def name_of(self, sock):
        self.may_tell.wait(20)
        return "192.0.2.7" if self.uid == -1 else super().name_of(sock)


@pytest.fixture
def peers():
    peers = Others()
    yield peers
    peers.close()


@pytest.fixture
def front_end(peers):
    """Opens a front end with *passwords*; connects to it."""
    made = []

    def connect(passwords):
        app = App(MemoryDirectory("", [MemoryFile("version", b"0.1\n")]), (), passwords)
        opened = HttpServer(app, [("127.0.0.1", 0)], peers, hears_strangers=passwords is not None)
        opened.start()
        made.append(opened.stop)
        return lambda: made.insert(0, (client := Client(opened.addresses[0])).close) or client

    yield connect
    for end in made:
        end()


@pytest.fixture
def connect(front_end):
    known = {b"alice": Hash.of(b"secret", Cost(2, 1, 1))}
    return front_end(Passwords(lambda: known))


def test_without_passwords_an_unauthenticated_client_is_refused(front_end):
    client = front_end(None)()
    reply = client.get("/version", Authorization=GOOD)
    assert (reply.status, reply["WWW-Authenticate"], reply.closes) == (403, None, True)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PROPFIND", "PUT", "BREW"])
@pytest.mark.parametrize("target", ["/version", "/nothing", "/..%2f", "/:static/page.js"])
def test_an_unauthenticated_client_is_asked_whatever_it_wants(connect, method, target):
    reply = connect().ask(method, target)
    assert (reply.status, reply["WWW-Authenticate"]) == (401, CHALLENGE[1])
    assert b"0.1" not in reply.body


def test_the_same_connection_goes_on_after_the_challenge(connect):
    client = connect()
    assert client.get("/version").status == 401
    assert client.ask("PROPFIND", "/", BODY, Depth="1").status == 401
    assert client.ask("PROPFIND", "/", BODY, Depth="1", Authorization=GOOD).status == 207
    assert client.get("/version", Authorization=GOOD).body == b"0.1\n"
    assert client.get("/version").status == 401


def test_a_wrong_password_makes_the_next_one_wait(connect):
    client = connect()
    assert client.get("/version", Authorization=BAD).status == 401
    reply = client.get("/version", Authorization=GOOD)
    assert (reply.status, reply["Retry-After"]) == (429, "1")


def test_one_user_who_guesses_keeps_out_no_other(connect, peers):
    assert connect().get("/version", Authorization=BAD).status == 401
    peers.uid = 4243
    assert connect().get("/version", Authorization=GOOD).status == 200


def test_nobody_of_this_machine_gets_a_try_at_a_password(connect, peers, monkeypatch):
    monkeypatch.setattr(Hash, "matches", lambda hashed, given: pytest.fail("tried"))
    peers.uid = None
    reply = connect().get("/version", Authorization=GOOD)
    assert (reply.status, reply["WWW-Authenticate"], reply.closes) == (403, None, True)


def test_who_has_closed_his_end_gets_no_try(connect, peers):
    peers.may_tell.clear()
    client = connect()
    client.send(f"GET /version HTTP/1.1\r\nHost: localhost\r\nAuthorization: {GOOD}\r\n\r\n".encode())
    client.sock.shutdown(socket.SHUT_WR)
    peers.may_tell.set()
    assert client.reply().status == 403
    assert connect().get("/version", Authorization=GOOD).status == 200


def test_one_of_another_machine_may_have_a_password(connect, peers):
    peers.uid = -1
    client = connect()
    assert client.get("/version").status == 401
    assert client.get("/version", Authorization=GOOD).status == 200


def test_a_password_does_not_help_another_site(connect):
    client = connect()
    for more in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}):
        assert client.get("/version", Authorization=GOOD, **more).status == 403
    assert client.get("/version", Authorization=GOOD, Host="evil.example").status == 421


def test_the_servers_own_user_is_not_asked(running, client, tree):
    running[1].app = App(tree, (), Passwords(dict))
    assert client.get("/version").status == 200
    assert client.get("/version", Authorization=BAD).status == 200


def test_one_who_takes_many_connections_keeps_out_nobody_else(connect, peers, monkeypatch):
    monkeypatch.setattr(strangers, "MAX_EACH", 3)
    held = [connect() for _ in range(3)]
    assert all(one.get("/version").status == 401 for one in held)
    assert connect().ended()
    peers.uid = 4243
    assert connect().get("/version", Authorization=GOOD).status == 200
    peers.uid = 4242
    held[0].close()
    assert eventually_asked(connect) == 401


def test_all_unauthenticated_clients_together_keep_out_no_one_who_is_known(connect, peers, monkeypatch):
    monkeypatch.setattr(strangers, "MAX_ALL", 3)
    for peers.uid in range(3):
        assert connect().get("/version").status == 401
    peers.uid = 4
    assert connect().ended()
    peers.knows_us = True
    assert all(connect().get("/version").status == 200 for _ in range(10))


def eventually_asked(connect):
    """Connect until there is room."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(OSError):  # also http.client.RemoteDisconnected
            return connect().get("/version").status
    return None


def test_a_long_body_of_an_unauthenticated_client_ends_the_connection(connect):
    client = connect()
    reply = client.ask("PROPFIND", "/", b"x" * 100_000, Depth="1")
    assert (reply.status, reply.closes) == (401, True)
