"""When a whole request is there: fed byte by byte, and as files are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davserver.gate import Framing, Inbox

HEAD, BODY = 1000, 100
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
OLD = b"GET / HTTP/1.0\r\nHost: x\r\n"
CHUNKED = GET + b"Transfer-Encoding: chunked\r\n\r\n"

WHOLE = {
    "no body": GET + b"\r\n",
    "an empty line before it": b"\r\n" + GET + b"\r\n",
    "a length": GET + b"Content-Length: 5\r\n\r\nabcde",
    "a length in another case": GET + b"CONTENT-LENGTH:5 \r\n\r\nabcde",
    "a body like a head": GET + b"Content-Length: 9\r\n\r\nGET\r\n\r\n\r\n",
    "no length": GET + b"Content-Length: 0\r\n\r\n",
    "as much as is wanted": GET + b"Content-Length: 5000\r\n\r\n" + b"x" * BODY,
    "chunks": CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
    "no chunks": CHUNKED + b"0\r\n\r\n",
    "chunks with the end inside": CHUNKED + b"5\r\n0\r\n\r\n\r\n0\r\n\r\n",
    "trailers": CHUNKED + b"1\r\na\r\n0\r\nX: y\r\nZ: w\r\n\r\n",
    "chunks as far as they are wanted": CHUNKED + b"%x\r\n" % (BODY - 1) + b"x" * (BODY - 1) + b"\r\nff\r\nx",
    "chunks in an old request": OLD + b"Transfer-Encoding: chunked\r\n\r\n",
    "a length in an old request": OLD + b"Content-Length: 2\r\n\r\nab",
    "a head without end": GET + b"X: " + b"x" * (HEAD - len(GET) - 2),
}
REFUSED = {
    "bare newlines": b"GET / HTTP/1.1\nHost: x\n\n",
    "two empty lines": b"\r\n\r\n",
    "length and chunks": GET + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "another coding": GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "an odd length": GET + b"Content-Length: +5\r\n\r\n",
    "an endless length": GET + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    "an odd chunk": CHUNKED + b"xyz\r\n",
    "an endless chunk size": CHUNKED + b"0" * 8192,
    "an odd trailer": CHUNKED + b"0\r\nX\n",
    "trailers without end": CHUNKED + b"0\r\n" + b"X: y\r\n" * 64,
    "a body that is too long to be called for": GET + b"Expect: 100-continue\r\nContent-Length: 101\r\n\r\n",
}
"""What is whole at its last byte since nothing that could follow would make it right."""
CASES = WHOLE | REFUSED


@pytest.mark.parametrize("message", CASES.values(), ids=CASES)
def test_it_is_whole_at_its_last_byte_and_not_before(message):
    framing = Framing(HEAD, BODY)
    assert [framing.is_whole(message[:end]) for end in range(len(message))] == [False] * len(message)
    assert framing.is_whole(message)


@pytest.mark.parametrize("message", CASES.values(), ids=CASES)
def test_it_is_whole_when_it_comes_at_once_with_more_behind_it(message):
    assert Framing(HEAD, BODY).is_whole(message + GET)


@given(st.sampled_from(sorted(WHOLE.values())), st.data())
def test_however_it_is_split(message, data):
    framing = Framing(HEAD, BODY)
    ends = sorted(data.draw(st.sets(st.integers(0, len(message) - 1))))
    assert not any(framing.is_whole(message[:end]) for end in ends)
    assert framing.is_whole(message)


@given(st.binary(max_size=3000))
def test_garbage_is_whole_or_waits(data):
    framing = Framing(HEAD, BODY)
    at_once = Framing(HEAD, BODY).is_whole(data)
    assert [framing.is_whole(data[:end]) for end in range(len(data) + 1)][-1] == at_once


def test_a_body_that_nobody_hears_is_not_waited_for():
    assert Framing(HEAD, 0).is_whole(GET + b"Content-Length: 5\r\n\r\n")
    assert Framing(HEAD, 0).is_whole(CHUNKED + b"5\r\n")


@pytest.mark.parametrize(
    ("head", "expects"),
    [
        (GET + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", True),
        (GET + b"Content-Length: 5\r\nexpect:100-Continue \r\n\r\n", True),
        (GET + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n", True),
        (GET + b"Content-Length: 5\r\n\r\n", False),
        (OLD + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", False),
        (GET + b"Content-Length: 5\r\nExpect: 200-continue\r\n\r\n", False),
    ],
)
def test_who_waits_to_be_called_is_called_once(head, expects):
    inbox = Inbox(HEAD, BODY)
    inbox.feed(head)
    assert not inbox.is_whole()
    assert [inbox.wants_continue(), inbox.wants_continue()] == [expects, False]


def test_more_between_chunks_than_in_them_is_not_waited_for():
    inbox = Inbox(HEAD, 1 << 16)
    inbox.feed(CHUNKED)
    fed = 0
    while not inbox.is_whole():
        assert fed < 1 << 18
        inbox.feed(b"1;" + b"x" * 7000 + b"\r\nx\r\n")
        fed += 7000


def test_what_came_is_let_go_of_with_the_connection():
    inbox = Inbox(HEAD, BODY)
    inbox.feed(GET)
    inbox.close()
    assert not inbox.has_data()


def test_an_empty_line_between_requests_is_no_request():
    inbox = Inbox(HEAD, BODY)
    for data, begun in ((b"", False), (b"\r", False), (b"\n", False), (b"G", True)):
        inbox.feed(data)
        assert inbox.is_begun() is begun


def test_requests_are_read_one_after_the_other():
    inbox = Inbox(HEAD, BODY)
    messages = [WHOLE[name] for name in ("a length", "chunks", "no body")]
    inbox.feed(b"".join(messages))
    for message in messages:
        assert inbox.is_whole()
        assert inbox.readline() == b"GET / HTTP/1.1\r\n"
        assert inbox.read(len(message) - 16) == message[16:]
        inbox.begin_next()
    assert not inbox.is_whole()
    assert not inbox.has_data()


def test_a_line_is_cut_where_it_is_asked_to_be():
    inbox = Inbox(HEAD, BODY)
    inbox.feed(b"abc\r\nrest")
    assert [inbox.readline(2), inbox.readline(100), inbox.readline(), inbox.readline(), inbox.read(1)] == [
        b"ab",
        b"c\r\n",
        b"rest",
        b"",
        b"",
    ]
