"""Objects that a strict JSON parser refuses, mended byte for byte in place so that no offset moves. Pure.

Lone surrogates, control characters, bad UTF-8, and nesting too deep to parse.
"""

import codecs
import re
from typing import cast

import msgspec

from agents9core.chat.records import (
    _MARK_EACH,
    LITERAL,
    Message,
    ObjectDecoder,
    Part,
    Record,
    find_part,
    raw_bytes,
)

_PIECE = 1 << 16
_MARKS_SHOWN = {0x7F: "\ufffd", 0x80: "\ufffd"}
"""What the marks of bad UTF-8 stand for, where a text is shown from the mended object."""


_DEPTH = 200
"""Deeper than this a value is only copied, never looked into; parsers give up near 1,000."""


_STRING = rb'"(?:[^"\\]++|\\.)*+"'


TOKEN = re.compile(_STRING + rb'|["{}\[\]]', re.DOTALL)


_HIGH, _LOW = (rb"\\u[dD][%b][0-9a-fA-F]{2}" % half for half in (b"89abAB", b"c-fC-F"))


_ALONE = rb"(?:%b(?!%b)|%b)" % (_HIGH, _LOW, _LOW)


_DAMAGE = rb"(?:\\\\|%b%b)++|(?P<lone>%b{1,999}+)|(?P<controls>[\0-\x1f]{1,999}+)" % (_HIGH, _LOW, _ALONE)
"""Short runs of lone surrogates, and of control characters; backslashes that escape each other, and pairs of
surrogates, are matched so that they are passed over."""


def read_mended(data: bytes, read: ObjectDecoder[Record]) -> Record | None:
    """Read an object that a strict parser refuses.

    Mending keeps every byte in its place, so that each part can be taken from the object as it stands. It
    is done in one buffer: a line may be as long as LONGEST.
    """
    buffer = bytearray(data)
    _mend(buffer)
    mended = cast(bytes, buffer)  # a reader takes any buffer
    try:
        record = read(mended, True)
    except RecursionError:
        _flatten(buffer)
        try:
            record = read(mended, True)
        except (msgspec.DecodeError, RecursionError):
            return None
    except msgspec.DecodeError:
        return None
    return msgspec.structs.replace(record, messages=_relocated(record.messages, mended, data))


def _mend(data: bytearray) -> None:
    """Put U+FFFD in place of every lone surrogate, blanks of control characters, and marks of bad UTF-8."""
    _mend_utf8(memoryview(data))
    for damage in re.finditer(_DAMAGE, data):
        start, end = damage.span()
        if damage.lastgroup == "lone":
            data[start:end] = b"\\ufffd" * ((end - start) // 6)
        elif damage.lastgroup == "controls":
            data[start:end] = b" " * (end - start)


def _mend_utf8(data: memoryview) -> None:
    at = 0
    while at < len(data):
        piece = data[at : at + _PIECE]
        text, used = codecs.utf_8_decode(piece, _MARK_EACH, at + _PIECE >= len(data))
        piece[:used] = text.encode()
        at += used


def _flatten(data: bytearray) -> None:
    """Put a 0 and blanks in place of every value that lies too deep."""
    depth = 0
    view = memoryview(data)
    for token in TOKEN.finditer(data):
        start = token.start()
        if data[start] in b"{[":
            depth += 1
            if depth == _DEPTH:
                begin = start
        elif data[start] in b"}]":
            if depth == _DEPTH:
                view[begin : start + 1] = b"0".ljust(start + 1 - begin)
            depth -= 1


def _relocated(messages: list[Message], mended: bytes, data: bytes) -> list[Message]:
    """Take each part from *data* instead of from *mended*, at the same place."""
    after = 0
    view = memoryview(data)
    moved = []
    for message in messages:
        parts = []
        for part in message.parts:
            if part.how != LITERAL:
                at = find_part(mended, raw_bytes(part), after)
                after = at + len(memoryview(raw_bytes(part)))
                part = Part(part.how, msgspec.Raw(view[at:after]))
            parts.append(part)
        tool = message.tool.translate(_MARKS_SHOWN)
        moved.append(msgspec.structs.replace(message, parts=parts, tool=tool))
    return moved
