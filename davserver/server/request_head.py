"""The head of a request: what it asks for, and where its body ends.

Pure, and strict where leniency lets two servers read one message in two ways: bytes in, a RequestHead out, or
an HTTPError that says what is wrong. The parser of cheroot folds lines, takes the last of two
lengths and reads `+5` as one. Source: RFC 9112 sections 2.2, 3, 5, 6 and 9.3; names and values are bytes as
in `cheroot.server.HTTPRequest`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from davserver.http.response import HTTPError

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Z-]+) ([!-~\x80-\xff]+) HTTP/([0-9])\.([0-9])")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DIGITS = re.compile(rb"[0-9]{1,18}")
_LENGTH, _CODING = b"Content-Length", b"Transfer-Encoding"
_ONLY_ONCE = {b"Host", _LENGTH, _CODING}


class RequestHead(NamedTuple):
    """A request, without its body."""

    method: bytes
    target: bytes
    """As it stands."""
    version: str
    """HTTP/1.0 or HTTP/1.1: the one to answer by."""
    fields: dict[bytes, bytes]
    """By their names in title case; those that came several times are one list."""
    length: int
    """What Content-Length says; 0 where there is none."""
    is_chunked: bool
    keeps: bool
    """Whether the client wants to keep the connection."""
    expects: bool
    """Whether it waits for "100 Continue" before it sends the body."""


def parse_head(data: bytes) -> RequestHead:
    """Return what a head says, which ends with its empty line. Raises HTTPError."""
    if not data.endswith(b"\r\n\r\n"):
        raise HTTPError(400, "A line of the head does not end as lines do")
    lines = data.removeprefix(b"\r\n").split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(lines[0])
    if match is None:
        raise HTTPError(400, "Malformed request line")
    method, target, major, minor = match.groups()
    if major != b"1":
        raise HTTPError(505)
    version = "HTTP/1.0" if minor == b"0" else "HTTP/1.1"
    fields = _fields(lines[1:-2])
    length, is_chunked = _framing(fields, version)
    return RequestHead(
        method,
        target,
        version,
        fields,
        length,
        is_chunked,
        _keeps(fields, version),
        version == "HTTP/1.1" and fields.get(b"Expect", b"").lower() == b"100-continue",
    )


def _fields(lines: list[bytes]) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name):
            raise HTTPError(400, "Malformed header line")
        if b"\n" in value or b"\0" in value or b"\r" in value:
            raise HTTPError(400, "Malformed header value")
        if b"_" in name:
            continue  # WSGI cannot tell it from one with a dash
        name, value = _titled(name), value.strip(b" \t")
        if name in fields:
            if name in _ONLY_ONCE:
                raise HTTPError(400, "A header that may come once came twice")
            value = b"%b, %b" % (fields[name], value)
        fields[name] = value
    return fields


@lru_cache(maxsize=256)
def _titled(name: bytes) -> bytes:
    return name.title()


def _framing(fields: dict[bytes, bytes], version: str) -> tuple[int, bool]:
    """Return the body's length and whether it comes in chunks (section 6.3)."""
    length, coding = fields.get(_LENGTH), fields.get(_CODING)
    if length is not None and (coding is not None or not _DIGITS.fullmatch(length)):
        raise HTTPError(400, "Malformed Content-Length")
    if coding is None or version == "HTTP/1.0":  # to which chunks are unknown (section 6.1)
        return int(length or 0), False
    if coding.lower() != b"chunked":
        raise HTTPError(501, "The transfer coding is not known")
    return 0, True


def _keeps(fields: dict[bytes, bytes], version: str) -> bool:
    tokens = {token.strip() for token in fields.get(b"Connection", b"").lower().split(b",")}
    if version == "HTTP/1.0":
        # Where its body ends cannot be told, if it has one in chunks.
        return b"keep-alive" in tokens and b"close" not in tokens and _CODING not in fields
    return b"close" not in tokens
