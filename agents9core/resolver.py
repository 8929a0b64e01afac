"""The agents that run now, and the session that each is in.

    agents(name) ── scan: stat of every process; argv of those not seen before → whose process
      └─ Finder.resolve, once an agent         (a process that its harness does not list is left out)
    session(agent) ── is it the same process? → an answer younger than 50 ms, else Finder.resolve

A process is told by pid and start time. What a process was recognised as is remembered until it execs.
Thread-safe: nothing is locked while a harness's files are read; two threads that ask for one agent at the
same time may both look.
"""

import bisect
import logging
import os
import threading
import time
from collections.abc import Mapping
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from agents9core.errors import Gone, NotFound, TreeError
from agents9core.files.private import may_be_home
from agents9core.harness.base import Finder, Harness, Prover
from agents9core.harness.table import HARNESSES
from agents9core.homes import Homes
from agents9core.proofs import Proofs
from agents9core.routes.process import Process, ProcessTable
from agents9core.session import Session

REUSE_SECONDS = 0.05
"""How old an answer may be. What it was made from may be nearly as old again, and 100 ms is promised."""
_SCAN_SHARE = 5
"""Answers about single agents scan for at most a fifth of the time: a scan serves so many of its lengths."""

_WORDS_SHOWN = 6

log = logging.getLogger(__name__)


class Agent(NamedTuple):
    """A process of a harness: as long as it lives, and never another."""

    harness: str
    pid: int
    start: int
    """Clock ticks after boot."""


class _Resolution(NamedTuple):
    asked: float
    process: Process
    session: Session | None


class _Recognition(NamedTuple):
    """The harness it was recognised as, while it has this shape; None: of no harness."""

    shape: tuple[int, str, bytes]
    harness: str | None


class _ProcessScan(NamedTuple):
    began: float
    took: float
    processes: Mapping[str, list[Process]]
    """By harness."""
    listed: set[str]
    """The harnesses that were listed from it: a listing of all is one scan, of one twice is two."""


class Examination(NamedTuple):
    """What one process is to this server, an agent or not."""

    pid: int
    harness: str | None = None
    """Whose it is; None: no harness's."""
    home: str | None = None
    """Where it keeps its files."""
    home_is_guessed: bool = False
    """Whether that is a guess: its environment may not be read, and no home was given."""
    session: Session | None = None
    """None: it is no agent."""
    why: str = ""
    """Why it is none."""


class Resolver:
    """Finds agents in a process table. May be used from several threads."""

    def __init__(self, proc_root: str = "/proc", roots: Mapping[str, str] | None = None) -> None:
        """*roots*: harness name to the home of the processes that name none themselves."""
        self.roots = {name: os.path.abspath(path) for name, path in (roots or {}).items()}
        self._table = ProcessTable(proc_root)
        self._finders: dict[str, Finder] = {
            name: harness.finder(self._table) for name, harness in HARNESSES.items()
        }
        provers = {name: finder for name, finder in self._finders.items() if isinstance(finder, Prover)}
        self._proofs = Proofs(provers, lambda name, process: self._home(HARNESSES[name], process))
        self._verdicts: dict[int, _Recognition] = {}
        self._scanning = threading.Lock()
        self._scan = _ProcessScan(float("-inf"), 0, {}, set())
        self._answers: dict[Agent, _Resolution] = {}
        self._last: dict[tuple[str, int], Agent] = {}
        """The agent that a pid was when it was last answered for."""
        self._said_missing: set[str] = set()
        self._homes = {name: Homes() for name in HARNESSES}
        """The homes of the processes that were resolved: what they wrote stays when they have ended."""

    def root(self, harness: str) -> str:
        """Return the home of a harness's processes that name none themselves."""
        return self.roots.get(harness) or os.path.join(os.path.expanduser("~"), HARNESSES[harness].home)

    def finder(self, harness: str) -> Finder:
        """Return what knows a harness's sessions."""
        return self._finders[harness]

    def homes(self, harness: str) -> list[str]:
        """Return the homes of a harness: the default one, those of the processes that run now, then of others
        that have been seen to run.
        """
        kind = HARNESSES[harness]
        homes = (kind.homes(process, home) for process, home in self._siblings(kind))
        others = dict.fromkeys([*chain.from_iterable(homes), *self._homes[harness].known()])
        return list(dict.fromkeys([self.root(harness), *filter(may_be_home, others)]))

    def agents(self, harness: str) -> list[Agent]:
        """Return the agents of one harness that run now, by pid."""
        given = self.roots.get(harness)
        if given is not None and not os.path.isdir(given):
            self._say_missing(harness, given)
        processes = self._listed(harness)
        return [_agent(harness, process) for process in processes if self._is_listed(harness, process)]

    def agent(self, harness: str, pid: int) -> Agent:
        """Return the agent that is this process. Raises NotFound; reads no other process."""
        last = self._last.get((harness, pid))
        if last and (known := self._recent(last)) and known.session:
            return last
        process = self._table.read_own(pid)
        if process is None or self._whose(process) != harness or self._is_homeless(harness, process):
            raise NotFound(f"{harness}/{pid}")
        agent = _agent(harness, process)
        if self._answer(agent, process) is None:
            raise NotFound(f"{harness}/{pid}")
        return agent

    def reusable_until(self, agent: Agent) -> float:
        """Return until when the last answer about an agent may be used again, by `time.monotonic`."""
        known = self._answers.get(agent)
        return known.asked + REUSE_SECONDS if known else 0.0

    def session(self, agent: Agent) -> Session:
        """Return the session that an agent is in now. Raises Gone when its process has ended."""
        known = self._recent(agent)
        session = known.session if known else self._answer(agent, self._process(agent))
        if session is None:
            raise Gone(f"{agent.harness}/{agent.pid}")
        return session

    def cwd(self, agent: Agent) -> str | None:
        """Return the directory that an agent works in: its process's, else what its record says."""
        known = self._recent(agent)
        process = known.process if known else self._process(agent)
        return process.cwd() or self.session(agent).cwd

    def started_ns(self, agent: Agent) -> int:
        """Return when an agent's process started, in nanoseconds since 1970."""
        return self._table.started_ns(agent.start)

    def examine(self, pid: int) -> Examination:
        """Return what a process is, or why it is no agent. Raises NotFound where there is no such process."""
        process = self._table.read(pid)
        if process is None:
            if pid not in self._table.pids():
                raise NotFound(f"there is no process {pid}")
            return Examination(pid, why="it has ended, and its parent has not taken notice")
        if not self._table.is_ours(process):
            return Examination(pid, why=f"it is another user's: uid {process.real_uid()}")
        name = self._whose(process)
        if name is None:
            return Examination(pid, why=_unknown(process))
        if self._is_homeless(name, process):
            return Examination(pid, name, why=f"there is no {self.root(name)}")
        kept = self._sessions_home(HARNESSES[name], process)
        try:
            session = self._answer(_agent(name, process), process)
        except Gone:
            raise NotFound(f"process {pid} has just ended") from None
        return Examination(
            pid,
            name,
            kept,
            process.environ() is None and name not in self.roots,
            session,
            "" if session else "it holds no conversation: a helper, a viewer, or a spare or parked process",
        )

    def _is_listed(self, harness: str, process: Process) -> bool:
        if self._is_homeless(harness, process):
            return False
        try:
            return self._answer(_agent(harness, process), process) is not None
        except Gone:
            return False

    def _process(self, agent: Agent) -> Process:
        process = self._table.read_own(agent.pid)
        if process is None or process.start != agent.start or self._whose(process) != agent.harness:
            raise Gone(f"{agent.harness}/{agent.pid}")
        return process

    def _recent(self, agent: Agent) -> _Resolution | None:
        """Return the last answer about an agent while it may be used again."""
        known = self._answers.get(agent)
        return known if known and time.monotonic() - known.asked < REUSE_SECONDS else None

    def _answer(self, agent: Agent, process: Process) -> Session | None:
        """Return the session of a process that was just read; None where it is not to be listed.

        The process is read once more afterwards, so that an answer is never another's.
        """
        if known := self._recent(agent):
            return known.session
        asked = time.monotonic()
        session = self._resolved(HARNESSES[agent.harness], process)
        if _is_other(self._table.read(agent.pid), process):
            raise Gone(f"{agent.harness}/{agent.pid}")
        newer = self._answers.get(agent)
        if newer is None or newer.asked < asked:
            self._answers[agent] = _Resolution(asked, process, session)
            self._last[agent.harness, agent.pid] = agent
        return session

    def _resolved(self, harness: Harness, process: Process) -> Session | None:
        """Ask the harness. A fault of its finder costs this agent its session, and no listing."""
        home = self._home(harness, process)
        self._homes[harness.name].remember(harness.homes(process, home))
        try:
            return self._finders[harness.name].resolve(process, home, lambda: self._siblings(harness))
        except TreeError as error:
            return Session(via="none", steps=(f"its files cannot be read now: {type(error).__name__}",))
        except Exception as exc:
            log.exception("%s/%d cannot be resolved", harness.name, process.pid)
            return Session(via="none", steps=(f"a fault of agents9: {type(exc).__name__}",))

    def _home(self, harness: Harness, process: Process) -> str:
        """Return the home of a process's harness, as it is set for the process.

        What no home can be, such as the user's own, counts as not set.
        """
        environ = process.environ() or {}
        own = environ.get(harness.variable) if harness.variable else None
        if own and own.strip() and (own := os.path.join(process.cwd() or "", own)).startswith("/"):
            own = own.rstrip("/") or "/"
            if may_be_home(own):
                return own
        user = environ.get("HOME") or ""
        if not user.startswith("/"):
            user = os.path.expanduser("~")
        usual = os.path.join(user, harness.home)
        given = self.roots.get(harness.name)
        return given if given and not harness.writes_below(process, usual) else usual

    def _sessions_home(self, harness: Harness, process: Process) -> str:
        """Return where a process keeps its sessions."""
        return harness.homes(process, self._home(harness, process))[0]

    def _listed(self, harness: str) -> list[Process]:
        """Return the processes of a harness by a fresh scan, or by the one that lists its neighbours too."""
        asked = time.monotonic()
        with self._scanning:
            scan = self._scan
            ended = scan.began + scan.took
            if scan.began < asked and (harness in scan.listed or asked - ended > REUSE_SECONDS):
                scan = self._scan_processes()
            scan.listed.add(harness)
            return scan.processes[harness]

    def _siblings(self, harness: Harness) -> list[tuple[Process, str]]:
        """Return the processes of a harness, each with its home."""
        scan = self._scan
        if time.monotonic() - scan.began > max(REUSE_SECONDS, scan.took * _SCAN_SHARE):
            with self._scanning:
                scan = self._scan_processes() if scan is self._scan else self._scan
        return [(process, self._home(harness, process)) for process in scan.processes[harness.name]]

    def _scan_processes(self) -> _ProcessScan:
        began = time.monotonic()
        processes: dict[str, list[Process]] = {name: [] for name in HARNESSES}
        pids = sorted(self._table.pids())
        others = []
        for pid in pids:
            process = self._table.read(pid)
            name = self._recognised(process) if process else None
            if process and name and self._table.is_ours(process):
                processes[name].append(process)
            elif process and not name and not process.forked:
                others.append(process)
        shown = self._proofs.among(others, self._known_homes)
        for process in others:
            if process.pid in shown and self._table.is_ours(process):
                bisect.insort(processes[shown[process.pid]], process, key=attrgetter("pid"))
        self._scan = _ProcessScan(began, time.monotonic() - began, processes, set())
        self._forget(set(pids))
        return self._scan

    def _known_homes(self, harness: str) -> list[str]:
        return list(dict.fromkeys([self.root(harness), *self._homes[harness].known()]))

    def _whose(self, process: Process) -> str | None:
        """Return the harness whose process it is, by its name or by what the harness's files show."""
        return self._recognised(process) or (None if process.forked else self._proofs.of(process))

    def _recognised(self, process: Process) -> str | None:
        """Return the harness whose process it is by its name.

        Remembered by what changes with each execve, where that is to be seen: the node wrapper of codex
        becomes codex under the same pid.
        """
        if process.forked:
            return None
        shape = (process.start, process.comm, process.layout) if process.layout is not None else None
        known = self._verdicts.get(process.pid)
        if known is not None and known.shape == shape:
            return known.harness
        name = next((name for name, harness in HARNESSES.items() if harness.matches(process)), None)
        if shape is not None:
            self._verdicts[process.pid] = _Recognition(shape, name)
        return name

    def _forget(self, pids: set[int]) -> None:
        """Drop what is known of processes that have ended. Other threads may add meanwhile."""
        self._verdicts = {pid: known for pid, known in self._verdicts.copy().items() if pid in pids}
        self._answers = {agent: known for agent, known in self._answers.copy().items() if agent.pid in pids}
        self._last = {place: known for place, known in self._last.copy().items() if place[1] in pids}

    def _is_homeless(self, harness: str, process: Process) -> bool:
        """Return whether the home of a process is the one that was given, which is not there."""
        path = self.roots.get(harness)
        if path is None or os.path.isdir(path):
            return False
        kept = self._sessions_home(HARNESSES[harness], process)
        return kept == path or kept.startswith(f"{path}/")

    def _say_missing(self, harness: str, path: str) -> None:
        """Say once in the log that a home that was given is not there."""
        if harness not in self._said_missing:
            self._said_missing.add(harness)
            log.warning("%s: there is no directory %s", harness, path)


def _agent(harness: str, process: Process) -> Agent:
    return Agent(harness, process.pid, process.start)


def _unknown(process: Process) -> str:
    """Return what is to be seen of a process that is no harness's."""
    if process.forked:
        return "it is a copy of its parent, and has run no program of its own yet"
    words = " ".join((process.argv() or ())[:_WORDS_SHOWN])
    return f"no harness knows it, or it is a tool of one: {process.comm!r}, started as {words!r}"


def _is_other(now: Process | None, process: Process) -> bool:
    return now is None or now.start != process.start
