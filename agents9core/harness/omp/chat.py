"""How a line of an omp or pi transcript is decoded (omp 18.2, pi 0.73 to 1.6; see docs/FORMATS.md).

One entry a line. Entries form a tree, of which the live branch is the last entry's line of parents: all
branches are read, in the order of the file, so that a message never moves. Pure.
"""

import re
from collections.abc import Callable
from typing import Any, Generic, TypeAlias

import msgspec
from msgspec import Raw

from agents9core.chat.content import (
    ABSENT,
    IMAGE,
    LIST,
    OBJECT,
    Block,
    Body,
    Content,
    Decoded,
    Text,
    as_text,
    call_parts,
    content_parts,
    copied,
    first_byte,
    has,
    text_parts,
)
from agents9core.chat.decoder import RecordDecoder, lenient_decoder
from agents9core.chat.records import CALL, LITERAL, NOTHING, RESULT, Message, Part, Record

TITLES = ("session_name",)
"""The facts that may be the title of a pi session. omp's stands in its slot."""

_SLOT_BYTES = 256
_SLOT_BEGINS = re.compile(rb'\{ ?"type": ?"title"')
_PASSING = "fallback"
"""The role of a model that stands in for another for a moment."""
_STOPS = {"toolUse": "busy", "stop": "idle", "length": "idle", "aborted": "idle", "error": "idle"}
"""Whether the turn goes on after an answer that ended so."""
_TYPED = "typed by the person"
"""The id that a command of the person's and its result share."""


class _OmpMessage(msgspec.Struct, Generic[Text, Body], frozen=True, gc=False):
    role: str | None = None
    content: Body = ABSENT
    sections: Raw = ABSENT
    toolCallId: str | None = None
    command: Text = ABSENT
    code: Text = ABSENT
    output: Body = ABSENT
    summary: Text = ABSENT
    files: Raw = ABSENT
    provider: str | None = None
    model: str | None = None
    stopReason: str | None = None
    errorMessage: Text = ABSENT


class _Entry(msgspec.Struct, Generic[Text, Body], frozen=True, gc=False):
    type: str | None = None
    timestamp: str | None = None
    message: _OmpMessage[Text, Body] | None = None
    content: Body = ABSENT
    summary: Text = ABSENT
    customType: str | None = None
    role: str | None = None
    model: str | None = None
    provider: str | None = None
    modelId: str | None = None
    resolvedModel: str | None = None
    name: str | None = None


class _File(msgspec.Struct, frozen=True, gc=False):
    """A file that a prompt mentions."""

    path: Raw = ABSENT
    content: Raw = ABSENT
    image: Raw = ABSENT


_AnyBlock: TypeAlias = Block[Any, Any]
_AnyMessage: TypeAlias = _OmpMessage[Any, Any]
_AnyEntry: TypeAlias = _Entry[Any, Any]
_Facts: TypeAlias = tuple[tuple[str, str], ...]

_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_elements = msgspec.json.Decoder(list[Raw]).decode
_file = lenient_decoder(_File)


def slot_bytes(beginning: bytes) -> int:
    """Return the length of the title slot that a file begins with, which is rewritten in place; 0: none."""
    if not _SLOT_BEGINS.match(beginning):
        return 0
    end = beginning.find(b"\n", 0, _SLOT_BYTES)
    whole = end == _SLOT_BYTES - 1 or (end < 0 and len(beginning) < _SLOT_BYTES)
    return _SLOT_BYTES if whole else 0


def _say(entry: _AnyEntry) -> Record:
    extract = _ENTRIES.get(entry.type)
    return extract(entry) if extract else NOTHING


def _message(entry: _AnyEntry) -> Record:
    message = entry.message
    if message is None:
        return NOTHING
    speak = _ROLES.get(message.role, _system)
    return Record(speak(message), entry.timestamp, facts=_turn(message) + _spoke(message))


def _summed_up(entry: _AnyEntry) -> Record:
    return Record(_said("system", text_parts(entry.summary)), entry.timestamp)


def _injected(entry: _AnyEntry) -> Record:
    return Record(_said("system", content_parts(entry.content)), entry.timestamp)


def _model_change(entry: _AnyEntry) -> Record:
    if entry.role == _PASSING:
        return NOTHING
    return Record(time=entry.timestamp, facts=_model(entry.provider, entry.modelId or entry.model))


def _session_init(entry: _AnyEntry) -> Record:
    model = entry.resolvedModel
    return Record(time=entry.timestamp, facts=(("begun_with", model),) if model else ())


def _session_info(entry: _AnyEntry) -> Record:
    return Record(time=entry.timestamp, facts=(("session_name", entry.name or ""),))


def _left_off(entry: _AnyEntry) -> Record:
    return Record(time=entry.timestamp, facts=(("turn", "idle"),))


def _custom(entry: _AnyEntry) -> Record:
    return _left_off(entry) if entry.customType == "session_exit" else NOTHING


_ENTRIES: dict[str | None, Callable[[_AnyEntry], Record]] = {
    "message": _message,
    "compaction": _summed_up,
    "branch_summary": _summed_up,
    "custom_message": _injected,
    "custom": _custom,
    "model_change": _model_change,
    "session": _model_change,  # where pi 0.5 named its model
    "session_init": _session_init,
    "session_info": _session_info,
    "reset_boundary": _left_off,
}


def _turn(message: _AnyMessage) -> _Facts:
    """Return whether a turn is running after this: it begins with a prompt and ends with an answer that calls
    no tool.
    """
    turn = "busy" if message.role == "user" else None
    if message.role == "assistant":
        turn = _STOPS.get(message.stopReason or "")
    return (("turn", turn),) if turn else ()


def _spoke(message: _AnyMessage) -> _Facts:
    return _model(message.provider, message.model) if message.role == "assistant" else ()


def _model(provider: str | None, model: str | None) -> _Facts:
    name = f"{provider}/{model}" if provider and model else model
    return (("model", name),) if name else ()


def _user(message: _AnyMessage) -> list[Message]:
    return _said("user", content_parts(message.content))


def _assistant(message: _AnyMessage) -> list[Message]:
    messages = _said("assistant", text_parts(message.content))
    content = Content(message.content)
    for number, block in enumerate(content.blocks):
        alone = _ALONE.get(block.type)
        messages += alone(block) if alone else _said("assistant", content.parts(number))
    if message.stopReason == "error":
        messages += _said("system", text_parts(message.errorMessage))
    return messages


def _call(block: _AnyBlock) -> list[Message]:
    name = as_text(block.name) or ""
    return [Message(CALL, call_parts(block.name, copied(block.arguments)), block.id, name)]


def _thinking(block: _AnyBlock) -> list[Message]:
    return _said("thinking", text_parts(block.thinking))


def _nothing(_block: _AnyBlock) -> list[Message]:
    return []


_ALONE: dict[str | None, Callable[[_AnyBlock], list[Message]]] = {
    "toolCall": _call,
    "thinking": _thinking,
    "redactedThinking": _nothing,
}


def _result(message: _AnyMessage) -> list[Message]:
    return [Message(RESULT, content_parts(message.content), message.toolCallId)]


def _bash(message: _AnyMessage) -> list[Message]:
    return _typed("bash", text_parts(message.command), message)


def _python(message: _AnyMessage) -> list[Message]:
    return _typed("python", text_parts(message.code), message)


def _typed(tool: str, shown: list[Part], message: _AnyMessage) -> list[Message]:
    """Return a command that the person typed (`!`, `$`), and what came of it: one record has both."""
    call = Message(CALL, [Part(LITERAL, tool.encode()), *shown], _TYPED, tool)
    return [call, Message(RESULT, content_parts(message.output), _TYPED)]


def _system(message: _AnyMessage) -> list[Message]:
    """Return what a message says that is neither the person's nor the agent's; pi's first has sections."""
    parts = content_parts(message.content) + text_parts(message.summary)
    return _said("system", parts + _sections(message.sections) + _files(message.files))


def _sections(value: Raw) -> list[Part]:
    if first_byte(value) != OBJECT:
        return []
    parts: list[Part] = []
    for section in _fields(value).values():
        if shown := content_parts(section):
            parts += [Part(LITERAL, b"\n"), *shown] if parts else shown
    return parts


def _files(value: Raw) -> list[Part]:
    if first_byte(value) != LIST:
        return []
    files = [_file(each) for each in _elements(value) if first_byte(each) == OBJECT]
    return [part for file in files for part in _mentioned(file)]


def _mentioned(file: _File) -> list[Part]:
    shown = text_parts(file.path) + text_parts(file.content)
    return [*shown, IMAGE] if has(file.image) else shown


_ROLES: dict[str | None, Callable[[_AnyMessage], list[Message]]] = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _result,
    "bashExecution": _bash,
    "pythonExecution": _python,
}
"""Of others (developer, system, custom, fileMention ...) their text is the program's."""


def _said(role: str, parts: list[Part]) -> list[Message]:
    return [Message(role, parts)] if parts else []


read = RecordDecoder(_Entry[str, Decoded], _Entry[Raw, Raw], _say, slot_bytes=slot_bytes)
"""Reads a session's file, or a subagent's."""
