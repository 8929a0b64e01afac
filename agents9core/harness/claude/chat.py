"""How a line of a Claude Code transcript is decoded (versions 1.0 to 2.1.332; see docs/FORMATS.md).

One record a line. Who spoke is decided by the record's flags first and by the text last, since most of
the text that stands in `user` records was written by the program. Pure.
"""

import re
from collections.abc import Callable
from typing import Any, Generic, TypeAlias

import msgspec
from msgspec import Raw

from agents9core.chat.content import (
    ABSENT,
    Block,
    Body,
    Content,
    Decoded,
    as_text,
    call_parts,
    content_parts,
    copied,
    text_parts,
)
from agents9core.chat.decoder import RecordDecoder
from agents9core.chat.jsonstring import safe_cut, unescape
from agents9core.chat.records import CALL, NOTHING, RESULT, TEXT, Message, Part, Record

TITLES = ("custom-title", "ai-title", "summary")
"""The facts that may be the title, the best first."""

_PROGRAM_WRITTEN = (
    "<task-notification>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<teammate-message",
    "<agent-message",
    "[Request interrupted by user",
)
_UUID = re.compile("[0-9A-Za-z-]{1,64}")
_LONGEST_MARK = 256
"""Bytes of a JSON string that certainly hold the identifying beginning, also where it is escaped."""


class _ClaudeMessage(msgspec.Struct, Generic[Body], frozen=True, gc=False):
    content: Body = ABSENT
    model: str | None = None


class _Origin(msgspec.Struct, frozen=True):
    kind: str | None = None


class _Attachment(msgspec.Struct, frozen=True):
    type: str | None = None
    prompt: Raw = ABSENT
    commandMode: str | None = None
    origin: _Origin | None = None


class _ClaudeLine(msgspec.Struct, Generic[Body], frozen=True, gc=False):
    type: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    timestamp: str | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    origin: _Origin | None = None
    promptSource: str | None = None
    message: _ClaudeMessage[Body] | None = None
    attachment: _Attachment | None = None
    content: Raw = ABSENT
    summary: str | None = None
    aiTitle: str | None = None
    customTitle: str | None = None


_AnyLine: TypeAlias = _ClaudeLine[Any]
_AnyBlock: TypeAlias = Block[Any, Any]
_DECODED = _ClaudeLine[str | list[Block[str, Decoded]] | None]
_RAW = _ClaudeLine[Raw]


def _own(line: _AnyLine) -> Record:
    return _aside(line) if line.isSidechain else _record(line)


class SideChain(RecordDecoder[Record]):
    """Reads one side chain of a session's own file: its first record, and those that follow from it."""

    def __init__(self, begins: str) -> None:
        super().__init__(_DECODED, _RAW, self._extract_if_member)
        self._chain = {begins}

    def _extract_if_member(self, line: _AnyLine) -> Record:
        if not line.isSidechain or not line.uuid or self._chain.isdisjoint((line.uuid, line.parentUuid)):
            return NOTHING
        self._chain.add(line.uuid)
        return _record(line)


def _aside(line: _AnyLine) -> Record:
    begins = line.parentUuid is None and line.uuid is not None and _UUID.fullmatch(line.uuid)
    return Record(begins=line.uuid) if begins else NOTHING


def _record(line: _AnyLine) -> Record:
    kind = line.type or ""
    speak = _SPEAKERS.get(kind)
    if speak is not None:
        return Record(speak(line), line.timestamp, line.uuid, _model(line) if speak is _assistant else ())
    return Record(facts=_title(kind, line)) if kind in TITLES else NOTHING


def _user(line: _AnyLine) -> list[Message]:
    if line.message is None:
        return []
    whole = text_parts(line.message.content)
    if whole:
        return [Message(_user_role(line, whole), whole)]
    content = Content(line.message.content)
    messages: list[Message] = []
    group: list[Part] = []
    for number, block in enumerate(content.blocks):
        alone = _alone(block)
        if alone is None:
            group += content.parts(number)
            continue
        if group:
            messages.append(Message(_user_role(line, group), group))
            group = []
        messages += alone
    return [*messages, Message(_user_role(line, group), group)] if group else messages


def _assistant(line: _AnyLine) -> list[Message]:
    if line.message is None:
        return []
    speaker = "system" if line.isApiErrorMessage else "assistant"
    whole = text_parts(line.message.content)
    if whole:
        return [Message(speaker, whole)]
    content = Content(line.message.content)
    messages: list[Message] = []
    for number, block in enumerate(content.blocks):
        alone = _alone(block)
        messages += _extracted(speaker, content.parts(number)) if alone is None else alone
    return messages


def _alone(block: _AnyBlock) -> list[Message] | None:
    """Return what a block says that is a message of its own whatever record it is in; None: it is not."""
    kind = block.type or ""
    extract = _ALONE.get(kind)
    if extract is not None:
        return extract(block)
    if kind.endswith("tool_use"):
        return _call(block)
    return _result(block) if kind.endswith("tool_result") else None


def _call(block: _AnyBlock) -> list[Message]:
    name = as_text(block.name) or ""
    return [Message(CALL, call_parts(block.name, copied(block.input)), block.id, name)]


def _result(block: _AnyBlock) -> list[Message]:
    return [Message(RESULT, content_parts(block.content), block.tool_use_id)]


def _thinking(block: _AnyBlock) -> list[Message]:
    return _extracted("thinking", text_parts(block.thinking))


def _nothing(_block: _AnyBlock) -> list[Message]:
    return []


_ALONE: dict[str, Callable[[_AnyBlock], list[Message]]] = {
    "tool_use": _call,
    "tool_result": _result,
    "thinking": _thinking,
    "redacted_thinking": _nothing,
}
"""The usual kinds; of others those whose names end as the first two."""


def _system(line: _AnyLine) -> list[Message]:
    return _extracted("system", text_parts(line.content))


def _queued(line: _AnyLine) -> list[Message]:
    """Read a prompt that was typed while the agent worked; every other attachment is bookkeeping."""
    attachment = line.attachment
    if attachment is None or attachment.type != "queued_command":
        return []
    parts = content_parts(attachment.prompt)
    origin = attachment.origin.kind if attachment.origin else None
    typed = origin is None and attachment.commandMode == "prompt" and not _program_wrote(parts)
    return _extracted("user" if origin == "human" or typed else "system", parts)


_SPEAKERS: dict[str, Callable[[_AnyLine], list[Message]]] = {
    "user": _user,
    "assistant": _assistant,
    "system": _system,
    "attachment": _queued,
}


def _user_role(line: _AnyLine, parts: list[Part]) -> str:
    if line.isMeta or line.isCompactSummary:
        return "system"
    origin = line.origin.kind if line.origin else None
    if origin not in (None, "human") or line.promptSource == "system":
        return "system"
    return "system" if origin is None and _program_wrote(parts) else "user"


def _program_wrote(parts: list[Part]) -> bool:
    """Whether the first text begins as only the program's own does."""
    if not parts or parts[0].how != TEXT:
        return False
    data = parts[0].data
    if isinstance(data, str):
        return data.startswith(_PROGRAM_WRITTEN)
    inner = bytes(memoryview(data)[1 : min(_LONGEST_MARK, len(memoryview(data)) - 1)])
    return unescape(inner[: safe_cut(inner, len(inner))]).decode().startswith(_PROGRAM_WRITTEN)


def _extracted(role: str, parts: list[Part]) -> list[Message]:
    return [Message(role, parts)] if parts else []


def _title(kind: str, line: _AnyLine) -> tuple[tuple[str, str], ...]:
    title = {"custom-title": line.customTitle, "ai-title": line.aiTitle, "summary": line.summary}[kind]
    return ((kind, title),) if title is not None else ()


def _model(line: _AnyLine) -> tuple[tuple[str, str], ...]:
    model = line.message.model if line.message else None
    return (("model", model),) if model and model != "<synthetic>" else ()


read = RecordDecoder(_DECODED, _RAW, _own)
"""Reads a session's own file."""
read_subagent = RecordDecoder(_DECODED, _RAW, _record)
"""Reads a subagent's file; there every record is a side chain."""
