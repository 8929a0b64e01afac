"""Where a chat hangs in the tree: something that is in a session now, and can tell when it has ended.

A node below an agent holds its seat and nothing else of it: each operation asks the seat again, so a
recycled pid, a `/clear` or an ended process is noticed wherever the node was kept.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass

from agents9core.errors import Gone, Malformed, NotFound
from agents9core.identity import PathNumbers
from agents9core.record import Read
from agents9core.session import Session
from agents9core.transcript import Transcript, Transcripts, Visit
from agents9core.watching import Watching

VISITS_KEPT = 8
"""Visits that a request keeps open. It needs one; a listing of many agents must not hold all their files."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the transcripts of a harness are read."""

    read: Read
    titles: tuple[str, ...] = ()
    """The facts that may be the title, the best first."""


class Desk:
    """What every seat of one server shares."""

    def __init__(self, numbers: PathNumbers, transcripts: Transcripts) -> None:
        self.numbers = numbers
        self.transcripts = transcripts
        self.watching = Watching()
        self._request = _Request()

    @contextmanager
    def one_request(self) -> Iterator[None]:
        """Keep each visit until the end, and answer the next one to the same seat from it."""
        with ExitStack() as stack:
            self._request.stack, self._request.visits = stack, {}
            try:
                yield
            finally:
                self._request.stack = None

    def visit(self, seat: "Seat", scan: bool) -> AbstractContextManager[Visit | None]:
        """Visit a seat, or give the visit that this request has made already."""
        stack, visits = self._request.stack, self._request.visits
        known = visits.get(seat.key) if stack else None
        if known is None or (scan and known.index is None):
            if stack is None or len(visits) >= VISITS_KEPT:
                return seat.look(scan)
            known = stack.enter_context(seat.look(scan))
            if known is not None:
                visits[seat.key] = known
        return nullcontext(known)


class _Request(threading.local):
    """The request that a thread is answering; no stack: it is in none."""

    def __init__(self) -> None:
        self.stack: ExitStack | None = None
        self.visits: dict[tuple[object, ...], Visit] = {}


class Seat(ABC):
    """A place in the tree that holds a session."""

    desk: Desk
    reading: Reading | None
    """None where the harness's transcripts are not read."""
    key: tuple[object, ...]
    """Its identity."""
    started_ns: int
    """When its process started; 0 where it has none."""
    shows: frozenset[str]
    """The members that its directory may have."""

    @abstractmethod
    def session(self) -> Session:
        """Return the session that is held now. Raises Gone when the seat itself has ended."""

    def subagents(self, chains: Iterable[str]) -> "Mapping[str, Seat]":
        """Return the seats of the subagents that the session has started, by name. Raises Gone.

        *chains*: the side chains in its transcript, which are subagents too.
        """
        return {}

    def threads(self) -> "Mapping[str, Seat]":
        """Return the seats of the threads that the process has open, by id. Raises Gone."""
        return {}

    def has_ended(self) -> bool:
        """Whether no process writes the session's transcript."""
        return False

    def cwd(self, session: Session) -> str | None:
        """Return the directory that the session works in; None where that is not known."""
        return session.cwd

    def visit(self, scan: bool = True) -> AbstractContextManager[Visit | None]:
        """Open the session's transcript; None where there is none yet, or no plain file.

        *scan*: bring the index up to date too. Raises Gone, Denied, Unavailable.
        """
        return self.desk.visit(self, scan)

    @contextmanager
    def look(self, scan: bool) -> Iterator[Visit | None]:
        """Open the session's transcript as `visit` does, whatever was looked at before."""
        session = self.session()
        read = self.reading.read if scan and self.reading else None
        visit = None
        with ExitStack() as stack:
            if session.sources:
                with suppress(NotFound, Malformed):
                    visit = stack.enter_context(self.desk.transcripts.visit(session, read, self.has_ended))
            yield visit


@dataclass(frozen=True, slots=True)
class Held:
    """A seat's transcript as a node knew it: the same one, of the same generation, or Gone."""

    seat: Seat
    transcript: Transcript
    generation: int

    @contextmanager
    def visit(self, scan: bool = True) -> Iterator[Visit]:
        """Open the transcript, if it is still the same. Raises Gone, Denied, Unavailable."""
        with self.seat.visit(scan) as visit:
            if (
                visit is None
                or visit.transcript is not self.transcript
                or visit.generation != self.generation
            ):
                raise Gone("the transcript is another one now")
            yield visit
