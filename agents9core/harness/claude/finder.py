"""Claude Code: which processes are one, and the session that its registry gives for a pid.

`<home>/sessions/<pid>.json` names the session; the transcript is `<home>/projects/<any>/<session>.jsonl`.
The registry outlives its process, so a record counts only for the process that wrote it. Beside it lie
`<pid>.<hex>.key` files, credentials: never opened. Seen in 2.0.76 (no registry) to 2.1.332; docs/FORMATS.md.
"""

import os
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NamedTuple

from agents9core.caches import LRU
from agents9core.errors import Denied, TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.files.root import NOT_THERE, Root
from agents9core.harness.claude.argv import ClaudeCommand, parse_argv
from agents9core.harness.claude.places import Places
from agents9core.harness.claude.process import arguments_of
from agents9core.harness.claude.store import SESSION_ID, ClaudeHead, ClaudeHeadCache, is_session, stored_paths
from agents9core.harness.claude.subagents import Subagents
from agents9core.routes.process import Process, ProcessTable
from agents9core.session import Session, Source

_NO_CONVERSATION = ("daemon", "daemon-worker")
"""What a record calls the processes that serve others."""
_STATUS = ("idle", "busy", "waiting")
_RECORD_BYTES = 4 << 20
_RECORD_TRIES = 5
_RECORD_PAUSE_SECONDS = 0.002
"""The record is rewritten in place: between write and ftruncate an old tail stands behind the new text."""
_LATEST_MS = 8_640_000_000_000_000
"""The last time that a JavaScript Date can be; ECMA-262 21.4.1.1."""


def may_show(process: Process, home: Callable[[], str]) -> bool:
    """Return whether a process's home has a record of its pid."""
    return os.path.lexists(f"{home()}/sessions/{process.pid}.json")


class _Shape(NamedTuple):
    """What a process was started as."""

    asked: ClaudeCommand
    inner_pid: int | None
    """What it is called in the innermost pid namespace; None: as here."""


class Claude:
    """Finds the sessions of claude processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._machine = _machine_id()
        self._lock = threading.Lock()
        self._places = Places()
        self._shapes: LRU[tuple[int, int, bytes | None], _Shape] = LRU()
        self._heads = ClaudeHeadCache()
        self.subagents = Subagents().of

    def resolve(self, process: Process, home: str, _siblings: object = None) -> Session | None:
        """Return the session of a process; None where it holds no conversation: a helper, a viewer, a spare,
        one whose session was moved elsewhere.
        """
        record, seen = self._record(process, home)
        if record and record.session:
            return None if record.serves_others else self._session(record, process, home)
        asked = self._shape_of(process).asked
        if asked.holds != "yes" or (record and record.serves_others):
            return None
        if record:
            return self._session(record, process, home)
        return self._resumed(asked, process, home, seen)

    def proves(self, process: Process, home: str) -> bool:
        """Return whether a record shows that a process is a claude, whatever it is called."""
        record, _ = self._record(process, home)
        return record is not None and record.session is not None and "procStart" in record.fields

    def claimed(self, home: str, pids: Collection[int]) -> set[int]:
        """Return which of these processes the registry of a home may have a record of."""
        names = Root(os.path.join(home, "sessions")).names()
        found = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return {int(pid) for pid in found if pid.isascii() and pid.isdigit()}.intersection(pids)

    def stored(self, home: str) -> dict[str, Source]:
        """Return the sessions below `projects` by id; of one that lies in several places, the newest."""
        root = Root(os.path.join(home, "projects"))
        found = stored_paths(root)
        self._places.put(root, found)
        places = {id: self._newest(root, tuple(paths)) for id, paths in found.items()}
        return {id: Source(root, place) for id, place in places.items() if place is not None}

    def stored_session(self, home: str, id: str) -> Session | None:
        """Return a session by its id, whether a process has it open or not."""
        root = Root(os.path.join(home, "projects"))
        place = self._places.of(root, id) if is_session(id) else None
        if place is None:
            return None
        source = Source(root, place)
        try:
            head = self._heads.read(source)
        except Denied:
            head = ClaudeHead()
        except NOT_THERE:
            return None
        return Session("kept", id=id, cwd=head.cwd, sources=(source,), started_ns=head.started_ns)

    def _newest(self, root: Root, places: tuple[tuple[str, str], ...]) -> tuple[str, str] | None:
        """Return where a session lies. Of one place it is not asked what is there."""
        return places[0] if len(places) == 1 else self._places.newest(root, places)

    def _record(self, process: Process, home: str) -> tuple["_Record | None", str]:
        """Return the record of a process, or None and why.

        In a container that shares its home a process knows itself by the innermost of its pids.
        """
        record, why = self._believed(process.pid, process, home, inner=False)
        if record is None and (inner := self._shape_of(process).inner_pid):
            record, _ = self._believed(inner, process, home, inner=True)
        return record, why

    def _shape_of(self, process: Process) -> "_Shape":
        """Return what stays the same until a process execs; remembered where that is to be seen."""
        key = (process.pid, process.start, process.layout)
        with self._lock:
            known = self._shapes.get(key)
        if known is None or process.layout is None:
            asked = parse_argv(arguments_of(process.argv() or ()))
            known = _Shape(asked, next(reversed(process.namespace_pids()[1:]), None))
            with self._lock:
                self._shapes[key] = known
        return known

    def _believed(
        self, pid: int, process: Process, home: str, *, inner: bool
    ) -> tuple["_Record | None", str]:
        record, why = _read_record(home, pid)
        if record is not None:
            why = self._disbelieved(record.fields, process, inner=inner) or ""
        return (None, why) if why else (record, "")

    def _resumed(self, asked: ClaudeCommand, process: Process, home: str, seen: str) -> Session:
        """Return what the command line says of a process without a record."""
        steps: tuple[str, ...] = (f"registry: {seen}",)
        if asked.resumes is None or not SESSION_ID.fullmatch(asked.resumes):
            return Session(via="none", steps=(*steps, "argv: no --resume with an id"))
        root = Root(os.path.join(home, "projects"))
        place, missing = self._sought(root, asked.resumes, process.cwd())
        steps = (*steps, f"argv: session {asked.resumes}", *missing)
        if place is None:
            return Session(via="none", steps=steps)
        return Session("argv", id=asked.resumes, sources=(Source(root, place),), steps=steps)

    def _session(self, record: "_Record", process: Process, home: str) -> Session:
        id, fields = record.session, record.fields
        root = Root(os.path.join(home, "projects"))
        cwd = text_of(fields, "cwd")
        place, seen = self._sought(root, id, cwd, process.cwd()) if id else (None, ())
        status = text_of(fields, "status")
        waiting = status == "waiting"
        return Session(
            via="registry" if id else "none",
            id=id,
            cwd=cwd,
            sources=(Source(root, place),) if place else (),
            name=text_of(fields, "name"),
            status=status if status in _STATUS else None,
            waitingfor=text_of(fields, "waitingFor") if waiting else None,
            version=text_of(fields, "version"),
            record_mtime_ns=record.mtime_ns,
            steps=(f"registry: session {id or 'not named'}", *seen),
        )

    def _disbelieved(self, record: dict[str, object], process: Process, *, inner: bool) -> str | None:
        """Return why a record is not this process's; None where it is.

        One that is filed by an *inner* pid is any container's, unless it says in which it was written.
        """
        if other := self._another_domain(record.get("pidDomain"), process, known=inner):
            return other
        start = record.get("procStart")
        if start is not None:
            return None if start == str(process.start) else f"written by a process started at {start!r:.40}"
        started_ms = record.get("startedAt")
        if type(started_ms) not in (int, float) or not 0 <= started_ms <= _LATEST_MS:  # type: ignore[operator]
            return "says neither procStart nor startedAt"
        if started_ms * 1_000_000 < self._table.started_ns(process.start):  # type: ignore[operator]
            return "written before the process started"
        return None

    def _another_domain(self, domain: object, process: Process, *, known: bool) -> str | None:
        """Compare `linux:<machine id>:<pid namespace>` where both sides are known; *known*: they must be.

        A container may have a machine id of its own.
        """
        if not isinstance(domain, str):
            return "does not say in which pid namespace it was written" if known else None
        system, _, rest = domain.partition(":")
        machine, _, namespace = rest.partition(":")
        if system != "linux":
            return "written on another system"
        here = _machine_id(process.root()) or self._machine if known else self._machine
        if machine and here and machine != here:
            return "written on another machine"
        ours = process.pid_namespace() if namespace else None
        if ours is None and known:
            return "its pid namespace is not known"
        return "written in another pid namespace" if ours and ours != namespace else None

    def _sought(
        self, root: Root, id: str, *cwds: str | None
    ) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
        """Return where the session's transcript lies, or why that is not known."""
        try:
            place = self._places.of(root, id, filter(None, cwds))
        except TreeError as error:
            return None, (f"transcript: {root.path}: {type(error).__name__}",)
        if place is None:
            return None, (f"transcript: no {id}.jsonl in a directory of {root.path} yet",)
        return place, ()


class _Record(NamedTuple):
    """A process's own record."""

    fields: dict[str, object]
    mtime_ns: int

    @property
    def session(self) -> str | None:
        """The id of the session that it names."""
        named = text_of(self.fields, "sessionId") or ""
        return named if SESSION_ID.fullmatch(named) else None

    @property
    def serves_others(self) -> bool:
        """Whether no person talks to its process: not yet, no more, or never."""
        fields = self.fields
        idle = fields.get("spare") or fields.get("parkedJobId")
        return bool(idle) or fields.get("kind") in _NO_CONVERSATION


def _read_record(home: str, pid: int) -> tuple[_Record | None, str]:
    """Return a registry record, or None and why."""
    root, path = Root(os.path.join(home, "sessions")), (f"{pid}.json",)
    for _ in range(_RECORD_TRIES):
        try:
            with root.opened(path) as (fd, stat):
                record = parse_object(os.pread(fd, _RECORD_BYTES, 0))
        except (TreeError, OSError) as error:
            return None, f"{os.path.join(root.path, *path)}: {type(error).__name__}"
        if record is not None:
            return _Record(record, stat.mtime_ns), ""
        time.sleep(_RECORD_PAUSE_SECONDS)
    return None, f"{os.path.join(root.path, *path)}: no JSON object"


def _machine_id(root: str = "") -> str | None:
    """Return the machine's id as it is below a root directory; None: it has none that may be read."""
    for name in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(OSError, ValueError), open(f"{root}{name}", "rb", opener=_never_waiting) as file:
            return file.read(256).decode("ascii").strip() or None
    return None


def _never_waiting(path: str, flags: int) -> int:
    """Open a file as `open` does, and wait for nobody where it is a fifo."""
    return os.open(path, flags | os.O_NONBLOCK)
