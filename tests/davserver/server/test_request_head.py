"""The head of a request: what it asks for, and what is no head."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davserver.http.response import HTTPError
from davserver.server.request_head import RequestHead, parse_head


def head(*lines, version=b"1.1"):
    return parse_head(b"\r\n".join((b"GET /a?b HTTP/" + version, *lines, b"", b"")))


def refusal(data):
    with pytest.raises(HTTPError) as refused:
        parse_head(data)
    return refused.value.answer.status


def test_a_head_says_all_that_is_asked():
    said = head(b"Host: x:1", b"Accept:a", b"accept: b", b"X-Long-Name: \t v \xe4 \t", b"Content-Type: t/s")
    assert said == RequestHead(
        method=b"GET",
        target=b"/a?b",
        version="HTTP/1.1",
        fields={
            b"Host": b"x:1",
            b"Accept": b"a, b",
            b"X-Long-Name": b"v \xe4",
            b"Content-Type": b"t/s",
        },
        length=0,
        is_chunked=False,
        keeps=True,
        expects=False,
    )


@pytest.mark.parametrize(
    ("version", "wish", "keeps"),
    [
        (b"1.1", b"close", False),
        (b"1.1", b"TE, Close", False),
        (b"1.1", b"closed", True),
        (b"1.2", b"", True),
        (b"1.0", b"", False),
        (b"1.0", b"Keep-Alive", True),
        (b"1.0", b"keep-alive, close", False),
    ],
)
def test_who_stays(version, wish, keeps):
    assert head(b"Connection: " + wish, version=version).keeps is keeps


@pytest.mark.parametrize(
    ("version", "lines", "length", "is_chunked"),
    [
        (b"1.1", [b"Content-Length: 12"], 12, False),
        (b"1.1", [b"Transfer-Encoding: Chunked"], 0, True),
        (b"1.0", [b"Content-Length: 012"], 12, False),
        (b"1.0", [b"Transfer-Encoding: chunked"], 0, False),
        (b"1.9", [b"Transfer-Encoding: chunked"], 0, True),
    ],
)
def test_where_the_body_ends(version, lines, length, is_chunked):
    said = head(*lines, version=version)
    assert (said.length, said.is_chunked) == (length, is_chunked)
    assert said.version == ("HTTP/1.0" if version == b"1.0" else "HTTP/1.1")


def test_an_old_request_in_chunks_does_not_stay():
    assert not head(b"Transfer-Encoding: chunked", b"Connection: keep-alive", version=b"1.0").keeps


REFUSED = {
    b"get / HTTP/1.1": 400,
    b"GET  / HTTP/1.1": 400,
    b" GET / HTTP/1.1": 400,
    b"GET / HTTP/1.1 ": 400,
    b"GET /\t HTTP/1.1": 400,
    b"GET /\x7f HTTP/1.1": 400,
    b"GET / http/1.1": 400,
    b"GET / HTTP/11": 400,
    b"GET / HTTP/1.10": 400,
    b"GET / HTTP/0.9": 505,
    b"GET / HTTP/3.0": 505,
    b"GET / HTTP/1.1\r\n: x": 400,
    b"GET / HTTP/1.1\r\nA b: x": 400,
    b"GET / HTTP/1.1\r\nA\xe4: x": 400,
    b"GET / HTTP/1.1\r\nA: x\ny": 400,
    b"GET / HTTP/1.1\r\nA_b: x\ry": 400,
    b"GET / HTTP/1.1\r\nHost: a\r\nhost: b": 400,
    b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked": 501,
    b"GET / HTTP/1.1\r\nTransfer-Encoding:": 501,
    b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked": 400,
    b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 1": 400,
    b"GET / HTTP/1.1\r\nContent-Length: \xb2": 400,
    "GET / HTTP/1.1\r\nContent-Length: ٣".encode(): 400,
}


@pytest.mark.parametrize("data", REFUSED)
def test_what_is_no_head(data):
    assert refusal(data + b"\r\n\r\n") == REFUSED[data]


def test_a_name_with_an_underscore_cannot_pass_for_one_with_a_dash():
    assert head(b"Content_Length: 5", b"If_Match: *").fields == {}


@given(st.binary(max_size=300))
def test_whatever_comes_is_a_head_or_refused(data):
    with contextlib.suppress(HTTPError):
        said = parse_head(b"GET / HTTP/1.1\r\n" + data + b"\r\n\r\n")
        assert all(b"\r" not in value and b"\n" not in value for value in said.fields.values())
