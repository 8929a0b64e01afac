"""Looking for a text in the messages of a chat."""

import json
import re
import time
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.memory import MemoryChat, MemoryFile, MemoryReader
from davserver.handlers import search
from davserver.handlers.search import TextSearch
from davserver.server.loop import THREADS
from tests.support.waiting import eventually

CHAT = "/active/claude/7/chat/"


def found(client, text, more="", chat=CHAT):
    reply = client.get(f"{chat}?q={urllib.parse.quote(text)}{more}", Accept="application/json")
    assert reply.status == 200
    return [row["id"] for row in json.loads(reply.body)]


# -- in pieces


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("segfault", "a SegFault here"),
        ("STRASSE", "straße"),
        ("straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("🤔", "so 🤔 it is"),
        ("a", "a"),
        ("tail", "at the tail"),
        ("two\nlines", "Two\nLines"),
        ("\ufffd", "\ufffd"),
    ],
)
def test_it_is_found_however_the_pieces_fall(text, said):
    data = said.encode()
    for size in range(1, len(data) + 1):
        looking = TextSearch(text)
        assert any(looking.is_in(data[at : at + size]) for at in range(0, len(data), size))


@given(st.text(max_size=40), st.text(min_size=1, max_size=4), st.sets(st.integers(0, 160)))
def test_pieces_find_what_the_whole_holds(said, text, cuts):
    data = said.encode(errors="replace")
    ends = sorted({cut for cut in cuts if cut < len(data)} | {len(data)})
    looking = TextSearch(text)
    in_pieces = any(
        looking.is_in(data[start:end]) for start, end in zip([0, *ends], ends, strict=False) if start < end
    )
    assert in_pieces == bool(text.casefold() in data.decode().casefold() and data)


def test_bytes_that_are_no_text_are_searched_too():
    assert TextSearch("def").is_in(b"abc\xff\xfedef")


# -- over HTTP


def test_the_messages_that_hold_it_are_found(client, chat):
    chat.say("bash-result", "Segmentation FAULT in naïve.c\n".encode())
    chat.say("user", b"what fault?\n")
    chat.say("user", b"\xff\xfe not text\n")
    assert found(client, "fault") == [5, 6]
    assert found(client, "NAÏVE") == [5]
    assert found(client, "message 3\n") == [3]
    assert found(client, "not there") == []


def test_what_is_found_is_listed_as_ever(client, chat):
    rows = json.loads(client.get(CHAT, Accept="application/json").body)
    reply = client.get(CHAT + "?q=message+2", Accept="application/json")
    assert json.loads(reply.body) == [rows[2]]
    assert (reply["Agents9-Transcript"], reply["Link"]) == ("t0", None)
    assert client.get(CHAT + "?q=message+2").body == b"00000002-user\n"
    assert client.get(CHAT + "?q=message+2", Accept="text/event-stream").body == b"00000002-user\n"


def test_only_later_messages_are_searched_where_that_is_asked(client):
    assert found(client, "message", "&after=2") == [3, 4]
    assert found(client, "message", "&after=4&transcript=t0") == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?q=", 400),
        ("?q=a&q=b", 400),
        ("?q=a&wait=1", 400),
        ("?q=a&after=x", 400),
        ("?q=a&after=99", 410),
        ("?q=a&transcript=t9", 410),
    ],
)
def test_what_cannot_be_searched_is_refused(client, query, status):
    assert client.get(CHAT + query).status == status
    assert found(client, "message 1") == [1]


def test_head_searches_nothing(client):
    assert client.ask("HEAD", CHAT + "?q=message").status == 200


def test_a_long_answer_points_to_the_next(client, tree, monkeypatch):
    monkeypatch.setattr(search, "MAX_FOUND", 10)
    tree.add(chat := MemoryChat("many"))
    for number in range(50):
        chat.say("user", b"even & <odd>\n" if number % 2 else b"nothing\n")
    target, ids = "/many/?q=even+%26+%3Codd%3E&after=3", []
    while target:
        reply = client.get(target, Accept="application/json")
        ids.append([row["id"] for row in json.loads(reply.body)])
        link = re.fullmatch(r'<(/many/\?[!-;=?-~]+)>; rel="next"', reply["Link"] or "")
        target = link[1] if link else None
    assert ids == [list(range(5, 25, 2)), list(range(25, 45, 2)), list(range(45, 50, 2))]


def test_a_hit_across_two_pieces_of_a_long_message_is_found(client, chat):
    before = b"x" * (search.PIECE_BYTES - 3)
    chat.say("bash-result", before + "Nädel".encode() + b"y" * search.PIECE_BYTES + b"end")
    assert found(client, "nädel") == [5]
    assert found(client, "yend") == [5]


def test_a_message_of_no_bytes_holds_nothing(client, chat):
    chat.say("bash-result", b"")
    chat.say("user", b"the next")
    assert found(client, "the next") == [6]


class Endless(MemoryFile):
    """A message that is never read to its end; *open_readers* tells whether one tries."""

    open_readers = 0

    def stat(self):
        return super().stat()._replace(length=1 << 60)

    def open(self):
        self.open_readers += 1
        return EndlessReader(self)


class EndlessReader(MemoryReader):
    def read(self, offset, count):
        time.sleep(0.001)
        return b"x" * 100

    def close(self):
        self._file.open_readers -= 1


@pytest.fixture
def endless(tree):
    tree.add(chat := MemoryChat("endless"))
    chat.add(file := Endless("00000000-user", b"x"))
    return file


@pytest.fixture
def scanning(another, client, endless):
    one = another()
    one.send(b"GET /endless/?q=y HTTP/1.1\r\nHost: localhost\r\n\r\n")
    eventually(lambda: endless.open_readers)
    return one


def leave(one):
    one.file.raw.close()
    one.close()


def test_a_client_searches_once_at_a_time(scanning, client, endless):
    reply = client.get(CHAT + "?q=message")
    assert (reply.status, reply["Retry-After"]) == (429, "1")
    leave(scanning)
    eventually(lambda: not endless.open_readers)
    assert found(client, "message 1") == [1]


def test_a_search_holds_up_nobody(scanning, client, another):
    started = time.monotonic()
    for _ in range(2 * THREADS):
        assert client.get("/version").body == b"0.1\n"
    assert another().get(CHAT).status == 200
    assert time.monotonic() - started < 10


def test_another_transcript_ends_the_search(client, another, tree, endless, scanning):
    tree.walk("endless").clear()
    reply = scanning.reply()
    assert (reply.status, reply["Agents9-Transcript"]) == (410, "t1")
    assert not endless.open_readers
    assert found(client, "message 1") == [1]


def test_messages_that_come_meanwhile_are_searched_too(client, tree, monkeypatch):
    monkeypatch.setattr(search, "TURN_SECONDS", 0)
    tree.add(chat := MemoryChat("growing"))

    class Talking(MemoryFile):
        def open(self):
            if len(chat.members()) < 300:
                chat.add(Talking(f"{len(chat.members()):08d}-user", b"hay"))
            else:
                chat.say("user", b"needle")
            return super().open()

    chat.add(Talking("00000000-user", b"hay"))
    assert found(client, "needle", chat="/growing/") == [300]
