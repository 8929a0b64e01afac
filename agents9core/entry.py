"""An agent's directory, or that of one of its threads: what is known of it, and what it says."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import msgspec

from agents9core.chat import ChatDirectory, TranscriptFile, version_of
from agents9core.chat_markdown import MarkdownFile
from agents9core.errors import Denied, Gone, NotFound, Unavailable
from agents9core.facts import BY_NAME, LEAVES, Leaf, Look, line
from agents9core.node import Directory, File, Node, Reader, Row, Stat
from agents9core.nodes import TextReader, listing_stat, present
from agents9core.seat import PinnedTranscript, Reading, Seat
from agents9core.session import Session
from agents9core.transcript import TranscriptSnapshot

AGENT = frozenset({leaf.name for leaf in LEAVES} | {"transcript", "chat", "chat.md", "agents", "threads"})
THREAD = frozenset({"title", "cwd", "status", "transcript", "chat", "chat.md"})
SUBAGENT = frozenset({"model", "transcript", "chat", "chat.md"})
KEPT = frozenset({"title", "cwd", "model", "started", "transcript", "chat", "chat.md", "agents"})
"""What the directory of each kind of seat may have."""


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
        seen = glance(self._seat, scan=self._leaf.in_transcript)
        shown = self._leaf.show(seen.look)
        if shown is None:
            raise Gone(self.name)
        text = line(shown)
        return seen.fact_stat(self._number, self._leaf, text), text


class Glance(msgspec.Struct, frozen=True, dict=True):
    """One look at a seat, for its listing and its facts."""

    seat: Seat
    look: Look
    snapshot: TranscriptSnapshot | None
    scan: bool
    """Whether it was to read what is new in the transcript."""

    @cached_property
    def number(self) -> int:
        """Block of path numbers of the seat's directory; its facts are leaves of it."""
        return self.seat.desk.numbers.block("entry", self.seat.key)

    @property
    def held(self) -> PinnedTranscript | None:
        """The seat's transcript, for a node to hold."""
        return (
            PinnedTranscript(self.seat, self.snapshot.transcript, self.snapshot.generation)
            if self.snapshot
            else None
        )

    def must_hold(self) -> PinnedTranscript:
        """Return the seat's transcript. Raises Gone where there is none."""
        if self.held is None:
            raise Gone("there is no transcript")
        return self.held

    @cached_property
    def subagents(self) -> Mapping[str, Seat]:
        """The seats of the session's subagents by name; of the side chains those that are indexed.

        Raises Unavailable with *scan*; without, none of them is known then.
        """
        index = self.snapshot.transcript.index if self.snapshot else None
        try:
            return self.seat.subagents(tuple(index.chains) if index is not None else ())
        except Unavailable:
            if self.scan:
                raise
            return {}

    @cached_property
    def record_ns(self) -> int:
        """When the harness's record last moved; never before the process began."""
        return max(self.look.session.record_mtime_ns, self.look.started_ns)

    @cached_property
    def transcript_ns(self) -> int:
        """When the transcript or the record last moved."""
        written = self.snapshot.stat.mtime_ns if self.snapshot else self.record_ns
        return max(written, self.record_ns)

    def fact_stat(self, number: int, leaf: Leaf, text: bytes) -> Stat:
        """Return what a fact's file looks like; its version moves with its text."""
        moved_ns = self.transcript_ns if leaf.in_transcript else self.record_ns
        return Stat(self.number + number, version_of(text), False, len(text), moved_ns)

    def has(self, name: str) -> bool:
        """Whether a member applies."""
        if name not in self.seat.shows:
            return False
        if name in BY_NAME:
            return BY_NAME[name][1].show(self.look) is not None
        return bool(_BRANCHES[name].applies(self))

    def names(self) -> list[str]:
        """Return the members that apply, in the order of the tables."""
        return [name for name in (*BY_NAME, *_BRANCHES) if self.has(name)]

    def stat(self) -> Stat:
        """Return what the seat's directory looks like."""
        index = self.snapshot.transcript.index if self.snapshot else None
        newest_ns = max(self.transcript_ns, index.newest_ns if index else 0)
        version = version_of(self.names(), self.snapshot.number if self.snapshot else 0)
        return Stat(self.number, version, True, 0, newest_ns)


def glance(seat: Seat, scan: bool) -> Glance:
    """Look at a seat. Without *scan* the facts are those that an index happens to hold, and a transcript that
    cannot be read, or is a stale handle, costs nobody the listing that the seat is in. Raises Gone; with
    *scan* Unavailable too.
    """
    session = seat.session()
    titles = seat.reading.titles if seat.reading else ()
    try:
        snapshot = seat.snapshot(scan and session.unreadable is None)
    except (Denied, Gone, Unavailable) as error:
        if scan and not isinstance(error, Denied):
            raise
        snapshot = None
    indexes = (snapshot.index, snapshot.transcript.index) if snapshot else ()
    facts = next((index.facts for index in indexes if index is not None), {})
    look = Look(session, partial(seat.cwd, session), seat.started_ns, facts, titles)
    return Glance(seat, look, snapshot, scan)


class SeatDirectory(Directory):
    """An agent, or one of its threads: what is known of it, and what it says."""

    def __init__(self, name: str, seat: Seat) -> None:
        self.name = name
        self._seat = seat

    def stat(self) -> Stat:
        return glance(self._seat, scan=False).stat()

    def walk(self, name: str) -> Node:
        seen = glance(self._seat, scan=_asks_transcript(name))
        if not seen.has(name):
            raise NotFound(name)
        return FactFile(name, self._seat) if name in BY_NAME else _BRANCHES[name].make(seen)

    def members(self) -> Sequence[Row]:
        seen = glance(self._seat, scan=True)
        rows = [
            Row(name, seen.fact_stat(number, leaf, line(shown)))
            for name, (number, leaf) in BY_NAME.items()
            if name in self._seat.shows and (shown := leaf.show(seen.look)) is not None
        ]
        branches = [branch.make(seen) for name, branch in _BRANCHES.items() if seen.has(name)]
        return rows + present(branches)

    def media_type_of(self, name: str) -> str:
        return _MEDIA_TYPES.get(name) or super().media_type_of(name)


_MEDIA_TYPES = {"transcript": TranscriptFile.media_type, "chat.md": MarkdownFile.media_type}


def _asks_transcript(name: str) -> bool:
    """Whether a member of a seat is made from what its transcript says."""
    return name in ("chat", "chat.md", "agents") or (name in BY_NAME and BY_NAME[name][1].in_transcript)


class ChildSeat(Seat):
    """A thread or a subagent of another seat: one of the sessions that *find* gives, by name."""

    def __init__(
        self,
        parent: Seat,
        kind: str,
        name: str,
        id_: str | None,
        find: Callable[[], Mapping[str, Session]],
        reading: Reading | None,
        shows: frozenset[str],
    ) -> None:
        """*kind*: the directory that it is listed in; *id_*: the session that its name stands for."""
        self.desk = parent.desk
        self.reading = reading
        self.key = (*parent.key, kind, name, id_)
        self.started_ns = parent.started_ns
        self.shows = shows
        self._parent = parent
        self._name = name
        self._id = id_
        self._find = find

    def has_ended(self) -> bool:
        return self._parent.has_ended()

    def session(self) -> Session:
        session = self._find().get(self._name)
        if session is None or session.id != self._id:
            raise Gone(self._name)
        return session


class SeatsDirectory(Directory):
    """`threads/` or `agents/`: a directory for each child of a seat."""

    def __init__(self, name: str, seat: Seat, seats: Callable[[], Mapping[str, Seat]]) -> None:
        self.name = name
        self._seat = seat
        self._seats = seats

    def stat(self) -> Stat:
        return listing_stat(self._seat.desk.numbers.block(self.name, self._seat.key), self.members())

    def walk(self, name: str) -> Node:
        seat = self._seats().get(name)
        if seat is None:
            raise NotFound(name)
        return SeatDirectory(name, seat)

    def members(self) -> Sequence[Row]:
        return present(SeatDirectory(name, seat) for name, seat in self._seats().items())


class _Branch(NamedTuple):
    """A member of a seat that is no fact."""

    applies: Callable[[Glance], object]
    make: Callable[[Glance], Node]


def _subagents(seat: Seat) -> Mapping[str, Seat]:
    return glance(seat, scan=True).subagents


def _has_markdown(seen: Glance) -> bool:
    index = seen.snapshot.transcript.index if seen.snapshot else None
    is_read = seen.snapshot is not None and seen.seat.reading is not None
    return is_read and seen.look.session.unreadable is None and not (index and index.overflowed)


_BRANCHES = {
    "transcript": _Branch(
        lambda seen: seen.snapshot and seen.snapshot.is_file, lambda seen: TranscriptFile(seen.must_hold())
    ),
    "chat": _Branch(
        lambda seen: seen.look.session.id is not None and seen.seat.reading is not None,
        lambda seen: ChatDirectory(seen.seat, seen.held, seen.look.session.id),
    ),
    "chat.md": _Branch(_has_markdown, lambda seen: MarkdownFile(seen.must_hold())),
    "agents": _Branch(
        lambda seen: seen.subagents,
        lambda seen: SeatsDirectory("agents", seen.seat, partial(_subagents, seen.seat)),
    ),
    "threads": _Branch(
        lambda seen: seen.look.session.threads,
        lambda seen: SeatsDirectory("threads", seen.seat, seen.seat.threads),
    ),
}
