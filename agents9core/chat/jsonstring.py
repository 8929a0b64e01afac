"""JSON strings as they stand in a transcript, turned into the UTF-8 that is served.

Harnesses write what `JSON.parse` forgives and UTF-8 does not: lone surrogate escapes, raw control
characters, bytes of a torn character. Each lone surrogate becomes U+FFFD, bytes that are not UTF-8
become what `errors='replace'` makes of them, and everything else is the string itself.

A long string is turned piece by piece: `safe_cut` finds where a piece may end, so that the pieces
joined are the whole, wherever the cuts fall.

`redacted` puts `[encrypted]` or `[data]` in the place of long sealed and binary strings of a JSON value.

Pure: bytes in, bytes out.
"""

import json
import re
from collections.abc import Iterator

import msgspec

_decode = msgspec.json.Decoder(str).decode
_tolerant = json.JSONDecoder(strict=False).decode
_LONE = "[\ud800-\udfff]++"
_LONGEST_ESCAPE = 12
"""Bytes of a surrogate pair, both halves escaped."""

LEAST_REDACTED_BYTES = 64
"""Of a string that is replaced: its key says what it is, or it is a `data:` URL."""
_SEALED = {b"encrypted_content": b'"[encrypted]"'}
_BINARY = {b"blob", b"data", b"file_data"}
_DATA = b'"[data]"'
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_COLON = re.compile(rb"\s*:")
_AFTER_KEY = re.compile(rb"\s*:\s*(\[\s*)?")
_LONGEST_KEY = 128

Redaction = tuple[int, int, bytes]
"""Where a string begins with its quote, where it ends, and what is shown instead."""


def text_of(string: bytes | msgspec.Raw) -> str:
    """Return the text of a JSON string, quotes included in *string*. Raises ValueError: it is none."""
    try:
        return _decode(string)
    except msgspec.DecodeError:
        text: str = _tolerant(str(memoryview(string), "utf-8", "replace"))
        return re.sub(_LONE, lambda run: "\ufffd" * len(run[0]), text)


def utf8(data: bytes) -> bytes:
    """Return *data* with every byte that is not UTF-8 replaced."""
    if data.isascii():
        return data
    return data.decode("utf-8", "replace").encode()


def unescape(inner: bytes) -> bytes:
    """Return the UTF-8 of the inside of a JSON string, without its quotes."""
    if b"\\" not in inner:
        return utf8(inner)
    return text_of(b'"%b"' % inner).encode()


def safe_cut(data: bytes, end: int, begin: int = 0) -> int:
    """Return the last place at or before *end* where the inside of a JSON string may be cut.

    No escape, no escaped surrogate pair and no UTF-8 character is parted there. *begin*: where a cut is safe;
    nothing before it is examined. It is at most 12 bytes before *end*, and *begin* where what begins there is
    longer.
    """
    return _before_character(data, _before_escape(data, end, begin), begin)


def _before_escape(data: bytes, end: int, begin: int) -> int:
    """Step back over an escape that *end* would part, and over a high surrogate that waits for its low."""
    start = _last_escape(data, end, begin)
    if start is None:
        return end
    whole = 6 if data[start + 1 : start + 2] == b"u" else 2
    if end < start + whole:
        end = start
        start = _last_escape(data, end, begin)
    if start is not None and end == start + 6 and _is_high(data[start:end]):
        return start
    return end


def _last_escape(data: bytes, end: int, begin: int) -> int | None:
    """Return where the last escape that begins in the few bytes before *end* begins."""
    last = data.rfind(b"\\", max(begin, end - _LONGEST_ESCAPE), end)
    if last < 0:
        return None
    run = data[begin : last + 1]
    return last if (len(run) - len(run.rstrip(b"\\"))) % 2 else last - 1


def _is_high(escape: bytes) -> bool:
    return escape[1:2] == b"u" and escape[2:3] in b"dD" and escape[3:4] in b"89abAB"


def _before_character(data: bytes, end: int, begin: int) -> int:
    """Step back to the first byte of a character that *end* would part; stray bytes are no character."""
    if end >= len(data) or not 0x80 <= data[end] < 0xC0:
        return end
    for at in range(end - 1, max(end - 4, begin - 1), -1):
        if data[at] >= 0xC0:
            return at
        if data[at] < 0x80:
            break
    return end


def redactions(data: bytes) -> Iterator[Redaction]:
    """Yield what is replaced in a JSON value, in its order."""
    key, ended, is_in_list = b"", 0, False
    for match in _STRING.finditer(data):
        inner, gap = match[1], data[ended : match.start()]
        ended = match.end()
        if _COLON.match(data, ended):
            key, is_in_list = unescape(inner) if len(inner) <= _LONGEST_KEY else b"", False
            continue
        begins = _AFTER_KEY.fullmatch(gap) if key else None
        is_in_list = begins[1] is not None if begins else is_in_list and gap.strip() == b","
        if not begins and not is_in_list:
            key = b""
        if len(inner) >= LEAST_REDACTED_BYTES:
            shown = _shown_instead(key, inner)
            if shown is not None:
                yield match.start(), ended, shown


def _shown_instead(key: bytes, inner: bytes) -> bytes | None:
    """Return what is shown of a long string under *key*; None: itself."""
    if key in _SEALED:
        return _SEALED[key]
    is_binary = key in _BINARY or unescape(inner[: safe_cut(inner, 32)])[:5].lower() == b"data:"
    return _DATA if is_binary else None


def redacted(data: bytes) -> bytes:
    """Return the value as it is served."""
    shown, at = [], 0
    for start, end, literal in redactions(data):
        shown += [utf8(data[at:start]), literal]
        at = end
    return b"".join([*shown, utf8(data[at:])])
