"""Transcripts that the bench makes itself, the same ones each time."""

import json
import random
import re
from pathlib import Path

THREAD = "01a19bb3-9500-7000-8000-00000000be9c"
MESSAGES = 32_000
_SAID = "the file has no test for an empty list so it fails before the first read returns\n"
_WORDS = re.findall(r"[^ ]+", _SAID)
_STAMP = "2026-11-02T10:00:00.000Z"


def codex_rollout(path: Path, messages: int = MESSAGES, seed: int = 9) -> None:
    """Write a rollout of *messages* messages, some 7 kB each with the events that repeat them."""
    dice = random.Random(seed)
    with path.open("w", encoding="utf-8") as out:
        _write(out, "session_meta", {"id": THREAD, "cwd": "/srv/bench", "source": "cli"})
        _write(out, "turn_context", {"cwd": "/srv/bench", "model": "made-up"})
        for number in range(messages):
            text = _text(dice, dice.choice((200, 800, 3000, 9400)))
            for kind, payload in _message(number, text):
                _write(out, kind, payload)


def _write(out, kind, payload) -> None:
    record = {"timestamp": _STAMP, "type": kind, "payload": payload}
    out.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


def _text(dice: random.Random, length: int) -> str:
    words = dice.choices(_WORDS, k=length // 5)
    words[0] = "é" if dice.random() < 0.1 else words[0]
    return " ".join(words)


def _message(number: int, text: str):
    """Return the lines of one message: the item, and the event that is its copy."""
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
