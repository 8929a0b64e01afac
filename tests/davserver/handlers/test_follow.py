"""Following a chat: answers that wait for more, and a stream of events."""

import http.client
import json
import threading
import time

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.handlers import follow
from davserver.server.http_server import HttpServer
from davserver.server.loop import THREADS
from tests.davserver.conftest import Client
from tests.support.waiting import eventually

CHAT = "/active/claude/7/chat/"
WAIT = CHAT + "?after=4&wait=60"
"""The chat has the messages 0 to 4."""


def ask(client, target=WAIT, accept="application/json", **headers):
    """Ask without waiting for the answer."""
    lines = {"Host": "localhost", "Accept": accept, **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    client.send(f"GET {target} HTTP/1.1\r\n{head}\r\n".encode())


def ids(reply):
    assert reply.status == 200
    return [row["id"] for row in json.loads(reply.body)]


def waiting(chat):
    return len(chat._wakes)


@pytest.fixture
def waiter(another, client, chat):
    """Opens a connection that waits."""

    def wait(target=WAIT, **headers):
        before = waiting(chat)
        ask(one := another(), target, **headers)
        eventually(lambda: waiting(chat) == before + 1)
        return one

    return wait


# -- an answer that waits


def test_what_there_is_already_is_answered_at_once(client, chat):
    assert ids(client.get(CHAT + "?after=2&wait=60", Accept="application/json")) == [3, 4]
    assert client.get(CHAT + "?wait=60").body.count(b"\n") == 5
    assert waiting(chat) == 0


def test_a_new_message_ends_the_wait(waiter, chat):
    one, text = waiter(), waiter(accept="text/plain")
    chat.say("user", b"one more")
    assert ids(one.reply()) == [5]
    assert text.reply().body == b"00000005-user\n"
    eventually(lambda: not waiting(chat))


def test_an_empty_chat_is_waited_for(client, another, tree):
    tree.add(chat := MemoryChat("empty"))
    ask(one := another(), "/empty/?wait=60")
    eventually(lambda: waiting(chat))
    chat.say("user", b"first")
    assert ids(one.reply()) == [0]


def test_when_the_time_is_up_there_is_nothing(client, chat):
    started = time.monotonic()
    assert ids(client.get(CHAT + "?after=4&wait=1", Accept="application/json")) == []
    assert 0.9 < time.monotonic() - started < 10
    assert ids(client.get(CHAT + "?after=4&wait=0", Accept="application/json")) == []
    assert client.get(CHAT + "?after=4&wait=0").body == b""
    assert waiting(chat) == 0


def test_other_moves_do_not_end_the_wait(waiter, chat):
    one = waiter()
    for _ in range(5):
        chat._wake()
    chat.say("user", b"one more")
    assert ids(one.reply()) == [5]


@pytest.mark.parametrize("wait", ["61", "-1", "1.5", "x", "", "%D9%A1", "9" * 5000, "1&wait=1"])
def test_a_wait_that_is_none_is_a_bad_request(client, wait):
    assert client.get(f"{CHAT}?after=4&wait={wait}").status == 400


def test_an_id_that_is_not_there_is_not_waited_for(client):
    assert client.get(f"{CHAT}?after=5&wait=60").status == 410
    assert client.get(f"{CHAT}?after=4&wait=60&transcript=t9").status == 410
    assert client.get(f"{CHAT}?after=x&wait=60").status == 400


@pytest.mark.parametrize("more", ["", "&transcript=t0"])
def test_another_transcript_ends_the_wait(waiter, chat, more):
    one = waiter(WAIT + more)
    chat.clear()
    for _ in range(10):
        chat.say("user", b"of another")
    reply = one.reply()
    assert (reply.status, reply["Agents9-Transcript"]) == (410, "t1")


def test_the_end_of_the_chat_ends_the_wait(waiter, chat):
    one = waiter()
    chat.remove()
    assert one.reply().status == 404


def test_head_waits_for_nothing(client):
    reply = client.ask("HEAD", WAIT)
    assert (reply.status, reply["Agents9-Transcript"]) == (200, "t0")


def test_waiting_means_nothing_for_other_directories(client):
    assert client.get("/active/?wait=x").status == 200


# -- who waits


def test_those_who_wait_hold_up_nobody_and_are_all_answered(waiter, client, chat):
    waiters = [waiter() for _ in range(5 * THREADS)]
    assert client.get("/version").body == b"0.1\n"
    chat.say("user", b"one more")
    assert all(ids(one.reply()) == [5] for one in waiters)
    assert all(one.get("/version").body == b"0.1\n" for one in waiters)
    eventually(lambda: not waiting(chat))


def test_a_request_behind_one_that_waits_is_answered_after_it(waiter, chat):
    one = waiter()
    one.send(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
    chat.say("user", b"one more")
    assert ids(one.reply()) == [5]
    assert [one.reply().body for _ in range(2)] == [b"0.1\n"] * 2


def test_a_request_that_came_with_one_that_waits_is_answered_after_it(client, another, chat):
    get = f"GET {WAIT} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    one = another()
    one.send(get * 2)
    eventually(lambda: waiting(chat) == 1)
    chat.say("user", b"one more")
    assert [one.reply().body for _ in range(2)] == [b"00000005-user\n"] * 2


def test_who_leaves_while_waiting_is_seen_and_forgotten(running, waiter, client, chat):
    assert client.get("/version").status == 200
    connections = running[0].connections
    before = connections.copy()
    waiters = [waiter() for _ in range(20)]
    for one in waiters:
        one.file.raw.close()
        one.close()
    eventually(lambda: not waiting(chat) and connections <= before)


@pytest.fixture
def few(running, client, tree, monkeypatch):
    """Let three wait at most."""
    monkeypatch.setattr(follow, "MAX_WAITERS", 3)
    running[1].app = App(tree)


def test_one_too_many_is_told_to_come_later(few, waiter, client, chat):
    waiters = [waiter(), waiter(), waiter(CHAT, accept=follow.EVENTS)]
    for accept in ("*/*", follow.EVENTS):
        reply = client.get(WAIT, Accept=accept)
        assert (reply.status, reply["Retry-After"]) == (503, "5")
    assert client.get(CHAT + "?after=4").status == 200
    assert client.get(CHAT + "?after=4&wait=0").status == 200
    waiters[0].file.raw.close()
    waiters[0].close()
    eventually(lambda: waiting(chat) == 2)
    waiter()
    for one in waiters[1:]:
        one.file.raw.close()
        one.close()
    eventually(lambda: waiting(chat) == 1)
    waiter()


def test_no_wake_is_lost_however_it_falls(another, client, chat):
    found = []

    def poll(one):
        seen = 4
        while seen < 304:
            reply = one.get(f"{CHAT}?after={seen}&wait=60", Accept="application/json")
            seen = ids(reply)[-1]
        found.append(seen)

    clients = [another() for _ in range(10)]
    pollers = [threading.Thread(target=poll, args=(one,)) for one in clients]
    for poller in pollers:
        poller.start()
    for _ in range(300):
        chat.say("user", b"x")
        time.sleep(0.003)
    for poller in pollers:
        poller.join(30)
    assert found == [304] * 10


def test_stop_ends_those_who_wait(tree, chat):
    peers = Peers()
    front_end = HttpServer(App(tree), [("localhost", 0)], peers)
    front_end.start()
    clients = [Client(front_end.addresses[number % 2]) for number in range(30)]
    for number, one in enumerate(clients):
        ask(one, accept=follow.EVENTS if number % 3 else "*/*", target=WAIT)
    eventually(lambda: waiting(chat) == 30)
    started = time.monotonic()
    front_end.stop()
    assert time.monotonic() - started < 3
    assert waiting(chat) == 0
    peers.close()
    for one in clients:
        one.close()


# -- events


class Events:
    """A stream of events, read one by one."""

    def __init__(self, client, target=CHAT, **headers):
        ask(client, target, follow.EVENTS, **headers)
        self.response = http.client.HTTPResponse(client)
        self.response.begin()
        assert self.response.status == 200
        assert self.response.headers["Content-Type"] == "text/event-stream"

    def lines(self):
        """Return the lines up to the next empty one; [] at the end."""
        lines = []
        while line := self.response.readline().decode().rstrip("\n"):
            lines.append(line)
        return lines

    def next(self):
        """Return the next event, comments and settings passed over."""
        while lines := self.lines():
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if "data" in fields:
                return fields.get("event", "message"), fields["id"], json.loads(fields["data"])
        raise EOFError

    def some(self, count):
        return [self.next()[1] for _ in range(count)]


@pytest.fixture
def events(another, client):
    return lambda target=CHAT, **headers: Events(another(), target, **headers)


def test_every_message_is_an_event_with_its_row(events, client, chat):
    rows = json.loads(client.get(CHAT, Accept="application/json").body)
    stream = events()
    assert [stream.next() for _ in rows] == [("message", f"t0/{row['id']}", row) for row in rows]
    chat.say("bash", b"more")
    kind, id_, row = stream.next()
    assert (kind, id_, row["name"], row["href"]) == (
        "message",
        "t0/5",
        "00000005-bash",
        CHAT + "00000005-bash",
    )


def test_events_begin_after_the_message_that_is_named(events, chat):
    after, last = events(CHAT + "?after=3&transcript=t0"), events(CHAT + "?after=0", Last_Event_ID="t0/3")
    chat.say("user", b"more")
    assert after.some(2) == last.some(2) == ["t0/4", "t0/5"]


def test_nothing_of_a_transcript_is_a_place_in_it(events):
    assert events(CHAT + "?after=3", Last_Event_ID="t0/").some(1) == ["t0/0"]


def test_another_transcript_is_an_event_and_then_goes_on_from_its_first_message(events, chat):
    stream = events(CHAT + "?after=4")
    chat.clear()
    assert stream.next() == ("reset", "t1/", {"transcript": "t1"})
    chat.say("user", b"afresh")
    chat.say("user", b"more")
    assert stream.some(2) == ["t1/0", "t1/1"]


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("?after=2&transcript=t9", {}),
        ("?after=99", {}),
        ("?after=2", {"Last_Event_ID": "t9/2"}),
        ("", {"Last_Event_ID": "t0/99"}),
        ("", {"Last_Event_ID": "t0/" + "9" * 5000}),
    ],
)
def test_a_place_that_is_not_there_any_more_is_a_reset(events, query, headers):
    stream = events(CHAT + query, **headers)
    assert stream.next()[:2] == ("reset", "t0/")
    assert stream.some(5) == [f"t0/{number}" for number in range(5)]


@pytest.mark.parametrize("last", ["t0", "t0/x", "/", "0", "t0/1/2", "t\xe40/1"])
def test_an_event_id_that_is_none_of_ours_is_a_bad_request(client, last):
    assert client.get(CHAT, Accept=follow.EVENTS, Last_Event_ID=last).status == 400


def test_a_silent_chat_is_heard_now_and_then(events, monkeypatch):
    monkeypatch.setattr(follow, "HEARTBEAT_SECONDS", 0.1)
    stream = events(CHAT + "?after=4")
    assert stream.lines() == ["retry: 2000"]
    assert [stream.lines() for _ in range(3)] == [[":"]] * 3


def test_a_long_chat_is_streamed_to_one_who_reads_slowly(another, client, tree):
    tree.add(chat := MemoryChat("long"))
    rows = 12_000
    chat._nodes = {f"{number:08d}-user": node for number, node in enumerate([chat.say("user", b"x")] * rows)}
    stream = Events(another(), "/long/")
    assert client.get("/version").status == 200
    assert stream.some(rows)[-1] == f"t0/{rows - 1}"


def test_a_stream_ends_with_its_chat_and_there_is_no_other(events, client, chat):
    stream = events(CHAT + "?after=4")
    chat.remove()
    with pytest.raises((EOFError, http.client.IncompleteRead)):
        stream.next()
    assert client.get(CHAT, Accept=follow.EVENTS).status == 404


def test_who_leaves_a_stream_is_forgotten(another, client, chat):
    one = another()
    Events(one, CHAT + "?after=4")
    eventually(lambda: waiting(chat) == 1)
    one.file.raw.close()
    one.close()
    eventually(lambda: not waiting(chat))


def test_an_old_client_gets_a_stream_too(client, chat):
    client.send(f"GET {CHAT}?after=4 HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n".encode())
    response = http.client.HTTPResponse(client)
    response.begin()
    assert response.readline() == b"retry: 2000\n"
    chat.say("user", b"more")
    assert response.readline() + response.readline() == b"\nid: t0/5\n"


def test_head_of_a_stream_ends(client):
    reply = client.ask("HEAD", CHAT, Accept=follow.EVENTS)
    assert (reply.status, reply["Content-Type"]) == (200, "text/event-stream")
    assert client.get("/version").status == 200


def test_only_a_chat_has_events(client):
    assert client.get("/active/", Accept=follow.EVENTS)["Content-Type"] == "text/plain; charset=utf-8"
    assert client.get(CHAT, Accept="text/*")["Content-Type"] == "text/plain; charset=utf-8"


def test_a_chat_that_is_replaced_is_followed_on(events, tree, chat):
    stream = events(CHAT + "?after=4")
    other = MemoryChat()
    other.transcript = "t7"
    tree.walk("active").walk("claude").walk("7").add(other)
    chat.clear()
    assert stream.next()[1] == "t7/"
    other.say("user", b"of the other")
    assert stream.some(1) == ["t7/0"]


def test_a_memory_tree_is_all_that_following_needs():
    root = MemoryDirectory("", [chat := MemoryChat()])
    chat.say("user", b"x")
    environ = {"REQUEST_METHOD": "GET", "REQUEST_URI": "/chat/?wait=1", "SERVER_PROTOCOL": "HTTP/1.1"}
    environ |= {"HTTP_HOST": "localhost", "SERVER_NAME": "localhost", "agents9.peer_admitted": True}
    body = App(root)({**environ, "agents9.wake": lambda: None}, lambda status, headers: None)
    assert b"".join(body) == b"00000000-user\n"
