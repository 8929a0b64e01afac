"""When a whole request is there, and what it says: fed byte by byte, and at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davserver.http.response import HTTPError
from davserver.server.framing import MAX_LINES, RequestBuffer

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
    "a body that is too long to be called for": GET + b"Expect: 100-continue\r\nContent-Length: 101\r\n\r\n",
    "chunks in an old request": OLD + b"Transfer-Encoding: chunked\r\n\r\n",
    "a length in an old request": OLD + b"Content-Length: 2\r\n\r\nab",
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
    "a chunk's extension with half an end of a line": CHUNKED + b"1;x\ry\r\n",
    "a trailer with half an end of a line": CHUNKED + b"0\r\nX: y\rZ: z\r\n",
    "a chunk's extension with NUL": CHUNKED + b"1;\0\r\n",
    "a trailer with NUL": CHUNKED + b"0\r\nX: \0\r\n",
    "a trailer that goes on with another": CHUNKED + b"0\r\n X: y\r\n",
    "a request as a trailer": CHUNKED + b"0\r\nGET http://x/ HTTP/1.1\r\n",
    "trailers without end": CHUNKED + b"0\r\n" + b"X: y\r\n" * 64,
    "an old request with two versions": b"GET / HTTP/1.0 HTTP/1.1\r\n\r\n",
    "a version that is to come": b"GET / HTTP/2.0\r\n\r\n",
    "a head without end": GET + b"X: " + b"x" * (HEAD - len(GET) - 2),
    "a target without end": b"GET /" + b"x" * (HEAD - 4),
}
"""What is whole at its last byte since nothing that could follow would make it right."""
CASES = WHOLE | REFUSED
BODIES = {
    "a length": b"abcde",
    "a length in another case": b"abcde",
    "a body like a head": b"GET\r\n\r\n\r\n",
    "as much as is wanted": b"x" * BODY,
    "chunks": b"abcde",
    "chunks with the end inside": b"0\r\n\r\n",
    "trailers": b"a",
    "chunks as far as they are wanted": b"x" * BODY,
    "a length in an old request": b"ab",
}
"""Of the others it is empty."""
CUT = {"as much as is wanted", "chunks as far as they are wanted", "a body that is too long to be called for"}
STATUS = {
    "another coding": 501,
    "a version that is to come": 505,
    "a head without end": 413,
    "a target without end": 414,
}
"""Of the others it is 400."""


def fed(*data, body_bytes=BODY):
    buffer = RequestBuffer(HEAD, body_bytes)
    for each in data:
        buffer.feed(each)
        buffer.is_whole()
    return buffer


def status_of(buffer):
    with pytest.raises(HTTPError) as refused:
        buffer.take()
    return refused.value.answer.status


@pytest.mark.parametrize("name", CASES)
def test_it_is_whole_at_its_last_byte_and_not_before(name):
    buffer, message = RequestBuffer(HEAD, BODY), CASES[name]
    said = []
    for at in range(len(message)):
        buffer.feed(message[at : at + 1])
        said.append(buffer.is_whole())
    assert said == [False] * (len(message) - 1) + [True]


@pytest.mark.parametrize("name", WHOLE)
def test_it_says_the_same_when_it_comes_at_once_with_more_behind_it(name):
    received = fed(WHOLE[name] + GET).take()
    assert (received.head.method, received.head.target) == (b"GET", b"/")
    assert received.body == BODIES.get(name, b"")
    assert received.is_cut is (name in CUT)
    assert received == fed(*(WHOLE[name][at : at + 1] for at in range(len(WHOLE[name])))).take()


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused_and_nothing_comes_after_it(name):
    buffer = fed(REFUSED[name] + GET + b"\r\n")
    assert [status_of(buffer) for _ in range(2)] == [STATUS.get(name, 400)] * 2


@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_however_it_is_split(name, data):
    message = WHOLE[name]
    ends = sorted(data.draw(st.sets(st.integers(0, len(message) - 1))))
    buffer = RequestBuffer(HEAD, BODY)
    for begin, end in zip([0, *ends], ends, strict=False):
        buffer.feed(message[begin:end])
        assert not buffer.is_whole()
    buffer.feed(message[ends[-1] if ends else 0 :])
    assert buffer.is_whole()
    assert buffer.take().body == BODIES.get(name, b"")


@given(st.binary(max_size=3000))
def test_garbage_is_refused_or_waits(data):
    at_once = fed(data)
    bit_by_bit = fed(*(data[at : at + 1] for at in range(len(data))))
    assert at_once.is_whole() == bit_by_bit.is_whole()
    if at_once.is_whole():
        assert status_of(at_once) == status_of(bit_by_bit)


def test_what_is_not_whole_cannot_be_taken():
    with pytest.raises(EOFError):
        fed(GET).take()


def test_a_body_that_nobody_hears_is_not_waited_for():
    for message in (GET + b"Content-Length: 5\r\n\r\n", CHUNKED + b"5\r\n"):
        received = fed(message, body_bytes=0).take()
        assert (received.body, received.is_cut) == (b"", True)


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
    buffer = fed(head)
    assert not buffer.is_whole()
    assert [buffer.wants_continue(), buffer.wants_continue()] == [expects, False]


@pytest.mark.parametrize("chunk", [b"1\r\na\r\n", b"1;" + b"x" * 7000 + b"\r\na\r\n"])
def test_too_much_between_chunks_is_refused(chunk):
    chunks = (16 << 10) // (len(chunk) - 1)
    buffer = fed(CHUNKED, chunk * chunks, body_bytes=1 << 16)
    assert not buffer.is_whole()
    buffer.feed(chunk)
    assert buffer.is_whole()
    assert status_of(buffer) == 413


def test_too_many_lines_of_a_head_are_refused():
    lines = b"X: y\r\n" * (MAX_LINES - GET.count(b"\n") - 1)
    for more, status in ((b"", None), (b"X: y\r\n", 431), (b"X: y\r\n" * 5000, 431)):
        buffer = RequestBuffer(1 << 16, BODY)
        buffer.feed(GET + lines + more + b"\r\n")
        assert buffer.is_whole()
        if status is None:
            buffer.take()
        else:
            assert status_of(buffer) == status


def test_what_came_is_let_go_of_with_the_connection():
    buffer = fed(GET)
    assert buffer.is_begun()
    buffer.close()
    assert not buffer.is_begun()


def test_an_empty_line_between_requests_is_no_request():
    buffer = RequestBuffer(HEAD, BODY)
    for data, begun in ((b"", False), (b"\r", False), (b"\n", False), (b"G", True)):
        buffer.feed(data)
        assert buffer.is_begun() is begun


def test_requests_are_read_one_after_the_other():
    names = ("a length", "chunks", "an empty line before it", "no body")
    buffer = fed(b"".join(WHOLE[name] for name in names))
    for name in names:
        assert buffer.is_whole()
        assert buffer.take().body == BODIES.get(name, b"")
    assert not buffer.is_whole()
    assert not buffer.is_begun()
