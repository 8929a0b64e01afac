"""Transcripts that the bench makes itself, the same ones each time.

The shapes, and the order of the fields within a line, are those that the harnesses write: a codex item comes
beside an event that repeats it; a claude record says its type late, and among the records stand progress,
snapshots and attachments.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

THREAD = "01a19bb3-9500-7000-8000-00000000be9c"
SESSION = "0d0f6c1e-1111-4222-8333-94444555be9c"
CWD = "/srv/bench"
_SAID = "the file has no test for an empty list so it fails before the first read returns\n"
_WORDS = [*_SAID.split(" ") * 4, 'return "x";\n', "path\\to", "\tif"]
"""Of a hundred bytes of JSON two are backslashes, as in transcripts of work on code."""
_FLAVOURS = ([], [], ["`x`", "\n```\n", "\n## So\n"], ["é", "→"])
"""What is among the words too: of every fourth text Markdown, of every fourth what is not ASCII."""
_LENGTHS = (230, 930, 3500, 11_100)
_TEXTS = 400
_BEGAN = datetime(2026, 11, 2, 10, tzinfo=UTC)


class Size(NamedTuple):
    """How much there is to measure."""

    messages: int
    """Messages of the big rollout."""
    claude_bytes: int
    small_bytes: int
    """Of the transcripts that grow."""
    line_bytes: int
    """Of the one long line."""
    mounted: int
    """Messages of the chat that a kernel mount reads."""
    looks: int
    """Looks, small requests: whatever is done many times to have one figure."""
    seconds: float
    """How long a load runs that runs for a time."""
    processes: int
    """Processes that are no agents."""


FULL = Size(32_000, 200_000_000, 20_000_000, 64 << 20, 4_000, 4_000, 60, 10_000)
QUICK = Size(300, 2_000_000, 500_000, 4 << 20, 40, 100, 3, 100)


class Inputs:
    """The transcripts of one run, each made when it is first asked for."""

    def __init__(self, base: Path, size: Size) -> None:
        self._base = base
        self.size = size

    @cached_property
    def rollout(self) -> Path:
        """The big codex rollout."""
        return self._write("rollout", codex_lines(self.size.messages))

    @cached_property
    def small_rollout(self) -> Path:
        """A codex rollout of 20 MB."""
        return self._write("small-rollout", upto(self.size.small_bytes, codex_lines()))

    @cached_property
    def mounted_rollout(self) -> Path:
        """A rollout of as many messages as a kernel mount reads."""
        return self._write("mounted", codex_lines(self.size.mounted))

    @cached_property
    def transcript(self) -> Path:
        """The big claude transcript."""
        return self._write("transcript", upto(self.size.claude_bytes, claude_lines()))

    @cached_property
    def small_transcript(self) -> Path:
        """A claude transcript of 20 MB."""
        return self._write("small-transcript", upto(self.size.small_bytes, claude_lines()))

    @cached_property
    def long_line(self) -> Path:
        """A rollout in which one line has 64 MB."""
        return self._write("long-line", codex_long_line(self.size.line_bytes))

    @cached_property
    def quarter_line(self) -> Path:
        """The same with a line of a quarter of that."""
        return self._write("quarter-line", codex_long_line(self.size.line_bytes // 4))

    def _write(self, name: str, lines: Iterator[bytes]) -> Path:
        path = self._base / f"{name}.jsonl"
        with path.open("wb") as out:
            out.writelines(lines)
        return path


def upto(size: int, lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines until they have *size* bytes."""
    for line in lines:
        yield line
        size -= len(line)
        if size <= 0:
            return


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _stamp(number: int) -> str:
    moment = _BEGAN + timedelta(milliseconds=number * 713)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _texts(dice: random.Random) -> list[str]:
    return [_text(dice, _LENGTHS[number % 4], _FLAVOURS[number // 4 % 4]) for number in range(_TEXTS)]


def _text(dice: random.Random, length: int, flavour: list[str]) -> str:
    return " ".join(dice.choices([*_WORDS, *flavour], k=length // 5))


# --- codex ---


def codex_lines(messages: int | None = None, seed: int = 9) -> Iterator[bytes]:
    """Yield a rollout of *messages* messages, some 7 kB each with the events that repeat them."""
    dice = random.Random(seed)
    texts = _texts(dice)
    yield _codex(0, "session_meta", {"id": THREAD, "cwd": CWD, "source": "cli"})
    yield _codex(1, "turn_context", {"cwd": CWD, "model": "made-up"})
    number = 0
    while messages is None or number < messages:
        for kind, payload in _codex_message(number, dice.choice(texts)):
            yield _codex(number, kind, payload)
        number += 1


def codex_said(number: int, text: str = "It is done.") -> bytes:
    """Return a line with one message of the assistant."""
    content = [{"type": "output_text", "text": text}]
    return _codex(number, "response_item", {"type": "message", "role": "assistant", "content": content})


def codex_long_line(size: int) -> Iterator[bytes]:
    """Yield a rollout whose third message stands on one line of *size* bytes."""
    text = (_SAID * (size // len(_SAID)))[: size - 4096]
    yield _codex(0, "session_meta", {"id": THREAD, "cwd": CWD, "source": "cli"})
    yield codex_said(1)
    yield codex_said(2)
    output = {"type": "function_call_output", "call_id": "call_0", "output": text}
    yield _codex(3, "response_item", output)


def _codex(number: int, kind: str, payload: dict[str, Any]) -> bytes:
    return _line({"timestamp": _stamp(number), "ordinal": number, "type": kind, "payload": payload})


def _codex_message(number: int, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines of one message: the item, and the event that is its copy."""
    call = f"call_{number // 3}"
    if number % 3 == 0:
        content = [{"type": "output_text", "text": text}]
        yield "event_msg", {"type": "agent_message", "message": text}
        yield "response_item", {"type": "message", "role": "assistant", "content": content}
    elif number % 3 == 1:
        arguments = json.dumps({"cmd": text})
        item = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call}
        yield "response_item", item
        yield "event_msg", {"type": "token_count", "info": {"total": number}}
    else:
        item = {"type": "function_call_output", "call_id": f"call_{(number - 1) // 3}", "output": text}
        yield "response_item", item
        yield "event_msg", {"type": "exec_command_end", "call_id": call, "aggregated_output": text}


# --- claude ---


def claude_lines(seed: int = 9) -> Iterator[bytes]:
    """Yield a transcript without end: turns of a prompt, and calls with what came of them."""
    dice = random.Random(seed)
    _uuids.seed(seed)
    texts = _texts(dice)
    number = 0
    while True:
        yield _snapshot(number)
        yield _claude(number, "user", message={"role": "user", "content": dice.choice(texts)[:300]})
        yield _attachment(number, dice.choice(texts))
        for _ in range(dice.randint(1, 12)):
            number += 1
            yield from _claude_call(number, dice.choice(texts), dice.choice(texts))


def claude_said(number: int, text: str = "It is done.") -> bytes:
    """Return a line with one message of the assistant."""
    return _assistant(number, {"type": "text", "text": text}, f"{number:08x}-7777-4333-8444-555555555555")


def _claude_call(number: int, input_: str, output: str) -> Iterator[bytes]:
    tool = f"toolu_{number:024d}"
    yield _assistant(number, {"type": "thinking", "thinking": input_[:200], "signature": "s" * 300})
    yield _assistant(number, {"type": "text", "text": input_[:150]})
    command = {"command": input_, "description": "Try it"}
    yield _assistant(number, {"type": "tool_use", "id": tool, "name": "Bash", "input": command})
    for _ in range(3):
        progress = {
            "type": "bash_progress",
            "output": output[-400:],
            "elapsedTimeSeconds": 3,
            "totalLines": 9,
        }
        yield _claude(number, "progress", data=progress, toolUseID=tool, parentToolUseID=tool)
    result = {"tool_use_id": tool, "type": "tool_result", "content": output, "is_error": False}
    again = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    yield _claude(number, "user", message={"role": "user", "content": [result]}, toolUseResult=again)


def _claude(number: int, kind: str, **more: object) -> bytes:
    head = {"parentUuid": _uuid(number), "isSidechain": False, "userType": "external", "cwd": CWD,
            "sessionId": SESSION, "version": "2.1.332", "gitBranch": "main"}  # fmt: skip
    return _line({**head, "type": kind, **more, "uuid": _next_uuid(), "timestamp": _stamp(number)})


def _assistant(number: int, block: dict[str, Any], uuid: str | None = None) -> bytes:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 208, "cache_read_input_tokens": 25_798,
             "output_tokens": 27, "service_tier": "standard"}  # fmt: skip
    message = {"model": "made-up", "id": f"msg_{number:024d}", "type": "message", "role": "assistant",
               "content": [block], "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
    head = {"parentUuid": _uuid(number), "isSidechain": False, "userType": "external", "cwd": CWD,
            "sessionId": SESSION, "version": "2.1.332", "gitBranch": "main"}  # fmt: skip
    tail = {"requestId": f"req_{number:024d}", "type": "assistant", "uuid": uuid or _next_uuid()}
    return _line({**head, "message": message, **tail, "timestamp": _stamp(number)})


def _snapshot(number: int) -> bytes:
    files = {
        f"{CWD}/file{n}.py": {"backupFileName": f"{n:016x}@v1", "version": 1} for n in range(number % 40)
    }
    snapshot = {"messageId": _uuid(number), "trackedFileBackups": files, "timestamp": _stamp(number)}
    record = {"type": "file-history-snapshot", "messageId": _uuid(number), "snapshot": snapshot}
    return _line({**record, "isSnapshotUpdate": False})


def _attachment(number: int, text: str) -> bytes:
    return _claude(number, "attachment", attachment={"type": "file", "filename": "a.py", "content": text})


_uuids = random.Random(332)


def _uuid(number: int) -> str:
    return f"{number:08x}-2222-4333-8444-555555555555"


def _next_uuid() -> str:
    return (
        f"{_uuids.getrandbits(32):08x}-{_uuids.getrandbits(16):04x}-4333-8444-{_uuids.getrandbits(48):012x}"
    )
