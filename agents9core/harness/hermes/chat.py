"""What a row of hermes's `messages` says (0.19.0; see docs/FORMATS.md).

One row of an assistant is its thinking, its text and its calls. In the user's role stands also what the
program says to the model: the beginning of the text tells. A row comes as its frame: a head, then its
reasoning, content and calls as they stand. Pure.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from agents9core.chat.content import (
    ABSENT,
    LIST,
    STRING,
    as_text,
    call_parts,
    content_parts,
    copied,
    first_byte,
    text_parts,
)
from agents9core.chat.decoder import RecordDecoder, lenient_decoder
from agents9core.chat.records import CALL, COPY, NOTHING, RESULT, Message, Part, Record, Span

JSON = b"\0json:"
"""Begins a content that is a list of parts."""
SUMMARIES = (b"[CONTEXT COMPACTION", b"[CONTEXT SUMMARY]")
"""What the summaries of `/compress` begin with."""
_PROGRAM_WRITTEN = (
    *SUMMARIES,
    b"[ASYNC DELEGATION",
    b"[System: ",
    b"[Your active task list was preserved across context compression]",
    b"[IMPORTANT: Background process ",
    b"[IMPORTANT: MCP servers have been reloaded",
    b"[Background process ",
)
_LONGEST_MARK = max(map(len, _PROGRAM_WRITTEN))
_IDLE, _BUSY = (("turn", "idle"),), (("turn", "busy"),)


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What a frame begins with."""

    role: str
    time: float | None
    """Seconds since 1970."""
    call: str | None
    """The call that a tool's row answers."""
    sizes: tuple[int, int, int]
    """Bytes of the reasoning, the content and the calls."""


class _Function(msgspec.Struct, frozen=True):
    name: Raw = ABSENT
    arguments: Raw = ABSENT


class _Call(msgspec.Struct, frozen=True):
    id: str | None = None
    function: _Function | None = None


_encode = msgspec.json.Encoder().encode
_head = msgspec.json.Decoder(Head).decode
_call = lenient_decoder(_Call)
_elements = msgspec.json.Decoder(list[Raw]).decode


def head_line(head: Head) -> bytes:
    """Return a head as it stands in a frame."""
    return _encode(head) + b"\n"


class RowReader(RecordDecoder[Record]):
    """Reads frames. There is one way to read them."""

    def __init__(self) -> None: ...

    def __call__(self, data: bytes, raw: bool = False, /) -> Record:
        """Read one frame; what is damaged in it is as if absent."""
        view = memoryview(data)
        begin = bytes(data).find(b"\n") + 1 if not isinstance(data, bytes) else data.find(b"\n") + 1
        head = _head(view[:begin])
        texts = []
        for size in head.sizes:
            texts.append(view[begin : begin + size])
            begin += size
        messages, facts = _said(head, *texts)
        return Record(messages, _iso(head.time), facts=facts) if messages or facts else NOTHING

    def lines(self, data: bytes, spans: Sequence[Span]) -> list[Record | None]:
        """Read frames one by one."""
        return [self._single(data, span) for span in spans]


def _said(
    head: Head, reasoning: memoryview, content: memoryview, calls: memoryview
) -> tuple[list[Message], tuple[tuple[str, str], ...]]:
    parts, beginning = _content(content), bytes(content[:_LONGEST_MARK])
    if head.role in ("user", "assistant") and beginning.startswith(SUMMARIES):
        return _message("system", parts), ()
    match head.role:
        case "user":
            role = "system" if beginning.startswith(_PROGRAM_WRITTEN) else "user"
            return _message(role, parts), _BUSY
        case "assistant":
            called = _calls(calls)
            said = [*_message("thinking", _plain(reasoning)), *_message("assistant", parts), *called]
            return said, _BUSY if called else _IDLE
        case "tool":
            return [Message(RESULT, parts, head.call)], _BUSY
        case "system":
            return _message("system", parts), ()
    return [], ()


def _message(role: str, parts: list[Part]) -> list[Message]:
    return [Message(role, parts)] if parts else []


def _plain(text: memoryview) -> list[Part]:
    return [Part(COPY, Raw(text))] if text else []


def _content(content: memoryview) -> list[Part]:
    if bytes(content[: len(JSON)]) != JSON:
        return _plain(content)
    value = Raw(content[len(JSON) :])
    try:
        return content_parts(value) if first_byte(value) == LIST else _plain(content[len(JSON) :])
    except (msgspec.DecodeError, RecursionError):
        return _plain(content[len(JSON) :])


def _calls(calls: memoryview) -> list[Message]:
    try:
        elements = _elements(calls) if calls else []
    except (msgspec.DecodeError, RecursionError):
        return []
    return [message for element in elements for message in _called(element)]


def _called(element: Raw) -> list[Message]:
    try:
        call = _call(element)
    except (msgspec.DecodeError, RecursionError):
        return []
    function: Any = call.function or _Function()
    given = function.arguments
    shown = text_parts(given) if first_byte(given) == STRING else copied(given)
    return [Message(CALL, call_parts(function.name, shown), call.id, as_text(function.name) or "")]


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


read = RowReader()
"""Reads a row of a session."""
