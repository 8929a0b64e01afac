"""The tree, declared once.

    /
      version  roots  README
      active/
        claude/  codex/  omp/  dsh/  hermes/
          <pid>/
            via  session  cwd  title  name  status  waitingfor  model  version  started
            transcript
            chat/00000000-user ...
            threads/<id>/...            where one process has several threads of its own

A file that does not apply is absent. A new leaf is one row of `facts.LEAVES` and one row of the test of it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial

from agents9core import __version__
from agents9core.chat import ChatDirectory, TranscriptFile, transcript_stat, version_of
from agents9core.errors import Denied, Gone, NotFound
from agents9core.facts import BY_NAME, LEAVES, Leaf, Look, line
from agents9core.harness import HARNESSES
from agents9core.identity import PathNumbers
from agents9core.node import Directory, File, Node, Reader, Row, Stat
from agents9core.resolver import Agent, Resolver
from agents9core.seat import Desk, Held, Seat
from agents9core.session import Session
from agents9core.transcript import Transcripts, Visit

LISTING_SECONDS = 1.0
"""How long the look of a harness's directory stands. A listing, and a walk to an agent, always look anew."""
README = """\
What the coding agents on this host say, as files. Everything is read-only.

active/HARNESS/PID/      an agent that runs: claude, codex, omp, dsh, hermes
  via                    how its session was found: registry, fd, lock, daemon ... none
  session cwd title name status waitingfor model version started
                         one line each; a file that does not apply is absent
  transcript             what the harness writes, byte for byte, growing
  chat/ID-KIND           one file per message: 00000413-bash, 00000414-bash-result
  threads/ID/            where one process has several threads of its own

Names of messages never change and their text never does. A new message is a new file.
"""


class TextReader(Reader):
    """Text that was made when the file was opened; *check* raises Gone when its file has ended."""

    def __init__(self, text: bytes, check: Callable[[], object]) -> None:
        self._text = text
        self._check = check

    def read(self, offset: int, count: int) -> bytes:
        self._check()
        return self._text[offset : offset + count]


class TextFile(File):
    """A file of the server's own, such as the README."""

    def __init__(self, name: str, text: str, number: int, mtime_ns: int) -> None:
        self.name = name
        self._text = text.encode()
        self._stat = Stat(number, 1, False, len(self._text), mtime_ns)

    def stat(self) -> Stat:
        return self._stat

    def open(self) -> Reader:
        return TextReader(self._text, self.stat)


class FactFile(File):
    """One leaf of a seat."""

    def __init__(self, name: str, seat: Seat) -> None:
        self.name = name
        self._seat = seat
        self._number, self._leaf = BY_NAME[name]

    def stat(self) -> Stat:
        return self._look()[0]

    def open(self) -> Reader:
        return TextReader(self._look()[1], self._seat.session)

    def _look(self) -> tuple[Stat, bytes]:
        with glance(self._seat, scan=self._leaf.in_transcript) as seen:
            text = self._leaf.show(seen.look)
            if text is None:
                raise Gone(self.name)
            return seen.fact_stat(self._number, self._leaf, line(text)), line(text)


@dataclass(frozen=True)
class Glance:
    """One look at a seat, for its listing and its facts."""

    seat: Seat
    look: Look
    visit: Visit | None

    @cached_property
    def number(self) -> int:
        """Block of path numbers of the seat's directory; its facts are leaves of it."""
        return self.seat.desk.numbers.block("entry", self.seat.key)

    @property
    def held(self) -> Held | None:
        """The seat's transcript, for a node to hold."""
        return Held(self.seat, self.visit.transcript, self.visit.generation) if self.visit else None

    @cached_property
    def record_ns(self) -> int:
        """When the harness's record last moved; never before the process began."""
        return max(self.look.session.record_mtime_ns, self.look.started_ns)

    @cached_property
    def transcript_ns(self) -> int:
        """When the transcript or the record last moved."""
        written = self.visit.stat.mtime_ns if self.visit else self.record_ns
        return max(written, self.record_ns)

    def fact_stat(self, number: int, leaf: Leaf, text: bytes) -> Stat:
        """Return what a fact's file looks like; its version moves with its text."""
        moved_ns = self.transcript_ns if leaf.in_transcript else self.record_ns
        return Stat(self.number + number, version_of(text), False, len(text), moved_ns)

    def has(self, name: str) -> bool:
        """Whether a member applies."""
        if name in BY_NAME:
            return BY_NAME[name][1].show(self.look) is not None
        return name in self._others()

    def names(self) -> list[str]:
        """Return the members that apply, in the order of the table."""
        return [leaf.name for leaf in LEAVES if self.has(leaf.name)] + self._others()

    def _others(self) -> list[str]:
        session = self.look.session
        applies = {
            "transcript": self.visit is not None,
            "chat": session.id is not None and self.seat.reading is not None,
            "threads": bool(session.threads),
        }
        return [name for name, is_there in applies.items() if is_there]

    def stat(self) -> Stat:
        """Return what the seat's directory looks like."""
        index = self.visit.transcript.index if self.visit else None
        newest_ns = max(self.transcript_ns, index.newest_ns if index else 0)
        version = version_of(self.names(), self.visit.number if self.visit else 0)
        return Stat(self.number, version, True, 0, newest_ns)


@contextmanager
def glance(seat: Seat, scan: bool) -> Iterator[Glance]:
    """Look at a seat. Without *scan* the facts are those that an index happens to hold. Raises Gone."""
    session = seat.session()
    titles = seat.reading.titles if seat.reading else ()
    with ExitStack() as stack:
        try:
            visit = stack.enter_context(seat.visit(scan))
        except Denied:
            visit = None
        index = (visit.index or visit.transcript.index) if visit else None
        facts = index.facts if index else {}
        yield Glance(seat, Look(session, partial(seat.cwd, session), seat.started_ns, facts, titles), visit)


class SeatDirectory(Directory):
    """An agent, or one of its threads: what is known of it, and what it says."""

    def __init__(self, name: str, seat: Seat) -> None:
        self.name = name
        self._seat = seat

    def stat(self) -> Stat:
        with glance(self._seat, scan=False) as seen:
            return seen.stat()

    def walk(self, name: str) -> Node:
        with glance(self._seat, scan=_asks_transcript(name)) as seen:
            if not seen.has(name):
                raise NotFound(name)
            if name == "transcript" and seen.held:
                return TranscriptFile(seen.held)
            return FactFile(name, self._seat) if name in BY_NAME else self._directory(name, seen)

    def members(self) -> Sequence[Row]:
        with glance(self._seat, scan=True) as seen:
            names = seen.names()
            rows = [self._row(name, seen) for name in names if name in BY_NAME]
            if seen.visit:
                rows.append(Row("transcript", transcript_stat(seen.visit)))
            directories = [self._directory(name, seen) for name in ("chat", "threads") if name in names]
        return rows + _present(iter(directories))

    def _row(self, name: str, seen: "Glance") -> Row:
        number, leaf = BY_NAME[name]
        return Row(name, seen.fact_stat(number, leaf, line(leaf.show(seen.look) or "")))

    def _directory(self, name: str, seen: "Glance") -> Directory:
        if name == "chat":
            return ChatDirectory(self._seat, seen.held, seen.look.session.id)
        return ThreadsDirectory(self._seat)


def _asks_transcript(name: str) -> bool:
    """Whether a member of a seat is made from what its transcript says."""
    return name == "chat" or (name in BY_NAME and BY_NAME[name][1].in_transcript)


class ThreadSeat(Seat):
    """One of the threads that a process has open."""

    def __init__(self, parent: Seat, thread: str) -> None:
        self.desk = parent.desk
        self.reading = parent.reading
        self.key = (*parent.key, "thread", thread)
        self.started_ns = parent.started_ns
        self._parent = parent
        self._thread = thread

    def session(self) -> Session:
        for session in self._parent.session().threads:
            if session.id == self._thread:
                return session
        raise Gone(self._thread)


class ThreadsDirectory(Directory):
    """`threads/`: every thread of its own that a process has open."""

    name = "threads"

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def stat(self) -> Stat:
        return _listing_stat(self._seat.desk.numbers.block("threads", self._seat.key), self.members())

    def walk(self, name: str) -> Node:
        if name not in self._ids():
            raise NotFound(name)
        return SeatDirectory(name, ThreadSeat(self._seat, name))

    def members(self) -> Sequence[Row]:
        return _present(SeatDirectory(id_, ThreadSeat(self._seat, id_)) for id_ in self._ids())

    def _ids(self) -> list[str]:
        return [session.id for session in self._seat.session().threads if session.id]


class AgentSeat(Seat):
    """A process that is an agent."""

    def __init__(self, desk: Desk, resolver: Resolver, agent: Agent) -> None:
        self.desk = desk
        self.reading = HARNESSES[agent.harness].reading
        self.key = ("agent", agent)
        self.started_ns = resolver.started_ns(agent)
        self._resolver = resolver
        self._agent = agent

    def session(self) -> Session:
        return self._resolver.session(self._agent)

    def cwd(self, session: Session) -> str | None:
        return self._resolver.cwd(self._agent)


class HarnessDirectory(Directory):
    """`active/<harness>/`: the agents of one harness, a directory a pid."""

    def __init__(self, name: str, desk: Desk, resolver: Resolver) -> None:
        self.name = name
        self._desk = desk
        self._resolver = resolver
        self._looked = (float("-inf"), Stat(0, 0, True, 0, 0))

    def stat(self) -> Stat:
        """Look at the directory. Every walk passes here, so the last listing serves for a while."""
        looked, stat = self._looked
        if time.monotonic() - looked > LISTING_SECONDS:
            self.members()
            stat = self._looked[1]
        return stat

    def walk(self, name: str) -> Node:
        if not (name.isascii() and name.isdigit()) or name != str(int(name[:20])):
            raise NotFound(name)
        return self._entry(self._resolver.agent(self.name, int(name)))

    def members(self) -> Sequence[Row]:
        asked = time.monotonic()
        rows = _present(self._entry(agent) for agent in self._resolver.agents(self.name))
        self._looked = (asked, _listing_stat(self._desk.numbers.block("harness", self.name), rows))
        return rows

    def _entry(self, agent: Agent) -> SeatDirectory:
        return SeatDirectory(str(agent.pid), AgentSeat(self._desk, self._resolver, agent))


class FixedDirectory(Directory):
    """A directory whose members are always there."""

    def __init__(self, name: str, number: int, nodes: Sequence[Node]) -> None:
        self.name = name
        self._number = number
        self._nodes = {node.name: node for node in nodes}

    def stat(self) -> Stat:
        return _listing_stat(self._number, self.members())

    def walk(self, name: str) -> Node:
        try:
            return self._nodes[name]
        except KeyError:
            raise NotFound(name) from None

    def members(self) -> Sequence[Row]:
        return _present(iter(self._nodes.values()))


def _present(nodes: Iterator[Node]) -> list[Row]:
    """Return the rows of the nodes that are still there."""
    rows = []
    for node in nodes:
        with suppress(Gone):
            rows.append(Row(node.name, node.stat()))
    return rows


def _listing_stat(number: int, rows: Sequence[Row]) -> Stat:
    """Return a directory's look from its members: it is as new as the newest of them."""
    newest_ns = max((row.stat.mtime_ns for row in rows), default=0)
    return Stat(number, version_of([(row.name, row.stat.path) for row in rows]), True, 0, newest_ns)


class Top(FixedDirectory):
    """The top of the tree."""

    def __init__(self, desk: Desk, nodes: Sequence[Node]) -> None:
        super().__init__("/", desk.numbers.block("top"), nodes)
        self._desk = desk

    def one_request(self) -> AbstractContextManager[object]:
        return self._desk.one_request()


def build_tree(resolver: Resolver) -> Directory:
    """Return the top of the tree over the agents that *resolver* finds."""
    numbers = PathNumbers()
    desk = Desk(numbers, Transcripts(numbers))
    now_ns = time.time_ns()
    roots = "".join(f"{name}={resolver.root(name)}\n" for name in HARNESSES)
    texts = (("version", f"{__version__}\n"), ("roots", roots), ("README", README))
    files = [TextFile(name, text, numbers.block("top", name), now_ns) for name, text in texts]
    harnesses = [HarnessDirectory(name, desk, resolver) for name in HARNESSES]
    active = FixedDirectory("active", numbers.block("active"), harnesses)
    return Top(desk, [*files, active])
