"""A handle: what a node holds of a session, instead of the session itself.

Each operation asks the handle again for the session of now, so that a recycled pid, a `/clear` or an ended
process is noticed however old the node is.
"""

import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from agents9core.chat.decoder import ChatFormat
from agents9core.chat.transcript import Transcript, TranscriptSnapshot
from agents9core.errors import Gone, Malformed, NotFound, Unreadable
from agents9core.session import Session
from agents9core.tree.context import TreeContext

MAX_REQUEST_SNAPSHOTS = 8
"""Snapshots that a request keeps open. It needs one; a listing of many agents must not hold all their
files."""


class SessionHandle(ABC):
    """A place in the tree that holds a session."""

    context: TreeContext
    chat_format: ChatFormat | None
    """None where the harness's transcripts are not read."""
    key: tuple[object, ...]
    """Its identity."""
    started_ns: int
    """When its process started; 0 where it has none."""
    shows: frozenset[str]
    """The members that its directory may have."""
    _last: tuple[float, Callable[[], TranscriptSnapshot | None]] = (0.0, lambda: None)
    """The last snapshot, while somebody else holds it, and until when it may be given again if nothing
    moved."""

    @abstractmethod
    def session(self) -> Session:
        """Return the session that is held now. Raises Gone when the handle itself has ended."""

    def reusable_until(self) -> float:
        """Return until when `session` would answer the same again, by `time.monotonic`; 0: unknown."""
        return 0.0

    def subagents(self, chains: Iterable[str]) -> "Mapping[str, SessionHandle]":
        """Return the handles of the subagents that the session has started, by name. Raises Gone.

        *chains*: the side chains in its transcript, which are subagents too.
        """
        return {}

    def threads(self) -> "Mapping[str, SessionHandle]":
        """Return the handles of the threads that the process has open, by id. Raises Gone."""
        return {}

    def has_ended(self) -> bool:
        """Whether no process writes the session's transcript."""
        return False

    def cwd(self, session: Session) -> str | None:
        """Return the directory that the session works in; None where that is not known."""
        return session.cwd

    def snapshot(self, scan: bool = True) -> TranscriptSnapshot | None:
        """Open the session's transcript; None where there is none yet, or no plain file.

        *scan*: bring the index up to date too. A snapshot that this request has made already is given again.
        Raises Gone, Denied, Unavailable.
        """
        snapshots = self.context.request.snapshots
        if snapshots is None:
            until, last = self._last
            snapshot = last() if time.monotonic() < until else None
            has_it = snapshot is not None and (snapshot.index is not None or not scan)
            return snapshot if snapshot and has_it and snapshot.is_current() else self.fresh_snapshot(scan)
        snapshot = snapshots.get(self.key)
        if snapshot is None or (scan and snapshot.index is None):
            snapshot = self.fresh_snapshot(scan)
            if snapshot is not None and (len(snapshots) < MAX_REQUEST_SNAPSHOTS or self.key in snapshots):
                snapshots[self.key] = snapshot
        return snapshot

    def fresh_snapshot(self, scan: bool) -> TranscriptSnapshot | None:
        """Open the session's transcript as `snapshot` does, whatever was opened before."""
        until, session = self.reusable_until(), self.session()
        if not session.sources:
            return None
        if scan and session.unreadable is not None:
            raise Unreadable(session.unreadable)
        read = self.chat_format.read if scan and self.chat_format else None
        try:
            snapshot = self.context.transcripts.snapshot(session, read, self.has_ended)
        except (NotFound, Malformed):
            return None
        self._last = (min(until, snapshot.until), weakref.ref(snapshot))
        return snapshot


class Children(Mapping[str, SessionHandle]):
    """Handles by name, each made when it is asked for: one of hundreds costs no more than one of few."""

    def __init__(self, names: Mapping[str, object], make: Callable[[str], SessionHandle]) -> None:
        self._names = names
        self._make = make

    def __getitem__(self, name: str) -> SessionHandle:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class PinnedTranscript(NamedTuple):
    """A handle's transcript as a node knew it: the same one, of the same generation, or Gone."""

    handle: SessionHandle
    transcript: Transcript
    generation: int

    def snapshot(self, scan: bool = True) -> TranscriptSnapshot:
        """Open the transcript, if it is still the same. Raises Gone, Denied, Unavailable."""
        snapshot = self.handle.snapshot(scan)
        if (
            snapshot is None
            or snapshot.transcript is not self.transcript
            or snapshot.generation != self.generation
        ):
            raise Gone("the transcript is another one now")
        return snapshot
