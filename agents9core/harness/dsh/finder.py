"""dsh (DeepSeek Harness): which processes are one, and the sessions that each has open.

Since 0.1.5 a process holds `<home>/sessions/<project>/<session>/session.lock` open as long as it may write
there; the transcript lies beside it. One `dsh web` has many. Locks are never deleted: one that nobody holds
says nothing. Before, a transcript was open for the moment of a write only. See docs/FORMATS.md.
"""

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agents9core.caches import LRU
from agents9core.errors import TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.files.root import Root
from agents9core.files.statx import FileStat
from agents9core.files.zstd import inflate_head
from agents9core.harness.dsh.chat import VERSIONS
from agents9core.routes.choice import OpenFileSession, OpenThreads, choose
from agents9core.routes.lock import read_locks
from agents9core.routes.process import OpenDescriptor, Process, ProcessTable
from agents9core.session import Session, Source

LOCK = "session.lock"
_STORE = "sessions"
_TRANSCRIPT = r"session(?:\.v([0-9]{1,6}))?\.jsonl(\.zstd)?"
_ESCAPE = "~([0-9A-F]{4})"
_ID = "[0-9A-Za-z][0-9A-Za-z._~-]{0,254}"
_HEAD_BYTES = 64 << 10
_LATEST_MS = 1 << 42
"""Some time in 2109."""
_SETTLED_NS = 80_000_000
"""A lock younger than this may be a subagent's, whose transcript comes a moment later."""


class DshSessionPath(NamedTuple):
    """The directory of a session."""

    root: Root
    project: str
    name: str

    @property
    def path(self) -> str:
        """From the top."""
        return os.path.join(self.root.path, self.project, self.name)

    def lock(self) -> FileStat:
        """Return the stat of its lock. Raises as Root.stat does."""
        return self.root.stat((self.project, self.name, LOCK))

    def transcript(self) -> tuple[str, ...] | None:
        """Return the file of the highest format, as dsh takes it itself; None while there is none."""
        try:
            entries = self.root.entries((self.project, self.name))
        except (TreeError, OSError):
            return None
        files = [
            (int(found[1] or 0), stat.mtime_ns, name)
            for name, stat in entries
            if stat.is_regular and (found := re.fullmatch(_TRANSCRIPT, name))
        ]
        return (self.project, self.name, max(files)[2]) if files else None


class DshHeader(NamedTuple):
    """What the first record of a transcript holds."""

    id: str | None
    cwd: str | None
    own: bool
    """Whether it is no subagent's."""
    started_ns: int
    """0: not stated."""
    version: int
    """Of the format; 0 where it does not say."""


class Open(NamedTuple):
    """A session that a process has open."""

    via: str
    location: DshSessionPath
    path: tuple[str, ...] | None
    """Its transcript, where there is one yet."""
    written_ns: int
    header: DshHeader | None


def place_at(path: str) -> tuple[DshSessionPath, str] | None:
    """Return the session's directory and the file's name, by an absolute path: `…/sessions/*/*/<file>`."""
    above, _, name = path.rpartition("/")
    store, _, project = os.path.dirname(above).rpartition("/")
    if not store.startswith("/") or os.path.basename(store) != _STORE or not (name == LOCK or _is_own(name)):
        return None
    return DshSessionPath(Root(store), project, os.path.basename(above)), name


def _is_own(name: str) -> bool:
    return re.fullmatch(_TRANSCRIPT, name) is not None


class Dsh:
    """Finds the sessions of dsh processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._headers: LRU[tuple[str, object], DshHeader] = LRU()

    def resolve(self, process: Process, home: str, _siblings: object = None) -> Session:
        """Return the session of a process; of several the one by codex's rule, and all as threads."""
        # Where both are open, what the lock says counts: it comes last.
        files = sorted(process.open_files() or (), key=lambda file: file.target.endswith(LOCK))
        steps: list[str] = []
        found = {one.location.path: one for one in self._by_fd(files, steps)}
        steps = steps or ["fd: no session" if files else "fd: refused"]
        if files:
            steps.append("lock: not asked")
        else:
            found = {one.location.path: one for one in self._by_lock(process, home, steps)}
        chosen = _chosen(found)
        if chosen is None:
            return Session(via="none", steps=tuple(steps))
        steps += _said(chosen)
        threads = tuple(_session(one) for _, one in sorted(found.items())) if len(found) > 1 else ()
        return _session(chosen, threads, tuple(steps))

    def subagents(self, _session: Session) -> Mapping[str, Session]:
        """Return nothing: a subagent's session lies beside, and says in its first record whose it is."""
        return {}

    def stored(self, home: str) -> dict[str, Source]:
        """Return the sessions in a home by the names of their directories, which are their ids escaped.

        Only those with a transcript.
        """
        found: dict[str, Source] = {}
        for id, location in _places(home):
            one = self._stored(location)
            if one and one.path:
                found.setdefault(id, Source(one.location.root, one.path))
        return found

    def stored_session(self, home: str, id: str) -> Session | None:
        """Return a session by its id, whether a process has it open or not."""
        kept = (self._stored(location) for its, location in _places(home) if its == id)
        one = next(filter(None, kept), None)
        if one is None:
            return None
        return _session(one)._replace(id=id, started_ns=one.header.started_ns if one.header else 0)

    def _stored(self, location: DshSessionPath) -> Open | None:
        path = location.transcript()
        one = self._looked("kept", location, path)[0] if path else None
        return one if one and one.path else None

    def _by_fd(self, files: Iterable[OpenDescriptor], steps: list[str]) -> Iterator[Open]:
        for file in files:
            at = place_at(file.target)
            if at is None:
                continue
            one, seen = self._opened(file, *at)
            steps.append(f"fd: {file.target}: {seen}")
            if one is not None:
                yield one

    def _opened(self, file: OpenDescriptor, location: DshSessionPath, name: str) -> tuple[Open | None, str]:
        """Return the session of an open lock or transcript, and what was seen."""
        path = (location.project, location.name, name)
        try:
            stat = location.root.stat(path)
        except (TreeError, OSError) as error:
            return None, type(error).__name__
        if not stat.is_regular or (stat.dev, stat.ino) != file.identity():
            return None, "its path leads to another file"
        if name != LOCK and file.writable() is False:
            return None, "open for reading alone"
        return self._looked("fd", location, location.transcript() if name == LOCK else path)

    def _by_lock(self, process: Process, home: str, steps: list[str]) -> Iterator[Open]:
        """Yield the sessions whose locks the process holds by the kernel's table of locks."""
        inodes = read_locks(self._table.root).get(process.pid, frozenset())
        steps.append(f"lock: holds {len(inodes)}")
        root = Root(os.path.join(home, _STORE))
        for project in root.names() if inodes else ():
            for name in root.names((project,)):
                location = DshSessionPath(root, project, name)
                if not _is_locked(location, inodes):
                    continue
                one, seen = self._looked("lock", location, location.transcript())
                steps.append(f"lock: {location.path}: {seen}")
                if one is not None:
                    yield one

    def _looked(
        self, via: str, location: DshSessionPath, path: tuple[str, ...] | None
    ) -> tuple[Open | None, str]:
        try:
            if path is None:
                made_ns = location.lock().mtime_ns
                settled = time.time_ns() - made_ns >= _SETTLED_NS
                one = Open(via, location, None, made_ns, None) if settled else None
                return one, "no transcript yet"
            stat = location.root.stat(path)
            header = self._header(location.root, path)
        except (TreeError, OSError) as error:
            return None, type(error).__name__
        if header is not None and not header.own:
            return None, "a subagent's"
        return Open(via, location, path, stat.mtime_ns, header), f"session {_id(location, header)}"

    def _header(self, root: Root, path: tuple[str, ...]) -> DshHeader | None:
        """Return what a transcript's first record holds; None where it is not written yet, or damaged."""
        with root.opened(path) as (fd, stat):
            key = (os.path.join(root.path, *path), stat.identity)
            with self._lock:
                known = self._headers.get(key)
            if known is not None:
                return known
            packed = path[-1].endswith(".zstd")
            try:
                data = inflate_head(fd, _HEAD_BYTES) if packed else os.pread(fd, _HEAD_BYTES, 0)
            except TreeError:
                return None
        header = parse_header(data)
        if header is not None:
            with self._lock:
                self._headers[key] = header
        return header


def parse_header(data: bytes) -> DshHeader | None:
    """Read a transcript's first record; None where the bytes do not begin with one. Pure."""
    record = parse_object(data, first=True)
    if record is None or record.get("type") != "session":
        return None
    id = text_of(record, "id")
    return DshHeader(
        id=id if id and re.fullmatch(_ID, id) else None,
        cwd=text_of(record, "cwd"),
        own=record.get("origin") != "subagent",
        started_ns=_milliseconds(record.get("createdAt")) * 1_000_000,
        version=_milliseconds(record.get("version")),
    )


def _chosen(found: Mapping[str, Open]) -> Open | None:
    threads = {path: OpenFileSession(path, one.via, one.written_ns) for path, one in found.items()}
    chosen = choose(OpenThreads(threads, {}, ()))
    return found[chosen] if chosen else None


def _milliseconds(value: object) -> int:
    return value if type(value) is int and 0 <= value <= _LATEST_MS else 0


def _places(home: str) -> Iterator[tuple[str, DshSessionPath]]:
    """Yield the directories of a home's sessions by the ids that they are named after."""
    root = Root(os.path.join(home, _STORE))
    for project in sorted(root.names()):
        for name in root.names((project,)):
            location = DshSessionPath(root, project, name)
            if id := _id(location, None):
                yield id, location


def _is_locked(location: DshSessionPath, inodes: frozenset[int]) -> bool:
    try:
        stat = location.lock()
    except (TreeError, OSError):
        return False
    return stat.is_regular and stat.ino in inodes


def _id(location: DshSessionPath, header: DshHeader | None) -> str | None:
    """Return a session's id: its own word for it, else the name of its directory, which is the id escaped."""
    if header is not None and header.id is not None:
        return header.id
    plain = re.sub(_ESCAPE, lambda found: chr(int(found[1], 16)), location.name)
    return next((id for id in (plain, location.name) if re.fullmatch(_ID, id)), None)


def _said(one: Open) -> list[str]:
    if one.path is None:
        return [f"transcript: {one.location.path} has none yet"]
    unreadable = _unreadable(one)
    return (
        [f"transcript: {os.path.join(one.location.root.path, *one.path)}: {unreadable}"] if unreadable else []
    )


def _unreadable(one: Open) -> str | None:
    """Return why a transcript is not read, by the format that its name or its first record says."""
    named = re.fullmatch(_TRANSCRIPT, one.path[-1]) if one.path else None
    said = one.header.version if one.header else 0
    for version in (int(named[1] or 0) if named else 0, said):
        if version not in VERSIONS:
            return (
                f"format {version} of dsh's transcripts is not known here; {VERSIONS[-1]} is the last that is"
            )
    return None


def _session(one: Open, threads: tuple[Session, ...] = (), steps: tuple[str, ...] = ()) -> Session:
    return Session(
        via=one.via,
        id=_id(one.location, one.header),
        cwd=one.header.cwd if one.header else None,
        sources=(Source(one.location.root, one.path),) if one.path else (),
        unreadable=_unreadable(one),
        threads=threads,
        steps=steps,
    )
