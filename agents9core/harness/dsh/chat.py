"""What a record of a dsh transcript says (formats 0 to 4; see docs/FORMATS.md).

Events that repeat what messages say (chunks, attempts, calls, what was spliced into an inbox) are silent. A
message that replaces others for the model leaves them in the transcript, and so here. Pure.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
from msgspec import Raw

from agents9core.chat.content import (
    ABSENT,
    OBJECT,
    STRING,
    Content,
    as_text,
    call_parts,
    content_parts,
    copied,
    first_byte,
    text_parts,
)
from agents9core.chat.decoder import RecordDecoder, lenient_decoder
from agents9core.chat.records import CALL, NOTHING, RESULT, Message, Part, Record

VERSIONS = range(5)
"""The formats that are read."""
TITLES = ("title",)
_Facts: TypeAlias = tuple[tuple[str, str], ...]
_LATEST_MS = 1 << 42


class _Source(msgspec.Struct, frozen=True):
    kind: str | None = None
    model: str | None = None


class _Config(msgspec.Struct, frozen=True):
    model: str | None = None


class _Header(msgspec.Struct, frozen=True):
    config: _Config | None = None


class _Message(msgspec.Struct, frozen=True):
    content: Raw = ABSENT
    source: _Source | None = None
    toolCallId: str | None = None


class _Data(msgspec.Struct, frozen=True):
    content: Raw = ABSENT
    source: _Source | None = None
    message: _Message | None = None
    header: _Header | None = None
    title: str | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str | None = None
    time: int | float | None = None
    data: _Data | None = None


class _Block(msgspec.Struct, frozen=True):
    type: str | None = None
    text: Raw = ABSENT
    id: str | None = None
    name: Raw = ABSENT
    arguments: Raw = ABSENT
    toolCallId: str | None = None
    content: Raw = ABSENT


_elements = msgspec.json.Decoder(list[Raw]).decode
_block = lenient_decoder(_Block)


def _say(event: _Event) -> Record:
    extract = _EVENTS.get(event.type)
    if extract is None or event.data is None:
        return NOTHING
    messages, facts = extract(event.data)
    return Record(messages, _iso(event.time), facts=facts)


def _user(data: _Data) -> tuple[list[Message], _Facts]:
    is_person = data.source is not None and data.source.kind == "user"
    messages = _said("user" if is_person else "system", content_parts(data.content))
    return messages, (("turn", "busy"),) if is_person else ()


def _system(data: _Data) -> tuple[list[Message], _Facts]:
    message = data.message or _Message(data.content)
    return _said("system", content_parts(message.content)), ()


def _assistant(data: _Data) -> tuple[list[Message], _Facts]:
    message = data.message or _Message(data.content, data.source)
    messages = [one for number, block in _blocks(message) for one in _part(message, number, block)]
    is_busy = any(one.role == CALL for one in messages)
    facts: _Facts = (("turn", "busy" if is_busy else "idle"),)
    model = message.source.model if message.source else None
    return messages, (*facts, ("model", model)) if model else facts


def _part(message: _Message, number: int, block: _Block) -> list[Message]:
    if block.type == "reasoning":
        return _said("thinking", text_parts(block.text))
    if block.type == "tool-call":
        given = block.arguments
        shown = text_parts(given) if first_byte(given) == STRING else copied(given)
        return [Message(CALL, call_parts(block.name, shown), block.id, as_text(block.name) or "")]
    if first_byte(message.content) == STRING:
        return _said("assistant", text_parts(message.content))
    return _said("assistant", Content(message.content).parts(number))


def _result(data: _Data) -> tuple[list[Message], _Facts]:
    """Read a result: up to format 3 it is a block, since then the message itself."""
    message = data.message or _Message(data.content)
    results = [block for _, block in _blocks(message) if block.type == "tool-result"]
    found = [Message(RESULT, content_parts(block.content), block.toolCallId) for block in results]
    return found or [Message(RESULT, content_parts(message.content), message.toolCallId)], (("turn", "busy"),)


def _title(data: _Data) -> tuple[list[Message], _Facts]:
    return [], (("title", data.title),) if data.title else ()


def _request(data: _Data) -> tuple[list[Message], _Facts]:
    config = data.header.config if data.header else None
    return [], (("model", config.model),) if config and config.model else ()


_EVENTS: dict[str | None, Callable[[_Data], tuple[list[Message], _Facts]]] = {
    "user/message": _user,
    "system/message": _system,
    "developer/message": _system,
    "assistant/message": _assistant,
    "tool/result": _result,
    "session/title": _title,
    "request/header": _request,
}


def _blocks(message: _Message) -> list[tuple[int, _Block]]:
    """Return the blocks of a message's content, each with its number; a string is one text."""
    if first_byte(message.content) == STRING:
        return [(0, _Block("text", message.content))]
    try:
        elements = _elements(message.content)
    except msgspec.DecodeError:
        return []
    return [
        (number, _block(each) if first_byte(each) == OBJECT else _Block())
        for number, each in enumerate(elements)
    ]


def _said(role: str, parts: list[Part]) -> list[Message]:
    return [Message(role, parts)] if parts else []


def _iso(milliseconds: float | None) -> str | None:
    if milliseconds is None or not 0 <= milliseconds <= _LATEST_MS:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


read = RecordDecoder(_Event, _Event, _say)
"""Reads a transcript."""
