"""codex's rollouts: where a thread's files lie, what a file's first line holds, what it goes on from.

A thread is `sessions/YYYY/MM/DD/rollout-<when>-<thread>[_<rollout>].jsonl[.zst]`; archived ones lie flat in
`archived_sessions/`. Day and *when* are local time, so a day is only known to within one. The file that a
revert makes has a rollout id of its own and is filed under the day of the revert. See docs/FORMATS.md.
"""

import os
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from agents9core.caches import LRU
from agents9core.chat.timestamps import time_ns
from agents9core.errors import TooLarge, TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.files.root import NOT_THERE, Root, read_at
from agents9core.files.statx import FileStat
from agents9core.files.zstd import inflate_line
from agents9core.routes.uuid7 import UUID, born_ms, parse_uuid
from agents9core.session import Source

STORES = ("sessions", "archived_sessions")
DEEPEST_CHAIN = 64
_WHEN = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}"
_NAME = rf"rollout-({_WHEN})-({UUID})(?:_({UUID}))?\.jsonl(\.zst)?"
_FIRST_LINE_BYTES = 16 << 20
_LARGEST_FILE = (1 << 63) - 1
_CHUNK = 1 << 16
_NOT_OWN = ("subagent", "memory_consolidation", "guardian_review")
_SEARCH_SECONDS = 1.0
_LATER_DAYS = 62
_MOST_HEADERS = 1 << 14
"""A listing of all threads looks at one header of each."""


class Rollout(NamedTuple):
    """One file of a thread, by its name."""

    root: Root
    path: tuple[str, ...]
    thread: str
    id: str
    """Its own rollout id; the first file of a thread has the thread's."""
    when: str
    compressed: bool

    @property
    def age(self) -> tuple[int, str, bool]:
        """Sorts the files of one thread from the oldest; a plain file comes after its compressed twin."""
        return (born_ms(self.id) or 0, self.when, not self.compressed)

    def is_since(self, day: str) -> bool:
        """Whether it is filed under *day* (`YYYY/MM/DD`) or a later one, or under none: archived."""
        return len(self.path) < 2 or "/".join(self.path[:-1]) >= day

    @property
    def plain(self) -> "Rollout":
        """The same before it was compressed, or after it was inflated again."""
        name = self.path[-1].removesuffix(".zst")
        return self._replace(path=(*self.path[:-1], name), compressed=False)


class RolloutHeader(NamedTuple):
    """What the first record of a rollout holds; of a file without one, only what its name does."""

    thread: str
    own: bool = True
    """Whether a person (or a client of theirs) started the thread: it is no subagent's, no helper's."""
    cwd: str | None = None
    originator: str | None = None
    version: str | None = None
    base: tuple[str, int] | None = None
    """The rollout that comes first, and how many of its bytes do."""
    broken_base: str | None = None
    """What stands in the place of a base and is none."""
    parent: str | None = None
    """The thread that started it, where it is a subagent's."""
    nickname: str | None = None
    """What codex calls the subagent."""
    started_ns: int = 0
    """When the thread began; 0: not stated."""


def parse_name(root: Root, path: tuple[str, ...]) -> Rollout | None:
    """Return the rollout that a file is by its name; None for another file."""
    found = re.fullmatch(_NAME, path[-1])
    if found is None:
        return None
    when, thread, own, compressed = found.groups()
    return Rollout(root, path, thread, own or thread, when, compressed is not None)


def parse_header(line: bytes, thread: str) -> RolloutHeader:
    """Read a rollout's first line. *thread* is the id in the file's name.

    Since autumn 2025 it is a `session_meta`; before, the bare payload. A second `session_meta` may follow,
    with the parent's id: it is no evidence about the file.
    """
    record = parse_object(line, first=True) or {}
    meta = record.get("payload") if record.get("type") == "session_meta" else record
    if not isinstance(meta, dict) or ("type" in meta and meta is record):
        return RolloutHeader(thread)
    base, broken = _parse_base(meta.get("history_base"))
    return RolloutHeader(
        thread=parse_uuid(meta.get("id")) or thread,
        own=_is_own(meta),
        cwd=text_of(meta, "cwd"),
        originator=text_of(meta, "originator"),
        version=text_of(meta, "cli_version"),
        base=base,
        broken_base=broken,
        parent=parse_uuid(meta.get("parent_thread_id") or _spawn(meta).get("parent_thread_id")),
        nickname=_nickname(meta) or _nickname(_spawn(meta)),
        started_ns=time_ns(text_of(meta, "timestamp") or "") or 0,
    )


def _spawn(meta: dict[str, object]) -> dict[str, object]:
    """Return what `source` says of a thread that another one started."""
    found: object = meta.get("source")
    for name in ("subagent", "thread_spawn"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _nickname(meta: dict[str, object]) -> str | None:
    path = text_of(meta, "agent_path")
    return text_of(meta, "agent_nickname") or (path.rpartition("/")[2] if path else None)


def _is_own(meta: dict[str, object]) -> bool:
    source = meta.get("source")
    return not (
        (isinstance(source, dict) and ("subagent" in source or "internal" in source))
        or meta.get("parent_thread_id")
        or meta.get("thread_source") in _NOT_OWN
    )


def _parse_base(value: object) -> tuple[tuple[str, int] | None, str | None]:
    if value is None:
        return None, None
    place = value if isinstance(value, dict) else {}
    rollout, end = parse_uuid(place.get("thread_id")), place.get("end_byte_offset")
    if rollout is None or type(end) is not int or not 0 <= end <= _LARGEST_FILE:
        return None, rollout or "unknown"
    return (rollout, end), None


class _KnownRollout(NamedTuple):
    """What a file's first line said when it was read; it is read again when the file has moved."""

    stat: FileStat
    line: int
    header: RolloutHeader | None


class Rollouts:
    """The rollouts of one codex home. May be used from several threads."""

    def __init__(self, home: str) -> None:
        self.sessions, self.archived = (Root(os.path.join(home, store)) for store in STORES)
        self._lock = threading.Lock()
        self._headers: LRU[tuple[str, tuple[str, ...]], _KnownRollout] = LRU(_MOST_HEADERS)
        self._newest: LRU[tuple[str, bool], tuple[Rollout | None, str]] = LRU()
        self._bases: LRU[str, Rollout] = LRU()
        self._searched: LRU[str, float] = LRU()

    def at(self, real_path: str) -> Rollout | None:
        """Return the rollout at an absolute path without symlinks; None where it is none of this home."""
        if not real_path.rpartition("/")[2].startswith("rollout-"):
            return None
        for root in (self.sessions, self.archived):
            store = os.path.realpath(root.path) + "/"
            if real_path.startswith(store):
                return parse_name(root, tuple(real_path.removeprefix(store).split("/")))
        return None

    def header(self, rollout: Rollout) -> tuple[FileStat, RolloutHeader | None]:
        """Look at a rollout. No header: its first line is not written yet. Raises as Root.open does."""
        with rollout.root.opened(rollout.path) as (fd, stat):
            key = (rollout.root.path, rollout.path)
            with self._lock:
                known = self._headers.get(key)
            if known is not None and known.stat == stat:
                return stat, known.header
            line = _first_line(fd, rollout)
            if known is None or known.line != hash(line):
                known = _KnownRollout(stat, hash(line), parse_header(line, rollout.thread) if line else None)
            with self._lock:
                self._headers[key] = known._replace(stat=stat)
        return stat, known.header

    def first_header(self, rollout: Rollout) -> RolloutHeader | None:
        """Return what a rollout's first line says, read once: it never changes. None: it says nothing yet, or
        cannot be read. Raises Unavailable.
        """
        with self._lock:
            known = self._headers.get((rollout.root.path, rollout.path))
        if known is not None and known.header is not None:
            return known.header
        try:
            return self.header(rollout)[1]
        except (*NOT_THERE, TooLarge):
            return None

    def newest(self, thread: str, *, compressed: bool = False) -> Rollout | None:
        """Return the newest plain file of a thread; with *compressed*, of any form.

        Every day is searched once. What is made later is filed under its own day, which is examined again
        each time, as far back as the file that is known and two months at most.
        """
        with self._lock:
            known, since = self._newest.get((thread, compressed), (None, ""))
        if known is not None and not exists(known):
            known, since = None, ""
        elsewhere = [known] if known else self._archived(thread)
        files = [*self._in_days(thread, since), *elsewhere]
        of_thread = [file for file in files if file.thread == thread and (compressed or not file.compressed)]
        found = next(filter(exists, sorted(of_thread, key=lambda file: file.age, reverse=True)), None)
        since = first_day(thread) if found is None else _first_later_day(found)
        with self._lock:
            self._newest[thread, compressed] = (found, since)
        return found

    def base(self, rollout: str) -> Rollout | None:
        """Return the file with this rollout id, plain rather than compressed.

        Where it lies neither near its own day nor in the archive, all days are searched, once a second.
        """
        with self._lock:
            known = self._bases.get(rollout)
        found = next(filter(exists, (known.plain, known)), None) if known else None
        if found is None:
            found = self._base_near_its_day(rollout) or _best(rollout, self._archived(rollout))
            found = found or self._base_of_any_day(rollout)
        if found is not None:
            with self._lock:
                self._bases[rollout] = found
        return found

    def _base_near_its_day(self, rollout: str) -> Rollout | None:
        first = first_day(rollout)
        return _best(rollout, self._in_days(rollout, first, _last_day(rollout))) if first else None

    def _base_of_any_day(self, rollout: str) -> Rollout | None:
        now = time.monotonic()
        with self._lock:
            if now - self._searched.get(rollout, float("-inf")) < _SEARCH_SECONDS:
                return None
            self._searched[rollout] = now
        return _best(rollout, self._in_days(rollout, ""))

    def threads(self) -> dict[str, Rollout]:
        """Return the newest file of each thread that somebody started, of any form, by its name alone."""
        found: dict[str, Rollout] = {}
        for rollout in (*_matching(self.sessions, (), ""), *self.since("")):
            known = found.get(rollout.thread)
            if known is None or known.age < rollout.age:
                found[rollout.thread] = rollout
        return {thread: rollout for thread, rollout in found.items() if self._is_own(rollout)}

    def recent(self) -> tuple[int, ...]:
        """Return what moves when a rollout is made: the times of the directories of these days.

        A day is local time, and known to within one.
        """
        now = datetime.now(UTC)
        days = ((now + timedelta(days=days)).strftime("%Y/%m/%d").split("/") for days in (-1, 0, 1))
        return tuple(self._moved_ns(tuple(day)) for day in days)

    def _moved_ns(self, directory: tuple[str, ...]) -> int:
        try:
            return self.sessions.stat(directory).mtime_ns
        except (TreeError, OSError):
            return 0

    def _is_own(self, rollout: Rollout) -> bool:
        header = self.first_header(rollout)
        return header is not None and header.own

    def since(self, thread: str) -> Iterator[Rollout]:
        """Yield the rollouts that were made since a thread was, of every thread; all with ""."""
        for day in self._days((), first_day(thread) if thread else "", "9999"):
            yield from _matching(self.sessions, day, "")
        yield from self._archived("")

    def chain(self, rollout: Rollout, header: RolloutHeader) -> tuple[tuple[Source, ...], str | None]:
        """Return a transcript's files in order, and the id of the base that is missing before them."""
        sources = [Source(rollout.root, rollout.path)]
        seen = {rollout.id}
        while header.base is not None:
            id, end = header.base
            found = self.base(id) if id not in seen and len(sources) <= DEEPEST_CHAIN else None
            if found is None or (above := self._header_of(found)) is None:
                return tuple(reversed(sources)), id
            sources.append(Source(found.root, found.path, end))
            seen.add(id)
            header = above
        return tuple(reversed(sources)), header.broken_base

    def _header_of(self, rollout: Rollout) -> RolloutHeader | None:
        try:
            return self.header(rollout)[1]
        except (TreeError, OSError):
            return None

    def _in_days(self, id: str, first: str, last: str = "9999") -> Iterator[Rollout]:
        """Yield the files with a thread or rollout id in the days from *first* to *last*, `YYYY/MM/DD`."""
        if not first:
            yield from _matching(self.sessions, (), id)  # spring 2025 had no days
        for day in self._days((), first, last):
            yield from _matching(self.sessions, day, id)

    def _days(self, above: tuple[str, ...], first: str, last: str) -> Iterator[tuple[str, ...]]:
        for name in self.sessions.names(above):
            path = (*above, name)
            text = "/".join(path)
            if name.isdecimal() and first[: len(text)] <= text <= last:
                if len(path) == 3:
                    yield path
                else:
                    yield from self._days(path, first, last)

    def _archived(self, id: str) -> Iterator[Rollout]:
        return _matching(self.archived, (), id)


def _matching(root: Root, directory: tuple[str, ...], id: str) -> Iterator[Rollout]:
    """Yield the rollouts in a directory that have *id*; with no id, all."""
    for name in root.names(directory):
        found = parse_name(root, (*directory, name)) if id in name else None
        if found and id in ("", found.thread, found.id):
            yield found


def _best(id: str, files: Iterator[Rollout]) -> Rollout | None:
    return max((file for file in files if file.id == id), key=lambda file: file.age, default=None)


def exists(rollout: Rollout) -> bool:
    """Whether a rollout's file is there, and a plain one."""
    try:
        return rollout.root.stat(rollout.path).is_regular
    except (TreeError, OSError):
        return False


def first_day(id: str) -> str:
    """Return the first day that a file of this id can be filed under; "" (any) where the id has no time."""
    return _born_day(id, -1)


def _last_day(id: str) -> str:
    return _born_day(id, 1) or "9999"


def _born_day(id: str, days: int) -> str:
    born = born_ms(id)
    if born is None:
        return ""
    try:
        return _day(datetime.fromtimestamp(born / 1000, UTC) + timedelta(days=days))
    except (ValueError, OverflowError):
        return ""


def _first_later_day(found: Rollout) -> str:
    """Return the first day that is examined again for a newer file than *found*."""
    return max(found.when[:10].replace("-", "/"), _day(datetime.now(UTC) - timedelta(days=_LATER_DAYS)))


def _day(when: datetime) -> str:
    return when.strftime("%Y/%m/%d")


def _first_line(fd: int, rollout: Rollout) -> bytes:
    """Return a file's first line; b"" while it has no newline, or beyond 16 MiB."""
    if rollout.compressed:
        return inflate_line(fd, _FIRST_LINE_BYTES)
    data = bytearray()
    while len(data) < _FIRST_LINE_BYTES and (chunk := read_at(fd, rollout.path, _CHUNK, len(data))):
        data += chunk
        if (end := data.find(b"\n", len(data) - len(chunk))) >= 0:
            return bytes(data[:end])
    return b""
