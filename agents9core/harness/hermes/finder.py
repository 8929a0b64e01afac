"""hermes: which processes are one, and the little evidence of the session that each is in.

Its sessions are rows of `<home>/state.db` (`hermes_store`); nothing in it names a process. The
routes: `<home>/runtime/active_sessions.json`, written only where `max_concurrent_sessions` is set; the id on
the command line; what a child was given, and whose subagents a process has. `/new` moves none of these, but
the row of the session that was left has ended. Else the session is not known. Seen in 0.19.0; FORMATS.md.
"""

import os
import re
from collections.abc import Iterable, Mapping

from agents9core.errors import TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.files.root import Root
from agents9core.harness.hermes import store as hermes_store
from agents9core.harness.hermes.rows import DATABASE
from agents9core.routes.process import OpenDescriptor, Process, ProcessTable
from agents9core.session import Session, Source

_OPEN_DATABASE = r"(?s)(/.*)/state\.db(?:-wal|-shm)?"
_REGISTRY = ("runtime", "active_sessions.json")
_REGISTRY_BYTES = 1 << 20
_ID = "[0-9A-Za-z._-]{0,100}[0-9]{8}_[0-9]{6}[0-9A-Za-z._-]{0,40}"
"""hermes makes its ids of the time; what else `--resume` names is a title."""
_SAFE_ID = "[0-9A-Za-z][0-9A-Za-z:._-]{0,127}"
_RESUME = ("--resume", "-r")
_START_SECONDS = 2.0
"""How far two readings of a process's start may be apart: the boot time is known to a second."""

_VARIABLE = "HERMES_SESSION_ID"
"""What hermes sets for the commands that it runs."""

Entry = dict[str, object]
Known = tuple[str | None, int]
"""A session's id, and when what says so was written; 0: that has no time."""


class Hermes:
    """Finds the sessions of hermes processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table

    def resolve(self, process: Process, home: str, _siblings: object = None) -> Session:
        """Return the session of a process; of several in one gateway the one that was last used.

        What the database says has ended since the process started was left: for a new one, or a resumed one.
        """
        steps: list[str] = []
        places = _homes(process.open_files() or ()) or [home]
        for via, ask in (("registry", self._registered), ("argv", _named), ("environ", self._inherited)):
            for place in places:
                found = ask(process, place, steps)
                sessions = [one for one in found if self._goes_on(one, process, place, steps)]
                if sessions:
                    return _stored(_session(via, sessions, tuple(steps)), place)
        return Session(via="none", steps=tuple(steps))

    def _goes_on(self, one: Known, process: Process, home: str, steps: list[str]) -> bool:
        id, _ = one
        if id is None or not hermes_store.has_ended(home, id, self._table.started_ns(process.start)):
            return True
        steps.append(f"{os.path.join(home, *DATABASE)}: session {id} was left")
        return False

    def _inherited(self, process: Process, home: str, steps: list[str]) -> list[Known]:
        """Return the session that a process handed to the child that it started last; else that in which it
        started its last subagent.

        What it was itself started with is its parent's.
        """
        own = (process.environ() or {}).get(_VARIABLE)
        children = sorted(self._table.children(process), key=lambda child: child.start, reverse=True)
        handed = [(child.environ() or {}).get(_VARIABLE) for child in children]
        told = [id for id in handed if id and id != own]
        steps.append(f"environ: {len(children)} children, {len(told)} with a session")
        owned = hermes_store.delegated_by(home, process.pid, process.start)
        steps.append(f"environ: subagents of {len(owned)} sessions are this process's")
        proper: list[Known] = [(id, 0) for id in (*told, *owned) if re.fullmatch(_SAFE_ID, id)]
        return next(([one] for one in proper if self._goes_on(one, process, home, steps)), [])

    def subagents(self, session: Session) -> Mapping[str, Session]:
        """Return the sessions that were started for a task, by their ids. Raises Unavailable."""
        return dict(hermes_store.subagents(session))

    def stored(self, home: str) -> Mapping[str, Source]:
        """Return the conversations in a home by the id of their last session. Raises Unavailable."""
        return hermes_store.kept(home)

    def stored_session(self, home: str, id: str) -> Session | None:
        """Return a session by its id, or by that of one that it continues."""
        if not re.fullmatch(_SAFE_ID, id):
            return None
        session, _ = hermes_store.find(home, id)
        return session._replace(id=id, status=None) if session else None

    def _registered(self, process: Process, home: str, steps: list[str]) -> list[Known]:
        """Return the sessions that the registry has for a process, the last used first, and its time."""
        root = Root(home)
        path = os.path.join(home, *_REGISTRY)
        try:
            with root.opened(_REGISTRY) as (fd, stat):
                record = parse_object(os.pread(fd, _REGISTRY_BYTES, 0))
        except (TreeError, OSError) as error:
            steps.append(f"registry: {path}: {type(error).__name__}")
            return []
        entries = [entry for entry in _entries(record) if entry.get("pid") == process.pid]
        ours = [entry for entry in entries if self._is_of(entry, process)]
        steps.append(f"registry: {path}: {len(entries)} with this pid, {len(ours)} of this process")
        ours.sort(
            key=lambda entry: (_number(entry.get("updated_at")), str(entry["session_id"])), reverse=True
        )
        return [(text_of(entry, "session_id"), stat.mtime_ns) for entry in ours]

    def _is_of(self, entry: Entry, process: Process) -> bool:
        """Return whether an entry was written by the process that has the pid now."""
        id = text_of(entry, "session_id")
        if id is None or not re.fullmatch(_SAFE_ID, id):
            return False
        started = self._table.started_ns(process.start) / 1e9
        told = entry.get("process_start_time")
        if told is None:
            return _number(entry.get("started_at")) >= started - _START_SECONDS
        return abs(_number(told) - started) <= _START_SECONDS or told == process.start


def _homes(files: Iterable[OpenDescriptor]) -> list[str]:
    """Return the homes whose database is open: a profile that was chosen after the start shows only there."""
    found = (re.fullmatch(_OPEN_DATABASE, file.target) for file in files)
    return sorted({match[1] for match in found if match})


def _entries(record: Entry | None) -> list[Entry]:
    entries = record.get("entries") if record else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _number(value: object) -> float:
    """Return a time, minus infinity where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return float("-inf")
    try:
        return float(value)
    except OverflowError:
        return float("-inf")


def _named(process: Process, _home: str, steps: list[str]) -> list[Known]:
    """Return the session that the command line names."""
    id, seen = _resumed(process.argv() or ())
    steps.append(f"argv: {seen}")
    return [(id, 0)] if id else []


def _resumed(argv: tuple[str, ...]) -> tuple[str | None, str]:
    """Return the session id that a command line names, and what was seen."""
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in _RESUME:
            named = value if equals else "".join(argv[at + 1 : at + 2])
            return (named, named) if re.fullmatch(_ID, named) else (None, f"{named}: a title, not an id")
    return None, "no --resume"


def _session(via: str, sessions: list[Known], steps: tuple[str, ...]) -> Session:
    (id, mtime_ns), *others = sessions
    threads = [Session(via=via, id=id, record_mtime_ns=mtime_ns) for id, mtime_ns in sessions]
    return Session(
        via=via, id=id, record_mtime_ns=mtime_ns, threads=tuple(threads) if others else (), steps=steps
    )


def _stored(session: Session, home: str) -> Session:
    """Return a session with what the database of a home says of it and of its threads."""
    if session.id is None or not re.fullmatch(_SAFE_ID, session.id):
        return session
    threads = tuple(_stored(thread, home) for thread in session.threads)
    found, seen = hermes_store.find(home, session.id)
    steps = (*session.steps, f"{os.path.join(home, *DATABASE)}: {seen}")
    if found is None:
        return session._replace(threads=threads, steps=steps)
    moved_ns = session.record_mtime_ns
    return found._replace(via=session.via, record_mtime_ns=moved_ns, threads=threads, steps=steps)
