"""omp (oh-my-pi): which processes are one, and the session that each is in.

The routes, in order: the transcript that the process holds open (from its second write on); what is noted of
its terminal; the newest in the directory of its cwd, where that can only be its. Seen in 18.2.3;
docs/FORMATS.md.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from agents9core.errors import TreeError
from agents9core.harness import javascript
from agents9core.harness.omp.subagents import subagents
from agents9core.harness.omp.terminal import Note, read_note, terminal_of
from agents9core.harness.pi_files.store import (
    ADVISOR,
    SUFFIX,
    TOP,
    OmpStore,
    OmpTranscript,
    is_file,
    locate,
    main_of,
    of_directory,
    store_of,
)
from agents9core.harness.pi_files.stored import PiSessions
from agents9core.routes.choice import Key, OpenFileSession, OpenThreads, choose
from agents9core.routes.exclusive import Wish, assign_files
from agents9core.routes.process import OpenDescriptor, Process, ProcessTable, without_deleted
from agents9core.session import Session

Siblings = Callable[[], Iterable[tuple[Process, str]]]
"""The omp processes of now, each with its home."""
SHARED_SECONDS = 0.04
"""How long one scan of all omp processes serves each of them: a listing of many is one scan."""
_SLACK_NS = 2_000_000_000
"""How far a start and a file's time may be apart: the boot time is known to a second."""


def _arguments(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of omp: without the interpreter and the script."""
    rest = argv[1:]
    return rest[javascript.script(rest) + 1 :] if argv and javascript.is_interpreter(argv[0]) else rest


def _profile(arguments: tuple[str, ...]) -> str | None:
    for at, argument in enumerate(arguments):
        if argument == "--profile":
            return arguments[at + 1] if at + 1 < len(arguments) else None
        if argument.startswith("--profile="):
            return argument.partition("=")[2]
    return None


class _Seen(msgspec.Struct):
    """What one process shows of its session."""

    process: Process
    store: OmpStore
    environ: Mapping[str, str]
    cwd: str | None
    persists: bool
    """Whether it writes a transcript at all."""
    held: dict[str, tuple[OmpTranscript, int]] = {}
    """Transcripts that it holds open, by path, each with the time when it was written."""
    noted: OmpTranscript | None = None
    """What the note of its terminal names."""
    steps: list[str] = []

    @property
    def key(self) -> Key:
        return (self.process.pid, self.process.start)


class _OmpScan(NamedTuple):
    """What the processes that hold nothing open have, at one time."""

    began: float
    given: Mapping[Key, tuple[str, OmpTranscript]]
    """The route that answered, and its answer."""
    steps: Mapping[Key, list[str]]


class Omp:
    """Finds the sessions of omp processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._stored = PiSessions(titled=True)
        self._scan = _OmpScan(float("-inf"), {}, {})
        self.stored = self._stored.stored
        self.stored_session = self._stored.stored_session

    def resolve(self, process: Process, home: str, siblings: Siblings) -> Session:
        """Return the session of a process."""
        seen = self._seen(process, home)
        if not seen.persists:
            return Session(via="none", steps=("fd: started with --no-session: it writes no transcript",))
        if held := self._chosen(seen):
            return self._stored.session("fd", held, (*seen.steps, "terminal: not asked", "dir: not asked"))
        scan = self._scan
        if seen.key not in scan.steps or time.monotonic() - scan.began > SHARED_SECONDS:
            scan = self._scan = self._scan_all(seen, siblings)
        steps = tuple(scan.steps[seen.key])
        if seen.key not in scan.given:
            return Session(via="none", steps=steps)
        return self._stored.session(*scan.given[seen.key], steps)

    def subagents(self, session: Session) -> dict[str, Session]:
        """Return the subagents of a session and theirs, by the names that omp gave their files."""
        return subagents(session, self._stored.heads)

    def _started_ns(self, process: Process) -> int:
        return self._table.started_ns(process.start)

    # fd

    def _seen(self, process: Process, home: str) -> _Seen:
        """Read what a process holds open; where that is nothing, the note of its terminal."""
        environ = process.environ() or {}
        arguments = _arguments(process.argv() or ())
        cwd = process.cwd()
        store = store_of(environ, _profile(arguments), home, cwd)
        seen = _Seen(process, store, environ, cwd, persists="--no-session" not in arguments)
        files = list(process.open_files() or ())
        for file in files:
            self._add_held(seen, file)
        if not seen.steps:
            seen.steps.append("fd: no transcript" if files else "fd: refused")
        if not seen.held and seen.persists:
            seen.noted, step = self._noted(seen, terminal_of(process, files, environ))
            seen.steps.append(f"terminal: {step}")
        return seen

    def _add_held(self, seen: _Seen, file: OpenDescriptor) -> None:
        path = without_deleted(file.target)
        if not path.startswith("/") or not path.endswith(SUFFIX):
            return
        inside = locate(seen.store, path)
        transcript = inside or OmpTranscript(TOP, tuple(path[1:].split("/")))
        step, written_ns = self._opened(file, transcript, outside=inside is None)
        seen.steps.append(f"fd: {file.target}: {step}")
        if written_ns is not None:
            seen.held[transcript.full_path] = (transcript, written_ns)

    def _opened(
        self, file: OpenDescriptor, transcript: OmpTranscript, outside: bool
    ) -> tuple[str, int | None]:
        """Return what an open file is, and when it was written where that is the session's transcript.

        A file that was rewritten by a rename is open no more; it is what lies at its path now.
        """
        if transcript.path[-1].startswith((".", ADVISOR)):
            return "an advisor's, or a lock", None
        if main_of(transcript) != transcript:
            return "a subagent's", None
        if file.writable() is False:
            return "open for reading alone", None
        try:
            stat, head = self._stored.heads.read(transcript)
        except (TreeError, OSError) as error:
            return type(error).__name__, None
        replaced = file.target != without_deleted(file.target)
        if not replaced and (stat.dev, stat.ino) != file.identity():
            return "its path leads to another file", None
        if outside and not head.has_header:
            return "outside the store, and no session's", None
        return f"session {head.id or transcript.name_id}", stat.mtime_ns

    def _chosen(self, seen: _Seen) -> OmpTranscript | None:
        """Return which of the transcripts that it holds open a process is in: codex's rule."""
        threads = {path: OpenFileSession(path, "fd", written) for path, (_, written) in seen.held.items()}
        chosen = choose(OpenThreads(threads, {}, ()))
        return seen.held[chosen][0] if chosen else None

    # terminal

    def _noted(self, seen: _Seen, terminal: str | None) -> tuple[OmpTranscript | None, str]:
        """Return what the note of a terminal names for this process, and what was seen."""
        if terminal is None:
            return None, "it has none that is known"
        try:
            note = read_note(seen.store.terminals, terminal)
        except (TreeError, OSError) as error:
            return None, f"{terminal}: {type(error).__name__}"
        transcript = locate(seen.store, note.file) if note else None
        if note is None or transcript is None:
            return None, f"{terminal}: names no file of the store"
        transcript = main_of(transcript)
        why_not = self._disbelieved(note, transcript, seen)
        return None if why_not else transcript, f"{terminal}: {note.file}{why_not and ': '}{why_not}"

    def _disbelieved(self, note: Note, transcript: OmpTranscript, seen: _Seen) -> str:
        """Return why a note is not this process's; "" where it is.

        One that is older than the process is an earlier one's, unless what it names goes on to be written.
        """
        there = is_file(*transcript)
        if not there and not note.fresh:
            return "there is no such file"
        started_ns = self._started_ns(seen.process)
        if note.written_ns >= started_ns - _SLACK_NS:
            return ""
        if note.cwd != seen.cwd:
            return "written before the process started, in another directory"
        try:
            written_ns = transcript.root.stat(transcript.path).mtime_ns if there else 0
        except (TreeError, OSError):
            written_ns = 0
        return "" if written_ns >= started_ns else "left by an earlier process"

    # dir

    def _scan_all(self, seen: _Seen, siblings: Siblings) -> _OmpScan:
        """Share the transcripts that are noted, or lie in the right directory, among all processes."""
        began = time.monotonic()
        everybody = {seen.key: seen}
        for sibling, home in siblings():
            if (sibling.pid, sibling.start) not in everybody:
                everybody[(sibling.pid, sibling.start)] = self._seen(sibling, home)
        waiting = [one for one in everybody.values() if one.persists and not one.held]
        held = {path for one in everybody.values() for path in one.held}
        given = _share_notes(waiting, held)
        taken = held | {transcript.full_path for _, transcript in given.values()}
        rest = [one for one in waiting if one.key not in given]
        given |= self._share_directories(rest, taken)
        for one in waiting:
            if one not in rest:
                one.steps.append("dir: not asked")
        return _OmpScan(began, given, {one.key: one.steps for one in waiting})

    def _share_directories(self, rest: list[_Seen], taken: set[str]) -> dict[Key, tuple[str, OmpTranscript]]:
        found: dict[str, OmpTranscript] = {}
        wishes = []
        for one in rest:
            files = [(path, born) for path, born, found[path] in self._candidates(one) if path not in taken]
            wishes.append(Wish(one.key, self._started_ns(one.process) // 1_000_000, tuple(files)))
        given = assign_files(wishes)
        for one, wish in zip(rest, wishes, strict=True):
            one.steps.append(f"dir: {_said(one, wish, given)}")
        return {key: ("dir", found[path]) for key, path in given.items()}

    def _candidates(self, seen: _Seen) -> Iterator[tuple[str, int | None, OmpTranscript]]:
        """Yield what may be a process's by place and time: see `PiSessions.written_since`."""
        files = of_directory(seen.store, seen.cwd, seen.environ)
        return self._stored.written_since(files, seen.cwd, self._started_ns(seen.process))


def _share_notes(waiting: list[_Seen], held: set[str]) -> dict[Key, tuple[str, OmpTranscript]]:
    """Give the processes what their terminals' notes name, where no other process has it."""
    named = Counter(one.noted.full_path for one in waiting if one.noted)
    given = {}
    for one in waiting:
        if one.noted is None:
            continue
        path = one.noted.full_path
        if path in held:
            one.steps.append("terminal: another process holds it open")
        elif named[path] > 1:
            one.steps.append("terminal: the note names it for another process too")
        else:
            given[one.key] = ("terminal", one.noted)
    return given


def _said(seen: _Seen, wish: Wish, given: Mapping[Key, str]) -> str:
    if seen.cwd is None:
        return "its working directory is not known"
    if wish.key in given:
        return f"{given[wish.key]}: the newest written since the start that is no other process's"
    if not wish.files:
        return f"nothing of {seen.cwd} was written since the start"
    return f"{len(wish.files)} files may be another process's as well, or one's that has ended"
