"""The listener: framing, limits, keep-alive, addresses, the end."""

import errno
import socket
import threading
import time

import pytest

from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.server.http_server import HttpServer
from davserver.server.limits import MAX_HEADER_BYTES
from davserver.server.loop import THREADS

HOST = b"Host: localhost\r\n"
GET = b"GET /version HTTP/1.1\r\n" + HOST


def raw(client, message, method="GET"):
    client.send(message)
    return client.reply(method)


MALFORMED = {
    "two lengths": GET + b"Content-Length: 1\r\nContent-Length: 5\r\n\r\nabcde",
    "two equal lengths": GET + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "length list": GET + b"Content-Length: 1, 1\r\n\r\na",
    "length and chunked": GET + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "huge length": GET + b"Content-Length: 99999999999999999999\r\n\r\n",
    "negative length": GET + b"Content-Length: -1\r\n\r\n",
    "signed length": GET + b"Content-Length: +1\r\n\r\na",
    "length with underscore": GET + b"Content-Length: 1_0\r\n\r\n0123456789",
    "empty length": GET + b"Content-Length:\r\n\r\n",
    "two hosts": GET + b"Host: evil.example\r\n\r\n",
    "no host": b"GET /version HTTP/1.1\r\n\r\n",
    "folded header": GET + b"Accept: a\r\n b\r\n\r\n",
    "blank before colon": GET + b"Content-Length : 1\r\n\r\na",
    "no colon": GET + b"garbage\r\n\r\n",
    "bare newline": GET + b"Accept: a\n\r\n\r\n",
    "bare return": GET + b"Accept: a\rb\r\n\r\n",
    "nul": GET + b"Accept: a\0b\r\n\r\n",
    "lower case method": b"get /version HTTP/1.1\r\n" + HOST + b"\r\n",
    "no version": b"GET /version\r\n" + HOST + b"\r\n",
    "broken ipv6 target": b"GET http://[ HTTP/1.1\r\n" + HOST + b"\r\n",
    "target is no path": b"GET version HTTP/1.1\r\n" + HOST + b"\r\n",
    "star for a get": b"GET * HTTP/1.1\r\n" + HOST + b"\r\n",
    "fragment": b"GET /version#x HTTP/1.1\r\n" + HOST + b"\r\n",
    "bytes that are no ascii": b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "bad chunk size": GET + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "signed chunk size": GET + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "chunk without end": GET + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    "bare return in a chunk extension": GET + b"Transfer-Encoding: chunked\r\n\r\n0;a\rb\r\n\r\n",
    "bad trailer": GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\nx\n\r\n",
}


@pytest.mark.parametrize("message", MALFORMED.values(), ids=MALFORMED)
def test_what_breaks_http_is_a_bad_request(client, message):
    reply = raw(client, message)
    assert reply.status == 400
    assert b"Traceback" not in reply.body


def test_a_refused_message_ends_the_connection(client):
    reply = raw(client, MALFORMED["two lengths"] + GET + b"\r\n")
    assert (reply.status, reply["Connection"]) == (400, "close")
    assert client.ended()


def test_an_unknown_transfer_coding_is_not_implemented(client):
    assert raw(client, GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n").status == 501


def test_headers_have_a_limit(client):
    assert raw(client, GET + b"X: " + b"a" * (MAX_HEADER_BYTES + 1000) + b"\r\n\r\n").status == 413


def test_a_target_has_a_limit(client):
    assert raw(client, b"GET /" + b"a" * (MAX_HEADER_BYTES + 1000) + b" HTTP/1.1\r\n\r\n").status == 414


def test_a_header_with_an_underscore_does_not_count(client):
    assert raw(client, GET + b"If_None_Match: *\r\n\r\n").status == 200


# -- bodies


def test_the_body_of_a_get_is_read_and_ignored(client):
    assert client.ask("GET", "/version", b"x" * 1000).body == b"0.1\n"
    assert client.get("/version").body == b"0.1\n"


def test_a_chunked_body_nobody_wants_is_not_the_next_request(client):
    smuggled = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = raw(
        client, GET + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(smuggled), smuggled)
    )
    assert reply.body == b"0.1\n"
    assert client.get("/file.txt").status == 200


def test_a_long_body_nobody_wants_ends_the_connection(client):
    client.send(b"PUT /version HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000\r\n\r\n" + b"x" * 70000)
    reply = client.reply()
    assert (reply.status, reply["Connection"]) == (405, "close")


def test_a_propfind_body_over_64_kib_is_too_large(client):
    assert client.ask("PROPFIND", "/", b" " * 65537, Depth="0").status == 413
    assert client.ask("PROPFIND", "/", b" " * 65536, Depth="0").status == 207
    assert client.ask("PROPFIND", "/", b" " * 300_000, Depth="0")["Connection"] == "close"


def test_a_chunked_propfind_body_over_64_kib_is_too_large(client):
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    client.send(
        b"PROPFIND / HTTP/1.1\r\nDepth: 0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 17
    )
    assert client.reply().status == 413


@pytest.mark.parametrize(("method", "status"), [("PROPFIND", 413), ("PUT", 405), ("GET", 200)])
def test_a_body_that_is_too_long_is_not_called_for(client, method, status):
    client.send(
        method.encode() + b" /version HTTP/1.1\r\nDepth: 0\r\nExpect: 100-continue\r\n"
        b"Content-Length: 1000000\r\n" + HOST + b"\r\n"
    )
    reply = client.reply(method)
    assert (reply.status, reply["Connection"]) == (status, "close")


def test_an_answer_is_not_undone_by_what_nobody_reads(client):
    """RFC 9112 section 9.6: a connection that is closed with bytes unread is reset."""
    client.send(b"PUT /version HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000\r\n\r\n" + b"x" * 70000)
    time.sleep(0.2)
    client.send(b"x" * 2_000_000)
    assert client.reply().status == 405
    assert client.ended()


def test_who_says_more_and_more_is_left_in_the_end(another, limit):
    limit(linger_seconds=0.3)
    one = another()
    one.send(b"PUT /version HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000\r\n\r\n" + b"x" * 70000)

    def go_on():
        while True:
            one.send(b"x")
            time.sleep(0.02)

    with pytest.raises(ConnectionError):
        go_on()


def test_who_waits_for_100_continue_is_told_to_go_on(client):
    client.send(
        b"PROPFIND / HTTP/1.1\r\nDepth: 0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" + HOST + b"\r\n"
    )
    assert client.sock.recv(100).startswith(b"HTTP/1.1 100")
    client.send(b" ")
    assert client.reply().status == 207


# -- connections


def test_a_streamed_answer_is_chunked_and_the_connection_goes_on(client):
    for target in ("/", "/active/"):
        reply = client.get(target)
        assert reply["Transfer-Encoding"] == "chunked"
        assert not reply.closes
    assert client.ask("PROPFIND", "/", Depth="1")["Transfer-Encoding"] == "chunked"
    assert client.get("/version").status == 200


def test_pipelined_requests_are_answered_in_order(client):
    client.send(GET + b"\r\n" + GET.replace(b"/version", b"/nothing") + b"\r\n" + GET + b"\r\n")
    assert [client.reply().status for _ in range(3)] == [200, 404, 200]


@pytest.mark.parametrize("wish", ["close", "Close", "close, TE", "te , CLOSE"])
def test_a_client_that_says_close_gets_it(client, wish):
    reply = client.get("/version", Connection=wish)
    assert (reply.body, reply["Connection"]) == (b"0.1\n", "close")
    assert client.ended()


def test_http_1_0_gets_a_body_that_ends_with_the_connection(client):
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    reply = client.reply()
    assert (reply.status, reply["Transfer-Encoding"]) == (200, None)
    assert reply.body.startswith(b"version\n")
    assert client.ended()


def test_http_1_0_with_chunks_ends_the_connection(client):
    chunks = b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n"
    reply = raw(client, b"GET /version HTTP/1.0\r\n" + chunks)
    assert (reply.body, reply["Connection"]) == (b"0.1\n", "close")


@pytest.mark.parametrize("wish", [b"Keep-Alive", b"keep-alive"])
def test_http_1_0_can_keep_its_connection(client, wish):
    for _ in range(2):
        reply = raw(client, b"GET /version HTTP/1.0\r\nConnection: " + wish + b"\r\n\r\n")
        assert reply["Connection"] == "keep-alive"
        assert reply.body == b"0.1\n"


def test_more_idle_connections_than_threads_hold_up_nobody(another, client):
    idle = [another() for _ in range(4 * THREADS)]
    kept = [another() for _ in range(4 * THREADS)]
    assert all(one.get("/version").status == 200 for one in kept)
    started = time.monotonic()
    assert client.get("/version").status == 200
    assert time.monotonic() - started < 1
    assert all(one.get("/version").status == 200 for one in (*idle, *kept))


def test_a_client_that_leaves_in_the_middle_hurts_nobody(another, client, tree):
    tree.add(MemoryFile("long", b"x" * 5_000_000))
    for message in (
        b"GE",
        GET,
        GET + b"Content-Length: 10\r\n\r\nabc",
        GET.replace(b"version", b"long") + b"\r\n",
    ):
        one = another()
        one.send(message)
        one.close()
    assert client.get("/version").status == 200


def test_a_response_is_never_split_by_what_was_asked(client):
    reply = client.get("/%0d%0aX-Evil:%20yes/")
    assert (reply.status, reply["X-Evil"]) == (404, None)
    reply = client.ask("PROPFIND", "/%0d%0aX-Evil:%20yes", Depth="0")
    assert (reply.status, reply["X-Evil"]) == (404, None)


def test_without_descriptors_the_front_end_waits_and_then_goes_on(another, client, caplog, monkeypatch):
    accepted = socket.socket.accept
    trouble = iter([OSError(errno.EMFILE, "Too many open files"), RuntimeError("of the test")])

    def accept(listener):
        for exc in trouble:
            raise exc
        return accepted(listener)

    monkeypatch.setattr(socket.socket, "accept", accept)
    assert another().get("/version").status == 200
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    caplog.clear()


# -- the life of a front end


@pytest.fixture
def peers():
    made = Peers()
    yield made
    made.close()


def app():
    return App(MemoryDirectory("", [MemoryFile("long", b"x" * 50_000_000)]))


def test_localhost_is_both_families_on_one_port(peers):
    front_end = HttpServer(app(), [("localhost", 0)], peers)
    front_end.start()
    try:
        hosts, ports = zip(*front_end.addresses, strict=True)
        assert hosts == ("127.0.0.1", "::1")
        assert len(set(ports)) == 1
        for address in front_end.addresses:
            with socket.create_connection(address) as sock:
                sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        front_end.stop()


def test_a_port_in_use_is_an_error_and_leaves_nothing_bound(peers):
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
        free.close()
        with pytest.raises(OSError, match="in use"):
            HttpServer(app(), [address, taken.getsockname()], peers)
    with socket.create_server(address):
        pass


def test_stop_ends_running_transfers_within_three_seconds(peers):
    front_end = HttpServer(app(), [("localhost", 0)], peers)
    front_end.start()
    stalled = []
    for address in [*front_end.addresses] * 4:
        sock = socket.create_connection(address)
        sock.sendall(b"GET /long HTTP/1.0\r\n\r\n")
        stalled.append(sock)
    half = socket.create_connection(front_end.addresses[0])
    half.sendall(b"GET /lo")
    time.sleep(0.3)
    started = time.monotonic()
    front_end.stop()
    assert time.monotonic() - started < 3
    for sock in (*stalled, half):
        sock.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(front_end.addresses[0])


def test_a_front_end_that_never_started_can_be_stopped(peers):
    front_end = HttpServer(app(), [("127.0.0.1", 0)], peers)
    front_end.stop()
    with socket.create_server(front_end.addresses[0]):
        pass


def test_a_stopped_front_end_leaves_no_thread(peers):
    before = threading.active_count()
    front_end = HttpServer(app(), [("127.0.0.1", 0)], peers)
    front_end.start()
    front_end.stop()
    assert threading.active_count() == before


def test_an_unauthenticated_clients_request_ends_before_the_tree_is_touched(peers):
    class Nobody(Peers):
        def admits(self, sock):
            return False

    class Untouchable(MemoryDirectory):
        def walk(self, name):
            raise AssertionError

        def members(self):
            raise AssertionError

    nobody = Nobody()
    front_end = HttpServer(App(Untouchable("")), [("127.0.0.1", 0)], nobody)
    front_end.start()
    try:
        with socket.create_connection(front_end.addresses[0]) as sock:
            sock.sendall(b"PROPFIND / HTTP/1.1\r\nContent-Length: 9999\r\n" + HOST + b"\r\n")
            received = b""
            while data := sock.recv(1000):
                received += data
        assert received.startswith(b"HTTP/1.1 403")
        assert b"Connection: close" in received
    finally:
        front_end.stop()
        nobody.close()


def test_an_address_that_cannot_be_found_is_named():
    peers = Peers()
    with pytest.raises(OSError, match="not known") as failed:
        HttpServer(App(MemoryDirectory("", [])), [("::1%lo", 0)], peers)
    assert failed.value.filename == "[::1%lo]:0"
    peers.close()
