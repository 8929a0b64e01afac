"""pi: which processes are one, and the session that each is in.

pi writes the files that omp does, opens them for each record only, and writes its name over its command
line: what was written since a process started, in the directory of its cwd, is all that tells. Seen in
1.6.0; docs/FORMATS.md.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from agents9core.errors import TreeError
from agents9core.files.root import Root
from agents9core.harness import javascript
from agents9core.harness.pi_files.store import SUFFIX, OmpTranscript, dashed
from agents9core.harness.pi_files.stored import PiSessions
from agents9core.harness.programs import plain
from agents9core.routes.choice import Key
from agents9core.routes.exclusive import Wish
from agents9core.routes.process import Process, ProcessTable
from agents9core.session import Session

Peers = Callable[[], Iterable[tuple[Process, str]]]
"""The pi processes of now, each with its home."""
SHARED_SECONDS = 0.04
"""How long one scan of all pi processes serves each of them: a listing of many is one scan."""
_BIRTH_MS = range(-1500, 5000)
"""When the first session of a process is born, after its start, which is known to a second."""
_NAMES = ("pi", "pi-rpc")
_NO_SESSION = frozenset((
    "install", "remove", "uninstall", "update", "list", "config", "--version", "-v", "--help", "-h",
    "--list-models", "--export",
))  # fmt: skip
"""First words of a command line that start no agent, as long as that is to be seen."""


def owns(process: Process) -> bool:
    """Return whether a process is a pi with a session: node, or bun, or pi itself, that calls itself so.

    Another program of this name computes digits of the number.
    """
    if process.comm not in _NAMES:
        return False
    exe, words = process.exe(), _words(process)
    if exe is not None and plain(exe) != "pi" and not javascript.is_interpreter(plain(exe)):
        return False
    return not words or not (words[0] in _NO_SESSION or words[0].isdecimal())


def homes(process: Process, home: str) -> tuple[str, ...]:
    """Return the directory that a process keeps its files in: the agent directory that it was given, or its
    home.
    """
    own = _named(process, "PI_CODING_AGENT_DIR")
    return (own or home,)


def _words(process: Process) -> tuple[str, ...]:
    """Return what pi was told; nothing once it has written its name over that."""
    argv = process.argv() or ()
    rest = argv[1:]
    if argv and javascript.is_interpreter(argv[0]):
        rest = rest[javascript.script(rest) + 1 :]
    return tuple(word for word in rest if word.strip())


def _named(process: Process, variable: str) -> str | None:
    """Return the directory that a variable of a process names."""
    named = (process.environ() or {}).get(variable)
    path = os.path.join(process.cwd() or "", named) if named else ""
    return os.path.normpath(path) if path.startswith("/") else None


class _PiLook(NamedTuple):
    """What all processes have, at one time."""

    began: float
    given: Mapping[Key, OmpTranscript]
    steps: Mapping[Key, str]
    """What was seen for each."""


class Pi:
    """Finds the sessions of pi processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._stored = PiSessions(titled=False)
        self._look = _PiLook(float("-inf"), {}, {})
        self.stored = self._stored.stored
        self.stored_session = self._stored.stored_session

    def resolve(self, process: Process, home: str, siblings: Peers) -> Session:
        """Return the session of a process."""
        key = (process.pid, process.start)
        look = self._look
        if key not in look.steps or time.monotonic() - look.began > SHARED_SECONDS:
            look = self._look = self._look_at_all(process, home, siblings)
        steps = (f"dir: {look.steps[key]}",)
        if key not in look.given:
            return Session(via="none", steps=steps)
        return self._stored.session("dir", look.given[key], steps)

    def subagents(self, _session: Session) -> dict[str, Session]:
        """Return none: pi has no subagents of its own."""
        return {}

    def _look_at_all(self, process: Process, home: str, siblings: Peers) -> _PiLook:
        """Share the transcripts of the processes' directories among all of them."""
        began = time.monotonic()
        everybody = {(sibling.pid, sibling.start): (sibling, its) for sibling, its in siblings()}
        everybody[process.pid, process.start] = (process, home)
        found: dict[str, OmpTranscript] = {}
        wishes, cwds = [], {}
        for key, (sibling, its) in everybody.items():
            cwd, started_ns = sibling.cwd(), self._table.started_ns(sibling.start)
            files = []
            for path, born, transcript in self._stored.written_since(
                _files(sibling, its, cwd), cwd, started_ns
            ):
                found[path] = transcript
                files.append((path, born))
            wishes.append(Wish(key, started_ns // 1_000_000, tuple(files)))
            cwds[key] = cwd
        given = share_out(wishes)
        steps = {wish.key: _said(wish, cwds[wish.key], given) for wish in wishes}
        return _PiLook(began, {key: found[path] for key, path in given.items()}, steps)


def _files(process: Process, home: str, cwd: str | None) -> Iterator[tuple[OmpTranscript, int]]:
    """Yield what lies where a process keeps the sessions of its cwd, with the time when each was written."""
    if cwd is None:
        return
    directory = (f"--{dashed(cwd.lstrip('/'))}--",)
    own = _named(process, "PI_CODING_AGENT_SESSION_DIR")
    agent = _named(process, "PI_CODING_AGENT_DIR") or os.path.join(home, "agent")
    root = Root(own or os.path.join(agent, "sessions"))
    for path in ((), directory) if own else (directory,):
        try:
            entries = root.entries(path)
        except (TreeError, OSError):
            continue
        for name, stat in entries:
            if stat.is_regular and name.endswith(SUFFIX):
                yield OmpTranscript(root, (*path, name)), stat.mtime_ns


def share_out(wishes: list[Wish]) -> dict[Key, str]:
    """Give each process the newest file that may be its, unless that may be another's as well. Pure.

    What was born when one process started, and no other, is of that one. So a process that has said nothing
    yet is not given what another began with `/new`.
    """
    rest = {wish.key: [path for path, _ in wish.files] for wish in wishes}
    for path, owner in _firsts(wishes).items():
        for key in rest:
            if key != owner and path in rest[key]:
                rest[key].remove(path)
    wanted = Counter(path for paths in rest.values() for path in paths)
    return {key: paths[0] for key, paths in rest.items() if paths and wanted[paths[0]] == 1}


def _firsts(wishes: list[Wish]) -> dict[str, Key]:
    """Return the files that were born when exactly one process started, and whose they are."""
    born = [
        (path, wish.key)
        for wish in wishes
        for path, born in wish.files
        if born is not None and born - wish.started_ms in _BIRTH_MS
    ]
    count = Counter(path for path, _ in born)
    return {path: key for path, key in born if count[path] == 1}


def _said(wish: Wish, cwd: str | None, given: Mapping[Key, str]) -> str:
    if cwd is None:
        return "its working directory is not known"
    if wish.key in given:
        return f"{given[wish.key]}: the newest written since the start that is no other process's"
    if not wish.files:
        return f"nothing of {cwd} was written since the start"
    return f"{len(wish.files)} files are another process's, or may be"
