"""codex: the thread that each of its processes is in.

The routes, in order: the rollout that the process holds open; the thread whose writer lock it holds; for a
TUI whose thread lives in the home's shared daemon, the daemon's thread that can only be this TUI's. codex's
databases are never opened. Seen in 0.120.0 (no locks, no daemon) to 0.171.0; docs/FORMATS.md.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from agents9core.caches import LRU, TTLCache
from agents9core.errors import TreeError
from agents9core.files.root import Root
from agents9core.harness.codex.process import CodexCommand, is_daemon, parse_argv, uses_daemon
from agents9core.harness.codex.store import Rollout, Rollouts, exists
from agents9core.harness.codex.subagents import Families, subagents
from agents9core.harness.codex.threads import Thread, Tui, assign, why_none
from agents9core.harness.codex.titles import ThreadNames
from agents9core.harness.codex.turns import Turns
from agents9core.routes.choice import Key, OpenThreads, choose
from agents9core.routes.lock import Locks, read_locks
from agents9core.routes.process import OpenDescriptor, Process, ProcessTable, without_deleted
from agents9core.routes.uuid7 import born_ms, parse_uuid
from agents9core.session import Session, Source

Siblings = Callable[[], Iterable[tuple[Process, str]]]
"""The codex processes of now, each with its home."""
SHARED_SECONDS = 0.04
"""How long one scan of a daemon and its TUIs serves them all: a listing of many TUIs is one scan."""
SUBAGENTS_SECONDS = 0.5
"""How long a search for subagents serves: it looks at every rollout since the thread began."""
_SETTLED_NS = 80_000_000
"""A lock younger than this may be a subagent's, whose rollout comes a moment later."""


def writes_below(process: Process, home: str) -> bool:
    """Return whether a process has a rollout below a home open, and not for reading alone."""
    rollouts = Rollouts(home)
    return any(file.writable() is not False for file in _open_rollouts(process) if _at(file, rollouts))


def may_show(process: Process, _home: object) -> bool:
    """Return whether a process has what is named as a rollout open for writing."""
    return any(file.writable() for file in _open_rollouts(process))


def _open_rollouts(process: Process) -> Iterator[OpenDescriptor]:
    return (file for file in process.open_files() or () if "/rollout-" in file.target)


def _at(file: OpenDescriptor, rollouts: Rollouts) -> Rollout | None:
    return rollouts.at(without_deleted(file.target))


class Home:
    """One codex home: its rollouts, its locks and the names of its threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rollouts = Rollouts(path)
        self.families = Families(self.rollouts)
        self.locks = Root(os.path.join(path, "thread-writer-locks"))
        self.names = ThreadNames(path)

    def locked(self, inodes: frozenset[int]) -> dict[str, int]:
        """Return the threads whose writer locks have these inodes, and when each lock was made."""
        found = {}
        for name in self.locks.names() if inodes else ():
            thread = parse_uuid(name.removesuffix(".lock"))
            if thread is None or not name.endswith(".lock"):
                continue
            try:
                stat = self.locks.stat((name,))
            except (TreeError, OSError):
                continue
            if stat.is_regular and stat.ino in inodes:
                found[thread] = stat.mtime_ns
        return found

    def opened_ns(self, thread: str) -> int:
        """Return when a thread's lock was made; 0: it has none."""
        try:
            stat = self.locks.stat((f"{thread}.lock",))
        except (TreeError, OSError):
            return 0
        return stat.mtime_ns if stat.is_regular else 0


class _Kept(NamedTuple):
    """A thread's newest file, and what the days of its store were like when it was searched for."""

    rollout: Rollout
    recent: tuple[int, ...]


class _DaemonScan(NamedTuple):
    """What all terminal interfaces of one home have of its daemon, at one time."""

    began: float
    tuis: frozenset[Key]
    threads: Mapping[str, Thread]
    given: Mapping[Key, Thread]
    why_none: Mapping[Key, str]
    """Why the others have none."""


class Codex:
    """Finds the threads of codex processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._homes: LRU[str, Home] = LRU()
        self._turns = Turns()
        self._scans: LRU[str, _DaemonScan] = LRU()
        self._stored: TTLCache[tuple[str, str], _Kept] = TTLCache()
        self._subagent_names: LRU[tuple[str, str], dict[str, str]] = LRU()
        self._subagents: LRU[tuple[str, str], tuple[float, dict[str, Session]]] = LRU()

    def resolve(self, process: Process, home: str, siblings: Siblings) -> Session | None:
        """Return the session of a process; of the shared daemon only its threads.

        None where the process may be a subcommand that is not known, and has no thread.
        """
        place = self._home(home)
        asked = parse_argv(process.argv() or ())
        held = self._held(process, place, read_locks(self._table.root))
        if is_daemon(asked):
            steps = (*held.steps, "daemon: this is the shared one; each thread is its TUI's")
            return Session(via="none", threads=_sessions(place, held), steps=steps)
        thread = self._chosen(place, held)
        if thread is not None:
            threads = _sessions(place, held) if len(held.threads()) > 1 else ()
            steps = (*held.steps, "daemon: not asked")
            return _session(place, thread, thread.via)._replace(threads=threads, steps=steps)
        thread, seen = self._in_daemon(process, asked, place, siblings)
        if thread is None and asked.doubtful:
            return None
        session = _session(place, thread, "daemon") if thread else Session(via="none")
        return session._replace(steps=(*held.steps, *seen))

    def proves(self, process: Process, home: str) -> bool:
        """Return whether an own thread that it writes shows that a process is a codex, whatever it is
        called."""
        place = self._home(home)
        own, _, _ = self._by_fd([file for file in _open_rollouts(process) if file.writable()], place)
        return bool(own) or bool(self._held(process, place, read_locks(self._table.root)).by_lock)

    def claimed(self, home: str, pids: Collection[int]) -> set[int]:
        """Return which of these processes hold the lock of a thread."""
        locks = read_locks(self._table.root)
        holders = locks.keys() & pids
        place = self._home(home)
        return {pid for pid in holders if place.locked(locks[pid])}

    def subagents(self, session: Session) -> dict[str, Session]:
        """Return the subagents of a session by name; an answer serves for SUBAGENTS_SECONDS."""
        if not session.sources or session.id is None:
            return {}
        home = self._home(os.path.dirname(session.sources[-1].root.path))
        key = (home.path, session.id)
        now = time.monotonic()
        with self._lock:
            asked, known = self._subagents.get(key, (float("-inf"), {}))
        if now - asked > SUBAGENTS_SECONDS:
            with self._lock:
                names = self._subagent_names.get(key, {})
            known = subagents(home.families, session.id, names := dict(names), SUBAGENTS_SECONDS)
            with self._lock:
                self._subagent_names[key] = names | self._subagent_names.get(key, {})
                self._subagents[key] = (now, known)
        return known

    def stored(self, home: str) -> dict[str, Source]:
        """Return the threads that a person started, by id, each with its newest file."""
        rollouts = self._home(home).rollouts
        recent = rollouts.recent()
        threads = rollouts.threads()
        self._stored.put({(home, id): _Kept(rollout, recent) for id, rollout in threads.items()})
        return {id: Source(rollout.root, rollout.path) for id, rollout in threads.items()}

    def stored_session(self, home: str, id: str) -> Session | None:
        """Return a thread by its id, whether a process has it open or not."""
        place = self._home(home)
        if parse_uuid(id) != id:
            return None
        recent = place.rollouts.recent()
        known = self._stored.find(
            (home, id),
            lambda kept: kept.recent == recent and exists(kept.rollout),
            lambda: _newest(place.rollouts, id, recent),
        )
        rollout = known.rollout if known else None
        header = place.rollouts.first_header(rollout) if rollout else None
        if rollout is None or header is None or not header.own:
            return None
        session = _session(place, Thread(id, "kept", 0, rollout, header), "kept")
        return session._replace(started_ns=(born_ms(id) or 0) * 1_000_000 or header.started_ns)

    def _home(self, path: str) -> Home:
        with self._lock:
            home = self._homes.get(path)
            if home is None:
                home = self._homes[path] = Home(path)
            return home

    def _chosen(self, home: Home, held: OpenThreads[Thread]) -> Thread | None:
        """Return the thread that a process is in. When turns began is asked where it has several alone."""
        several = len(held.threads()) > 1
        by_fd, by_lock = (
            {id: self._dated(home, thread) if several else thread for id, thread in threads.items()}
            for threads in (held.by_fd, held.by_lock)
        )
        chosen = choose(OpenThreads(by_fd, by_lock, ()))
        return held.threads()[chosen] if chosen else None

    def _dated(self, home: Home, thread: Thread) -> Thread:
        turn_ns = self._turns.last_ns(thread.rollout) if thread.rollout else 0
        return thread._replace(turn_ns=turn_ns, opened_ns=home.opened_ns(thread.id))

    def _held(self, process: Process, home: Home, locks: Locks) -> OpenThreads[Thread]:
        files = process.open_files()
        by_fd, others, steps = self._by_fd(files or (), home)
        if files is None:
            steps = ["fd: refused"]
        inodes = locks.get(process.pid, frozenset())
        locked = {id: made for id, made in home.locked(inodes).items() if id not in others}
        by_lock = {id: thread for id, made in locked.items() if (thread := _locked(home, id, made))}
        steps.append(f"lock: holds {len(inodes)}, of threads {' '.join(locked) or 'none'}")
        return OpenThreads(by_fd, by_lock, tuple(steps))

    def _by_fd(
        self, files: Iterable[OpenDescriptor], home: Home
    ) -> tuple[dict[str, Thread], set[str], list[str]]:
        """Return the own threads by open file, the ids of the others, and what was seen."""
        found: list[tuple[Rollout, Thread]] = []
        read_only: set[Rollout] = set()
        others: set[str] = set()
        steps = []
        for file in files:
            rollout = _at(file, home.rollouts)
            if rollout is None:
                continue
            thread, seen = _opened(file, rollout, home)
            steps.append(f"fd: {file.target}: {seen}")
            if thread is None:
                continue
            if not (thread.header and thread.header.own):
                others.add(thread.id)
                continue
            found.append((rollout, thread))
            if file.writable() is False:
                read_only.add(rollout)
        # A file open for reading alone is being looked at, by the list of threads to resume for one.
        found = [pair for pair in found if pair[0] not in read_only] or found
        own = {thread.id: thread for _, thread in sorted(found, key=lambda pair: pair[0].age)}
        return own, others, steps or ["fd: no rollout"]

    def _in_daemon(
        self, process: Process, asked: CodexCommand, home: Home, siblings: Siblings
    ) -> tuple[Thread | None, list[str]]:
        """Return the thread of the home's shared daemon that can only be this TUI's."""
        if not uses_daemon(asked):
            return None, ["daemon: not asked: it is no terminal interface, or was told to use none"]
        key = (process.pid, process.start)
        with self._lock:
            scan = self._scans.get(home.path)
        if scan is None or key not in scan.tuis or time.monotonic() - scan.began > SHARED_SECONDS:
            scan = self._scan_daemon(process, home, siblings)
            with self._lock:
                self._scans[home.path] = scan
        seen = f"daemon: {len(scan.threads)} threads, {len(scan.tuis)} TUIs without one of their own"
        return scan.given.get(key), [
            seen,
            *(f"daemon: {doubt}" for doubt in [scan.why_none.get(key)] if doubt),
        ]

    def _scan_daemon(self, process: Process, home: Home, siblings: Siblings) -> _DaemonScan:
        """Give each TUI of a home the daemon's thread that can only be its."""
        began = time.monotonic()
        locks = read_locks(self._table.root)
        threads: dict[str, Thread] = {}
        tuis: list[Tui] = []
        for sibling in _of_home(process, home.path, siblings()):
            command = parse_argv(sibling.argv() or ())
            if is_daemon(command):
                threads |= self._held(sibling, home, locks).threads()
            elif uses_daemon(command) and not self._held(sibling, home, locks).threads():
                tuis.append(self._tui(sibling, command))
        threads = {id: self._dated(home, thread) for id, thread in threads.items()}
        given = assign(tuis, threads.values())
        found = {key: threads[id] for key, id in given.items() if threads[id].header is not None}
        without = [tui for tui in tuis if tui.key not in found]
        why = {tui.key: why_none(tui, tuis, threads.values(), given) for tui in without}
        return _DaemonScan(began, frozenset(tui.key for tui in tuis), threads, found, why)

    def _tui(self, process: Process, asked: CodexCommand) -> Tui:
        named = parse_uuid(asked.words[0]) if asked.command == "resume" and asked.words else None
        return Tui(
            key=(process.pid, process.start),
            started_ms=self._table.started_ns(process.start) // 1_000_000,
            directory=_directory(process, asked),
            resumes=named,
            picks=asked.command == "resume" and not asked.words and "--last" not in asked.options,
        )


def _newest(rollouts: Rollouts, id: str, recent: tuple[int, ...]) -> _Kept | None:
    rollout = rollouts.newest(id, compressed=True)
    return _Kept(rollout, recent) if rollout else None


def _directory(process: Process, asked: CodexCommand) -> str | None:
    cwd = process.cwd()
    moved = asked.options.get("--cd") or asked.options.get("-C")
    return os.path.realpath(os.path.join(cwd, moved)) if cwd and moved else cwd


def _of_home(process: Process, home: str, siblings: Iterable[tuple[Process, str]]) -> list[Process]:
    """Return the processes of one home, this one certainly among them."""
    real = os.path.realpath(home)
    same = {sibling.pid: sibling for sibling, its in siblings if its == home or os.path.realpath(its) == real}
    return list({**same, process.pid: process}.values())


def _opened(file: OpenDescriptor, rollout: Rollout, home: Home) -> tuple[Thread | None, str]:
    """Return the thread of an open rollout, and what was seen: the path must lead to the open file."""
    try:
        stat, header = home.rollouts.header(rollout)
    except (TreeError, OSError) as error:
        return None, type(error).__name__
    if (stat.dev, stat.ino) != file.identity():
        return None, "its path leads to another file"
    if header is None:
        return None, "its first line is not written yet"
    thread = Thread(header.thread, "fd", stat.mtime_ns, rollout, header)
    return thread, f"thread {header.thread}" if header.own else "a subagent's or a helper's"


def _locked(home: Home, id: str, made_ns: int) -> Thread | None:
    """Return the own thread that a lock is for; None for a subagent's, and for one too young to say."""
    rollout = home.rollouts.newest(id)
    try:
        stat, header = home.rollouts.header(rollout) if rollout else (None, None)
    except (TreeError, OSError):
        stat, header = None, None
    if stat is None or header is None:
        return Thread(id, "lock", made_ns) if time.time_ns() - made_ns >= _SETTLED_NS else None
    return Thread(id, "lock", stat.mtime_ns, rollout, header) if header.own else None


def _sessions(home: Home, held: OpenThreads[Thread]) -> tuple[Session, ...]:
    return tuple(_session(home, thread, thread.via) for _, thread in sorted(held.threads().items()))


def _session(home: Home, thread: Thread, via: str) -> Session:
    if thread.rollout is None or thread.header is None:
        return Session(via=via, id=thread.id, title=home.names.get(thread.id))
    sources, missing = home.rollouts.chain(thread.rollout, thread.header)
    return Session(
        via=via,
        id=thread.id,
        cwd=thread.header.cwd,
        sources=sources,
        missing_base=missing,
        title=home.names.get(thread.id),
        version=thread.header.version,
    )
