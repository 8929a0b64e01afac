"""The names that people gave their codex threads: `session_index.jsonl`, a line `{id, thread_name}` a time.

The file only grows, and may be long: it is read on from where it ended the last time.
"""

import os
import threading

from agents9core.errors import TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.files.root import Root
from agents9core.files.statx import FileStat
from agents9core.routes.uuid7 import parse_uuid


class ThreadNames:
    """The names that people gave their threads: the last of each id in `session_index.jsonl`."""

    NAME = ("session_index.jsonl",)
    _LONGEST_LINE = 1 << 16
    _MOST = 1 << 17

    def __init__(self, home: str) -> None:
        self._root = Root(home)
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._stat: FileStat | None = None
        self._read_to = 0

    def get(self, thread: str) -> str | None:
        """Return a thread's name; None where it has none."""
        with self._lock:
            try:
                with self._root.opened(self.NAME) as (fd, stat):
                    self._refresh(fd, stat)
            except (TreeError, OSError):
                self._names, self._stat = {}, None
            return self._names.get(thread) or None

    def _refresh(self, fd: int, stat: FileStat) -> None:
        last = self._stat
        if last == stat:
            return
        grown = last is not None and last.identity == stat.identity and last.size < stat.size
        if not grown:
            self._names, self._read_to = {}, 0
        self._stat = None  # a failure in the middle starts again
        self._read_on(fd)
        self._stat = stat

    def _read_on(self, fd: int) -> None:
        while chunk := os.pread(fd, 1 << 20, self._read_to):
            whole, newline, rest = chunk.rpartition(b"\n")
            if not newline and len(chunk) < 1 << 20:
                return
            self._read_to += len(chunk) - len(rest) if newline else len(chunk)
            for line in whole.split(b"\n"):
                self._add(line)

    def _add(self, line: bytes) -> None:
        record = parse_object(line) if len(line) <= self._LONGEST_LINE else None
        thread = parse_uuid(record.get("id")) if record else None
        if record is None or thread is None:
            return
        self._names.pop(thread, None)
        self._names[thread] = text_of(record, "thread_name") or ""
        if len(self._names) > self._MOST:
            del self._names[next(iter(self._names))]
