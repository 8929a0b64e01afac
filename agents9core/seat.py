"""Where a chat hangs in the tree: something that is in a session now, and can tell when it has ended.

A node below an agent holds its seat and nothing else of it: each operation asks the seat again, so a
recycled pid, a `/clear` or an ended process is noticed wherever the node was kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from agents9core.errors import Gone, Malformed, NotFound
from agents9core.identity import PathNumbers
from agents9core.record import Read
from agents9core.session import Session
from agents9core.transcript import Transcript, Transcripts, Visit


@dataclass(frozen=True, slots=True)
class Reading:
    """How the transcripts of a harness are read."""

    read: Read
    titles: tuple[str, ...] = ()
    """The facts that may be the title, the best first."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What every seat of one server shares."""

    numbers: PathNumbers
    transcripts: Transcripts


class Seat(ABC):
    """A place in the tree that holds a session."""

    desk: Desk
    reading: Reading | None
    """None where the harness's transcripts are not read."""
    key: tuple[object, ...]
    """Its identity."""
    started_ns: int
    """When its process started; 0 where it has none."""

    @abstractmethod
    def session(self) -> Session:
        """Return the session that is held now. Raises Gone when the seat itself has ended."""

    def cwd(self, session: Session) -> str | None:
        """Return the directory that the session works in; None where that is not known."""
        return session.cwd

    @contextmanager
    def visit(self, scan: bool = True) -> Iterator[Visit | None]:
        """Open the session's transcript; None where there is none yet, or no plain file.

        *scan*: bring the index up to date too. Raises Gone, Denied, Unavailable.
        """
        session = self.session()
        read = self.reading.read if scan and self.reading else None
        visit = None
        with ExitStack() as stack:
            if session.sources:
                with suppress(NotFound, Malformed):
                    visit = stack.enter_context(
                        self.desk.transcripts.visit(session.sources, read, session.missing_base)
                    )
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
