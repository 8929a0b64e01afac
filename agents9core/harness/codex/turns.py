"""When the last turn began in a rollout: which of several threads a person talks to.

A record `turn_context`, or an event `task_started`. What was read is not read again.
"""

import os
import re
import threading
from typing import NamedTuple

from agents9core.caches import LRU
from agents9core.chat.timestamps import time_ns
from agents9core.errors import TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.harness.codex.store import Rollout

_TURN = re.compile(rb'"type"\s*:\s*"(?:turn_context|task_started|turn_started)"')
_EVENTS = ("task_started", "turn_started")
_CHUNK = 1 << 18
_LONGEST_LINE = 1 << 20
"""No record that begins a turn is as long."""


class _KnownTurn(NamedTuple):
    identity: object
    size: int
    turn_ns: int


class Turns:
    """When turns began. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRU[tuple[str, tuple[str, ...]], _KnownTurn] = LRU()

    def last_ns(self, rollout: Rollout) -> int:
        """Return when the last turn of a file began, in nanoseconds since 1970; 0: none did, or it cannot be
        read.
        """
        key = (rollout.root.path, rollout.path)
        with self._lock:
            known = self._known.get(key)
        try:
            with rollout.root.opened(rollout.path) as (fd, stat):
                if known is None or known.identity != stat.identity or known.size > stat.size:
                    known = _KnownTurn(stat.identity, 0, 0)
                if known.size == stat.size:
                    return known.turn_ns
                # A line may have been unfinished at the last scan.
                start = max(0, known.size - _LONGEST_LINE)
                turn_ns = last_turn_ns(fd, start, stat.size) or known.turn_ns
        except (TreeError, OSError):
            return 0
        with self._lock:
            self._known[key] = _KnownTurn(stat.identity, stat.size, turn_ns)
        return turn_ns


def last_turn_ns(fd: int, start: int, end: int) -> int:
    """Return when the last turn that is noted between two offsets began; 0: there is none."""
    rest = b""
    while end > start:
        at = max(start, end - _CHUNK)
        first, newline, lines = (os.pread(fd, end - at, at) + rest).partition(b"\n")
        for line in reversed(lines.split(b"\n")):
            if turn_ns := _began_ns(line):
                return turn_ns
        rest = first + newline if len(first) <= _LONGEST_LINE else newline
        end = at
    return _began_ns(rest.rstrip(b"\n"))


def _began_ns(line: bytes) -> int:
    """Return when the turn that a record begins did; 0 where it begins none."""
    record = parse_object(line) if len(line) <= _LONGEST_LINE and _TURN.search(line) else None
    if record is None:
        return 0
    payload = record.get("payload")
    event = payload.get("type") if isinstance(payload, dict) else None
    begins = record.get("type") == "turn_context" or (record.get("type") == "event_msg" and event in _EVENTS)
    return time_ns(text_of(record, "timestamp") or "") or 0 if begins else 0
