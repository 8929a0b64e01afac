"""Clients that are slow, or say nothing: they hold up nobody, and the honest ones get everything."""

import contextlib
import os
import resource
import socket
import threading
import time

import pytest

from agents9core.memory import MemoryFile, MemoryReader
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.server.connection import Outbox
from davserver.server.http_server import HttpServer
from davserver.server.loop import THREADS
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("client")

HOST = b"Host: localhost\r\n"
GET = b"GET /version HTTP/1.1\r\n" + HOST
LONG = bytes(range(256)) * 20_000
"""5 MB: more than the kernel takes for a client that reads nothing."""
HALVES = (
    b"G",
    b"GET /ver",
    GET,
    b"PROPFIND / HTTP/1.1\r\nContent-Length: 100\r\n" + HOST + b"\r\nabc",
    b"PROPFIND / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n5\r\nab",
)


class Watched(MemoryFile):
    """A file that knows how many readers are open."""

    open_readers = 0

    def open(self):
        self.open_readers += 1
        return WatchedReader(self)


class WatchedReader(MemoryReader):
    def close(self):
        self._file.open_readers -= 1


@pytest.fixture
def long(tree):
    tree.add(file := Watched("long", LONG))
    return file


def stalled(another):
    """Ask for a long file, and read the first bytes of it only."""
    one = another()
    one.send(b"GET /long HTTP/1.1\r\n" + HOST + b"\r\n")
    assert one.sock.recv(4) == b"HTTP"
    return one


def rest_of(one):
    """Read the rest of the answer of a stalled client."""
    received = b"HTTP" + one.file.readline()
    while line := one.file.readline().strip():
        received += line
    return one.file.read(len(LONG))


@pytest.fixture
def many_descriptors():
    """Allow what 256 of each kind need at both ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
def test_256_half_requests_and_256_stalled_readers_hold_up_nobody(another, client, long):
    """Nor do 256 that send a byte now and then."""
    dribbling = [another() for _ in range(256)]
    for number in range(256):
        dribbling[number].send(GET)
        another().send(HALVES[number % len(HALVES)])
        stalled(another)
    took = []
    with dribble(dribbling):
        for one in (client, client, another(), another(), another()):
            started = time.monotonic()
            assert one.get("/version").body == b"0.1\n"
            took.append(time.monotonic() - started)
    assert sorted(took)[2] < 0.5


@contextlib.contextmanager
def dribble(clients):
    """Let each client send one byte of a header after the other while the block lasts."""
    enough = threading.Event()

    def send():
        while not enough.wait(0.05):
            for one in clients:
                with contextlib.suppress(ConnectionError):  # it has had its time
                    one.send(b"x")

    sending = threading.Thread(target=send)
    sending.start()
    try:
        yield
    finally:
        enough.set()
        sending.join()


def test_a_reader_that_pauses_gets_every_byte(another, client, long):
    paused = [stalled(another) for _ in range(2 * THREADS)]
    eventually(lambda: client.get("/version").status == 200 and long.open_readers == len(paused))
    for one in paused:
        assert rest_of(one) == LONG
        assert one.get("/version").body == b"0.1\n"


def test_a_listing_that_is_read_slowly_is_whole(another, tree):
    tree.add(many := type(tree)("many", [MemoryFile(f"{number:05d}" + "n" * 200) for number in range(9000)]))
    one = another()
    one.send(b"GET /many/ HTTP/1.1\r\n" + HOST + b"\r\n")
    assert another().get("/version").status == 200
    assert len(one.reply().body.splitlines()) == len(many.members())


@pytest.mark.parametrize("half", HALVES)
def test_a_request_that_does_not_end_is_a_timeout(another, limit, half):
    limit(request_seconds=0.2)
    one = another()
    one.send(half)
    reply = one.reply()
    assert (reply.status, reply["Connection"]) == (408, "close")
    assert one.ended()


def test_a_byte_now_and_then_is_no_longer_time(another, limit):
    limit(request_seconds=0.5)
    one = another()
    started = time.monotonic()
    one.sock.settimeout(0.05)
    received = b""
    while not received:
        assert time.monotonic() - started < 20
        one.send(b"G")
        try:
            received = one.sock.recv(1000)
        except TimeoutError:
            continue
    assert received.startswith(b"HTTP/1.1 408")


def test_an_idle_connection_ends_without_a_word(another, limit):
    limit(idle_seconds=0.2)
    new, used = another(), another()
    assert used.get("/version").status == 200
    used.send(b"\r\n")
    assert new.sock.recv(1) == b""
    assert used.sock.recv(1) == b""


def test_a_client_that_takes_nothing_is_left_in_the_end(another, long, limit):
    limit(stall_seconds=0.2)
    one = stalled(another)
    eventually(lambda: not long.open_readers)
    with pytest.raises(AssertionError):
        assert rest_of(one) == LONG


@pytest.mark.parametrize("pause_at", range(1, len(GET) + 2, 7))
def test_a_request_in_two_parts_is_one(another, client, pause_at):
    whole = GET + b"\r\n"
    one = another()
    one.send(whole[:pause_at])
    assert client.get("/version").status == 200
    one.send(whole[pause_at:])
    assert one.reply().body == b"0.1\n"


def test_requests_that_come_while_an_answer_is_stalled_are_answered(another, client, long):
    one = another()
    one.send(b"GET /long HTTP/1.1\r\n" + HOST + b"\r\n" + GET + b"\r\n" + GET[:10])
    assert client.get("/version").status == 200
    one.send(GET[10:] + b"\r\n")
    assert [len(one.reply().body) for _ in range(3)] == [len(LONG), 4, 4]


def test_a_body_is_called_for_before_it_has_its_turn(another, client):
    waiting = []
    for _ in range(2 * THREADS):
        waiting.append(another())
        waiting[-1].send(
            b"PROPFIND / HTTP/1.1\r\nDepth: 0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n"
            + HOST
            + b"\r\n"
        )
    for one in waiting:
        assert one.file.readline() + one.file.readline() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert client.get("/version").status == 200
    for one in waiting:
        one.send(b" ")
        assert one.reply().status == 207


def test_a_body_behind_another_request_is_called_for(another):
    one = another()
    one.send(
        GET
        + b"\r\nPROPFIND / HTTP/1.1\r\nDepth: 0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n"
        + HOST
        + b"\r\n"
    )
    assert one.reply().body == b"0.1\n"
    assert one.file.readline() + one.file.readline() == b"HTTP/1.1 100 Continue\r\n\r\n"
    one.send(b" ")
    assert one.reply().status == 207


def test_a_body_that_would_be_too_long_is_not_called_for(another):
    one = another()
    one.send(b"PUT /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 100000000\r\n" + HOST + b"\r\n")
    reply = one.reply()
    assert (reply.status, reply["Connection"]) == (405, "close")


def test_who_shuts_its_end_after_asking_is_answered(another, long):
    one = another()
    one.send(b"GET /long HTTP/1.1\r\n" + HOST + b"\r\n")
    one.sock.shutdown(socket.SHUT_WR)
    assert one.reply().body == LONG


@pytest.mark.parametrize(
    "last", [GET + b"Connection: close\r\n\r\n", b"GET /version HTTP/1.0\r\n\r\n", b"G\r\n\r\n"]
)
def test_what_is_said_behind_the_last_answer_is_read_away(another, limit, last):
    """A reset could undo the answer before the client has read it (RFC 9112 section 9.6)."""
    limit(linger_seconds=20)
    one = another()
    one.send(last)
    assert one.reply()["Connection"] == "close"
    assert one.ended()
    for _ in range(3):
        one.send(b"x" * 100_000)
        assert one.sock.recv(1) == b""


def test_who_says_nothing_more_is_left_soon(running, another, client, limit):
    limit(linger_seconds=0.1)
    assert client.get("/version").status == 200
    before = running[0].connections.copy()
    one = another()
    one.send(b"G\r\n\r\n")
    assert one.reply().status == 400
    eventually(lambda: running[0].connections == before)


def test_the_last_words_wait_for_room(another, monkeypatch):
    full = []

    def flush(outbox):
        if outbox._parts and b" 400 " in bytes(outbox._parts[0]) and not full:
            full.append(outbox)
            return False
        return flush_now(outbox)

    flush_now = Outbox.flush
    monkeypatch.setattr(Outbox, "flush", flush)
    one = another()
    one.send(b"G\r\n\r\n")
    assert one.reply().status == 400
    assert one.ended()
    assert full


def test_what_stalled_clients_held_is_free_when_they_have_left(running, another, client, long):
    front_end = running[0]
    assert client.get("/version").status == 200
    before, descriptors = front_end.connections.copy(), len(os.listdir("/proc/self/fd"))
    clients = [stalled(another) for _ in range(20)]
    for number in range(20):
        clients.append(another())
        clients[-1].send(HALVES[number % len(HALVES)])
    eventually(lambda: len(front_end.connections - before) == 40)
    for one in clients:
        one.file.raw.close()
        one.close()
    eventually(lambda: front_end.connections <= before and not long.open_readers)
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


def has_ended(sock):
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:  # what it had said was not read yet
        return True


def test_stop_lets_a_reader_finish_that_reads(tree, long):
    peers = Peers()
    front_end = HttpServer(App(tree), [("127.0.0.1", 0)], peers)
    front_end.start()
    chat_format, idle, half = (socket.create_connection(front_end.addresses[0], timeout=20) for _ in range(3))
    chat_format.sendall(b"GET /long HTTP/1.0\r\n\r\n")
    half.sendall(b"GET")
    received = chat_format.recv(1000)
    eventually(lambda: len(front_end.connections) == 3)
    front_end.loop.drain()
    assert has_ended(idle)
    assert has_ended(half)
    while data := chat_format.recv(1_000_000):
        received += data
    assert received.endswith(LONG)
    front_end.stop()
    peers.close()
    for sock in (chat_format, idle, half):
        sock.close()
