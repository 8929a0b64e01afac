"""The sessions that Claude Code's store keeps: `<home>/projects/<any>/<session>.jsonl`.

Where two projects have one of the same id, `claude_places` says which counts.
"""

import re
import threading
from typing import NamedTuple

import msgspec

from agents9core.caches import LRU
from agents9core.chat.decoder import lenient_decoder
from agents9core.chat.timestamps import time_ns
from agents9core.files.jsonrecord import LONGEST_FIELD
from agents9core.files.root import Root, read_at
from agents9core.files.statx import FileStat
from agents9core.session import Source

SESSION_ID = re.compile(r"[0-9A-Za-z_-]{1,128}", re.ASCII)
FILES = (
    "*.jsonl", "*.meta.json", "*/tool-results/*", "*/memory/*.md", "*/session-memory/*.md",
    "*/workflows/*.json", "*/custom-title.json", "*/sessions-index.json", "*/bridge-pointer.json",
    "*/.session-aliases",
)  # fmt: skip
"""What the files below `projects` are called; see docs/FORMATS.md."""
_SUFFIX = ".jsonl"
_SUBAGENT = "agent-"
_HEAD_BYTES = 256 << 10


class ClaudeHead(NamedTuple):
    """What the first records of a transcript hold."""

    cwd: str | None = None
    started_ns: int = 0
    """0: not stated."""


class _ClaudeHeadLine(msgspec.Struct, frozen=True):
    cwd: str | None = None
    timestamp: str | None = None


_line = lenient_decoder(_ClaudeHeadLine)


def is_session(id: str) -> bool:
    """Whether a file of this name can be a session's: it is no subagent's."""
    return SESSION_ID.fullmatch(id) is not None and not id.startswith(_SUBAGENT)


def stored_paths(root: Root) -> dict[str, list[tuple[str, str]]]:
    """Return where the sessions below `projects` lie, by id."""
    found: dict[str, list[tuple[str, str]]] = {}
    for project in root.names():
        for name in root.names((project,)):
            id = name.removesuffix(_SUFFIX)
            if id != name and is_session(id):
                found.setdefault(id, []).append((project, name))
    return found


class ClaudeHeadCache:
    """What transcripts begin with. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRU[tuple[str, tuple[str, ...]], tuple[FileStat, ClaudeHead]] = LRU()

    def read(self, source: Source) -> ClaudeHead:
        """Return what a transcript begins with. Raises as Root.open does."""
        with source.root.opened(source.path) as (fd, stat):
            key = (source.root.path, source.path)
            with self._lock:
                known = self._known.get(key)
            if known and _goes_on(known[0], stat) and all(known[1]):
                return known[1]
            head = parse_head(read_at(fd, source.path, _HEAD_BYTES))
        with self._lock:
            self._known[key] = (stat, head)
        return head


def _goes_on(before: FileStat, now: FileStat) -> bool:
    return before.identity == now.identity and before.size <= now.size


def parse_head(data: bytes) -> ClaudeHead:
    """Return what the first records hold: the first directory, and the first time. Pure."""
    head = ClaudeHead()
    for record in data.split(b"\n"):
        try:
            line = _line(record)
        except (msgspec.DecodeError, RecursionError):
            continue  # cut at the window's end, or damaged
        started_ns = time_ns(line.timestamp) if line.timestamp else None
        cwd = line.cwd[:LONGEST_FIELD] if line.cwd else None
        head = ClaudeHead(head.cwd or cwd, head.started_ns or started_ns or 0)
        if all(head):
            break
    return head
