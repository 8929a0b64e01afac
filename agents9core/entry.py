"""An agent's directory, or that of one of its threads: what is known of it, and what it says."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

from agents9core.chat import ChatDirectory, TranscriptFile, transcript_stat, version_of
from agents9core.errors import Denied, Gone, NotFound
from agents9core.facts import BY_NAME, LEAVES, Leaf, Look, line
from agents9core.node import Directory, File, Node, Reader, Row, Stat
from agents9core.nodes import TextReader, listing_stat, present
from agents9core.seat import Held, Seat
from agents9core.session import Session
from agents9core.transcript import Visit


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
        return rows + present(directories)

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
        return listing_stat(self._seat.desk.numbers.block("threads", self._seat.key), self.members())

    def walk(self, name: str) -> Node:
        if name not in self._ids():
            raise NotFound(name)
        return SeatDirectory(name, ThreadSeat(self._seat, name))

    def members(self) -> Sequence[Row]:
        return present(SeatDirectory(id_, ThreadSeat(self._seat, id_)) for id_ in self._ids())

    def _ids(self) -> list[str]:
        return [session.id for session in self._seat.session().threads if session.id]
