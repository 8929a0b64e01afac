"""What a line of a Claude Code transcript says (versions 1.0 to 2.1.332; see docs/FORMATS.md).

One record a line. Who spoke is decided by the record's flags first and by the text last, since most of
the text that stands in `user` records was written by the program. Pure.
"""

import msgspec
from msgspec import Raw

from agents9core.blocks import (
    ABSENT,
    Block,
    block,
    block_parts,
    call_parts,
    content_parts,
    copied,
    elements,
    first_byte,
    text_parts,
)
from agents9core.jsontext import as_text, safe_cut, unescape
from agents9core.record import CALL, RESULT, TEXT, Message, Part, Record

TITLES = ("custom-title", "ai-title", "summary")
"""The facts that may be the title, the best first."""

_PROGRAM_WRITTEN = (
    b"<task-notification>",
    b"<local-command-stdout>",
    b"<local-command-stderr>",
    b"<local-command-caveat>",
    b"<bash-stdout>",
    b"<bash-stderr>",
    b"<teammate-message",
    b"<agent-message",
    b"[Request interrupted by user",
)
_LONGEST_MARK = 256
"""Bytes of a JSON string that are sure to hold the beginning that tells, also where it is escaped."""


class _Line(msgspec.Struct, frozen=True):
    type: Raw = ABSENT
    uuid: Raw = ABSENT
    timestamp: Raw = ABSENT
    isSidechain: Raw = ABSENT
    isMeta: Raw = ABSENT
    isCompactSummary: Raw = ABSENT
    isApiErrorMessage: Raw = ABSENT
    origin: Raw = ABSENT
    promptSource: Raw = ABSENT
    message: Raw = ABSENT
    attachment: Raw = ABSENT
    content: Raw = ABSENT
    summary: Raw = ABSENT
    aiTitle: Raw = ABSENT
    customTitle: Raw = ABSENT


class _Message(msgspec.Struct, frozen=True):
    content: Raw = ABSENT
    model: Raw = ABSENT


class _Attachment(msgspec.Struct, frozen=True):
    type: Raw = ABSENT
    prompt: Raw = ABSENT
    commandMode: Raw = ABSENT
    origin: Raw = ABSENT


class _Origin(msgspec.Struct, frozen=True):
    kind: Raw = ABSENT


_line = msgspec.json.Decoder(_Line).decode
_message = msgspec.json.Decoder(_Message).decode
_attachment = msgspec.json.Decoder(_Attachment).decode
_origin = msgspec.json.Decoder(_Origin).decode


def read(data: bytes) -> Record:
    """Return what one record of a session's own file says. Raises DecodeError or RecursionError."""
    line = _line(data)
    return _NOTHING if _true(line.isSidechain) else _record(line)


def read_subagent(data: bytes) -> Record:
    """Return what one record of a subagent's file says; there every record is a side chain."""
    return _record(_line(data))


_NOTHING = Record()


def _record(line: _Line) -> Record:
    kind = as_text(line.type) or ""
    if kind in TITLES:
        return Record(facts=_title(kind, line))
    speak = _SPEAKERS.get(kind)
    if speak is None:
        return _NOTHING
    return Record(
        messages=speak(line),
        time=as_text(line.timestamp),
        uid=as_text(line.uuid),
        facts=_model(line) if kind == "assistant" else (),
    )


def _user(line: _Line) -> list[Message]:
    if first_byte(line.message) != b"{":
        return []
    content = _message(line.message).content
    if first_byte(content) == b'"':
        return _said(_user_role(line, text_parts(content)), text_parts(content))
    messages: list[Message] = []
    group: list[Part] = []
    for element in elements(content):
        kind, fields = block(element)
        if _stands_alone(kind):
            messages += _said(_user_role(line, group), group)
            messages += _block_said("user", kind, fields, element)
            group = []
        else:
            group += block_parts(kind, fields, element)
    return messages + _said(_user_role(line, group), group)


def _assistant(line: _Line) -> list[Message]:
    if first_byte(line.message) != b"{":
        return []
    content = _message(line.message).content
    speaker = "system" if _true(line.isApiErrorMessage) else "assistant"
    if first_byte(content) == b'"':
        return _said(speaker, text_parts(content))
    messages: list[Message] = []
    for element in elements(content):
        messages += _block_said(speaker, *block(element), element)
    return messages


def _stands_alone(kind: str) -> bool:
    """Whether a block is a message of its own whoever's record it is in."""
    return kind.endswith(("tool_use", "tool_result")) or kind in ("thinking", "redacted_thinking")


def _block_said(speaker: str, kind: str, fields: Block, element: Raw) -> list[Message]:
    if kind == "thinking":
        return _said("thinking", text_parts(fields.thinking))
    if kind == "redacted_thinking":
        return []
    if kind.endswith("tool_use"):
        name = as_text(fields.name) or ""
        return [Message(CALL, call_parts(fields.name, copied(fields.input)), as_text(fields.id), name)]
    if kind.endswith("tool_result"):
        return [_result(fields)]
    return _said(speaker, block_parts(kind, fields, element))


def _result(fields: Block) -> Message:
    return Message(RESULT, content_parts(fields.content), as_text(fields.tool_use_id))


def _system(line: _Line) -> list[Message]:
    return _said("system", text_parts(line.content))


def _queued(line: _Line) -> list[Message]:
    """Read a prompt that was typed while the agent worked; every other attachment is bookkeeping."""
    if first_byte(line.attachment) != b"{":
        return []
    attachment = _attachment(line.attachment)
    if as_text(attachment.type) != "queued_command":
        return []
    parts = content_parts(attachment.prompt)
    origin = _origin_kind(attachment.origin)
    typed = origin is None and as_text(attachment.commandMode) == "prompt" and not _program_wrote(parts)
    return _said("user" if origin == "human" or typed else "system", parts)


_SPEAKERS = {"user": _user, "assistant": _assistant, "system": _system, "attachment": _queued}


def _user_role(line: _Line, parts: list[Part]) -> str:
    if _true(line.isMeta) or _true(line.isCompactSummary):
        return "system"
    origin = _origin_kind(line.origin)
    if origin not in (None, "human") or as_text(line.promptSource) == "system":
        return "system"
    return "system" if origin is None and _program_wrote(parts) else "user"


def _program_wrote(parts: list[Part]) -> bool:
    """Whether the first text begins as only the program's own does."""
    if not parts or parts[0].how != TEXT:
        return False
    data = parts[0].data
    inner = bytes(memoryview(data)[1 : min(_LONGEST_MARK, len(memoryview(data)) - 1)])
    return unescape(inner[: safe_cut(inner, len(inner))]).startswith(_PROGRAM_WRITTEN)


def _origin_kind(origin: Raw) -> str | None:
    return as_text(_origin(origin).kind) if first_byte(origin) == b"{" else None


def _said(role: str, parts: list[Part]) -> list[Message]:
    return [Message(role, parts)] if parts else []


def _true(value: Raw) -> bool:
    return bytes(memoryview(value)[:4]) == b"true"


def _title(kind: str, line: _Line) -> tuple[tuple[str, str], ...]:
    field = {"custom-title": line.customTitle, "ai-title": line.aiTitle, "summary": line.summary}[kind]
    title = as_text(field)
    return ((kind, title),) if title is not None else ()


def _model(line: _Line) -> tuple[tuple[str, str], ...]:
    if first_byte(line.message) != b"{":
        return ()
    model = as_text(_message(line.message).model)
    return (("model", model),) if model and model != "<synthetic>" else ()
