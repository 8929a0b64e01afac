"""How a line of a Codex rollout is decoded (versions 0.2x to 0.171; see docs/FORMATS.md).

Every message is there two or three times. The `response_item` is the message; events repeat it and are
read for one thing only, whether a turn is running. Text in the user's role is sorted item by item, by
its kind where codex wrote one, else by the markers that codex itself tests for. Pure.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from typing import Any, Generic, TypeAlias

import msgspec
from msgspec import Raw

from agents9core.chat.content import (
    ABSENT,
    IMAGE,
    LIST,
    OBJECT,
    STRING,
    Body,
    Content,
    Decoded,
    Text,
    as_text,
    content_parts,
    copied,
    first_byte,
    has,
    text_parts,
)
from agents9core.chat.decoder import RecordDecoder, lenient_decoder
from agents9core.chat.records import CALL, LITERAL, NOTHING, RESULT, Message, Part, Record

TITLES = ("thread_name",)
"""The facts that may be the title, where the index of names has none."""

_TURNS: dict[str | None, str] = {
    "task_started": "busy",
    "turn_started": "busy",
    "task_complete": "idle",
    "turn_complete": "idle",
    "turn_aborted": "idle",
}

_PAIRS = [
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("Warning: apply_patch was requested via ", "Use the apply_patch tool instead of exec_command."),
    *(
        (f"<{tag}>", f"</{tag}>")
        for tag in (
            "environment_context",
            "skill",
            "user_shell_command",
            "user_shell_cmd",
            "turn_aborted",
            "subagent_notification",
            "goal_context",
            "recommended_plugins",
            "agent_message_board_notification",
            "user_action",
            "user_instructions",
            "warning",
        )
    ),
]
_PREFIXES = (
    "Warning: The maximum number of unified exec processes you can keep open is",
    "Warning: Your account was flagged for potentially high-risk cyber activity",
    "Another language model started to solve this problem and produced a summary of its thinking process.",
)
_FORMS = (
    r'(?:<codex_internal_context source="[a-z][a-z0-9_]*">.*</codex_internal_context>)',
    r'(?:<hook_prompt hook_run_id="[^"]+">.*</hook_prompt>)',
    r"(?:<external_(?P<key>[^>]*)>.*</external_(?P=key)>)",
)
_MEDIA = ("input_image", "input_audio")
_WRAPPER = r"\s*<(?:image|audio)\b[^>]*>\s*"
_WRAPPER_END = r"\s*</(?:image|audio)>\s*"


class _Passthrough(msgspec.Struct, frozen=True):
    content_item_kinds: list[str | None] = []


class _Item(msgspec.Struct, Generic[Text, Body], frozen=True, gc=False):
    """A response item, or another payload: the fields that are ever looked at."""

    type: str | None = None
    timestamp: str | None = None
    id: str | None = None
    role: str | None = None
    content: Body = ABSENT
    summary: Body = ABSENT
    message: Raw = ABSENT
    author: Text = ABSENT
    name: Text = ABSENT
    call_id: str | None = None
    arguments: Text = ABSENT
    input: Text = ABSENT
    action: Raw = ABSENT
    output: Body = ABSENT
    tools: Raw = ABSENT
    revised_prompt: Raw = ABSENT
    encrypted_content: Raw = ABSENT
    model: str | None = None
    text: Text = ABSENT
    thread_name: str | None = None
    item: Raw = ABSENT
    subagent_history_start_ordinal: int | None = None
    internal_chat_message_metadata_passthrough: _Passthrough | None = None


class _Metadata(msgspec.Struct, frozen=True):
    inherited_user_message: bool | None = None


class _CodexLine(msgspec.Struct, Generic[Text, Body], frozen=True, gc=False):
    type: str | None = None
    timestamp: str | None = None
    ordinal: int | None = None
    payload: _Item[Text, Body] | None = None
    metadata: _Metadata | None = None


_AnyItem: TypeAlias = _Item[Any, Any]
_AnyLine: TypeAlias = _CodexLine[Any, Any]

_ENCRYPTED = Part(LITERAL, b"[encrypted]")


def _extract(line: _AnyLine) -> Record | None:
    """Return the record of a line; None where it is no wrapper around an item."""
    item = line.payload
    if item is None:
        return None
    take = _LINES.get(line.type)
    return take(line, item) if take else NOTHING


def _extract_bare(item: _AnyItem) -> Record:
    return Record(_extracted_from_item(item), item.timestamp)


def _response_item(line: _AnyLine, item: _AnyItem) -> Record:
    if line.metadata and line.metadata.inherited_user_message:
        return NOTHING
    if item.type != "agent_message":
        plan = _plan_in(item)
        uid = None if plan is None else _plan_uid(plan)
        messages = _extracted_from_item(item)
        return Record(messages, line.timestamp, uid, (), line.ordinal, repeats=plan is not None)
    return Record(_agent(item), line.timestamp, item.id, (), line.ordinal, repeats=True)


def _event(line: _AnyLine, event: _AnyItem) -> Record:
    if event.type == "item_completed":
        return _completed(line, event)
    if event.type == "thread_name_updated" and event.thread_name:
        return Record([], line.timestamp, None, (("thread_name", event.thread_name),), line.ordinal)
    turn = _TURNS.get(event.type)
    return Record([], line.timestamp, None, (("turn", turn),), line.ordinal) if turn else NOTHING


class _Completed(msgspec.Struct, frozen=True):
    type: str | None = None
    text: Raw = ABSENT


_completed_item = lenient_decoder(_Completed)


def _completed(line: _AnyLine, event: _AnyItem) -> Record:
    """Read a plan, which stands nowhere else where no message holds it; of other items there is a message."""
    item = _completed_item(event.item) if first_byte(event.item) == OBJECT else _Completed()
    if item.type != "Plan":
        return NOTHING
    uid = _plan_uid(as_text(item.text) or "")
    return Record(_extracted("assistant", text_parts(item.text)), line.timestamp, uid, (), line.ordinal)


def _plan_uid(text: str) -> str:
    """Return what a plan's event has in common with the message that holds it."""
    return f"plan {text.strip()}"


def _plan_in(item: _AnyItem) -> str | None:
    """Return the plan that a message of the assistant holds, None where it holds none."""
    if item.type != "message" or item.role != "assistant":
        return None
    for block in Content(item.content).blocks:
        _, begins, rest = (as_text(block.text) or "").partition("<proposed_plan>")
        plan, ends, _ = rest.partition("</proposed_plan>")
        if begins and ends:
            return plan
    return None


def _realtime(line: _AnyLine, item: _AnyItem) -> Record:
    """Read what was spoken: such words stand in no response item."""
    if item.type != "transcript_segment":
        return NOTHING
    speaker = item.role if item.role in ("user", "assistant") else "system"
    return Record(_extracted(speaker, text_parts(item.text)), line.timestamp, None, (), line.ordinal)


def _turn_context(line: _AnyLine, context: _AnyItem) -> Record:
    facts = (("model", context.model),) if context.model else ()
    return Record([], line.timestamp, None, facts, line.ordinal)


def _compacted(line: _AnyLine, item: _AnyItem) -> Record:
    return Record(_extracted("system", text_parts(item.message)), line.timestamp, None, (), line.ordinal)


def _inter_agent(line: _AnyLine, item: _AnyItem) -> Record:
    return Record(_agent(item), line.timestamp, item.id, (), line.ordinal)


def _session_meta(line: _AnyLine, meta: _AnyItem) -> Record:
    return Record(ordinal=line.ordinal, starts_at=meta.subagent_history_start_ordinal or 0)


_LINES: dict[str | None, Callable[[_AnyLine, _AnyItem], Record]] = {
    "response_item": _response_item,
    "event_msg": _event,
    "turn_context": _turn_context,
    "compacted": _compacted,
    "inter_agent_communication": _inter_agent,
    "realtime_item": _realtime,
    "session_meta": _session_meta,
}


def _extracted_from_item(item: _AnyItem) -> list[Message]:
    kind = item.type or ""
    extract = _ITEMS.get(kind)
    if extract is not None:
        return extract(item)
    if kind.endswith("_call"):
        return _call(item)
    return _output(item) if kind.endswith("_output") else []


def _message(item: _AnyItem) -> list[Message]:
    if item.role == "user":
        return _from_user(item)
    speaker = "assistant" if item.role == "assistant" else "system"
    return _extracted(speaker, content_parts(item.content))


def _agent(item: _AnyItem) -> list[Message]:
    parts = content_parts(item.content)
    if first_byte(item.encrypted_content) == STRING and not parts:
        parts = [_ENCRYPTED]
    return _extracted("agent", text_parts(item.author) + parts)


def _reasoning(item: _AnyItem) -> list[Message]:
    return _extracted("thinking", content_parts(item.summary) or content_parts(item.content))


def _image_generation(item: _AnyItem) -> list[Message]:
    name = "image_generation"
    parts = [Part(LITERAL, name.encode()), *text_parts(item.revised_prompt), IMAGE]
    return [Message(CALL, parts, item.call_id, name)]


def _call(item: _AnyItem) -> list[Message]:
    """Read a call: its input is the first of arguments, input and action; a string is unescaped once."""
    name = as_text(item.name)
    if name:
        named = text_parts(item.name)
    else:
        name = (item.type or "").removesuffix("_call")
        named = [Part(LITERAL, name.encode())]
    given = item.arguments if has(item.arguments) else item.input if has(item.input) else item.action
    shown = text_parts(given) if first_byte(given) == STRING else copied(given)
    return [Message(CALL, named + shown, item.call_id, name)]


def _output(item: _AnyItem) -> list[Message]:
    shown = content_parts(item.output) if has(item.output) else copied(item.tools)
    return [Message(RESULT, shown, item.call_id)]


_ITEMS: dict[str, Callable[[_AnyItem], list[Message]]] = {
    "message": _message,
    "agent_message": _agent,
    "reasoning": _reasoning,
    "image_generation_call": _image_generation,
    "function_call": _call,
    "function_call_output": _output,
}
"""The usual kinds; others are told by how their names end."""


def _from_user(item: _AnyItem) -> list[Message]:
    """Sort the items of a user-role message one by one; neighbours of one class are one message."""
    if first_byte(item.content) != LIST:
        parts = content_parts(item.content)
        return _extracted(_role_by_marks(as_text(item.content) or ""), parts)
    return [
        Message(role, [part for _, parts in group for part in parts])
        for role, group in groupby(_sorted_items(item), key=lambda pair: pair[0])
    ]


def _sorted_items(item: _AnyItem) -> Iterator[tuple[str, list[Part]]]:
    content = Content(item.content)
    passthrough = item.internal_chat_message_metadata_passthrough
    labels = passthrough.content_item_kinds if passthrough else []
    if len(labels) != len(content.blocks):
        labels = [None] * len(content.blocks)
    types = [*(block.type for block in content.blocks), None]
    for number, (block, label) in enumerate(zip(content.blocks, labels, strict=True)):
        text = as_text(block.text) or ""
        if types[number + 1] in _MEDIA and re.fullmatch(_WRAPPER, text):
            continue
        if types[number - 1] in _MEDIA and re.fullmatch(_WRAPPER_END, text):
            continue
        if parts := content.parts(number):
            yield _role(label, text), parts


def _role(label: str | None, text: str) -> str:
    if label is None or label == "unknown":
        return _role_by_marks(text)
    return "user" if label.startswith("user.") else "system"


def _role_by_marks(text: str) -> str:
    return "system" if _marked().fullmatch(text.strip()) else "user"


@cache
def _marked() -> re.Pattern[str]:
    pairs = [f"(?:{re.escape(start)}.*{re.escape(end)})" for start, end in _PAIRS]
    prefixes = [f"(?:{re.escape(start)}.*)" for start in _PREFIXES]
    return re.compile("|".join([*pairs, *prefixes, *_FORMS]), re.DOTALL | re.IGNORECASE | re.ASCII)


def _extracted(role: str, parts: list[Part]) -> list[Message]:
    return [Message(role, parts)] if parts else []


_bare = RecordDecoder(_Item[str, Decoded], _Item[Raw, Raw], _extract_bare)
read = RecordDecoder(_CodexLine[str, Decoded], _CodexLine[Raw, Raw], _extract, _bare)
"""Reads a rollout."""
