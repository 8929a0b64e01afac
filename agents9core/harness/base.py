"""What the rest of the tree asks of a harness.

Which processes are its, where its files are, which session each is in.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from agents9core.chat.decoder import ChatDecoder, ChatFormat
from agents9core.routes.process import Process, ProcessTable
from agents9core.session import Session, Source


class Finder(Protocol):
    """What one server remembers of a harness's sessions. May be used from several threads."""

    def resolve(
        self, process: Process, home: str, siblings: Callable[[], Iterable[tuple[Process, str]]]
    ) -> Session | None:
        """Return the session of a process; None where the process is not to be listed at all.

        *siblings* gives the harness's processes of now, each with its home. Never raises for what is on disk.
        """

    def subagents(self, session: Session) -> Mapping[str, Session]:
        """Return the subagents that a session has started, by a name that never changes."""

    def stored(self, home: str) -> Mapping[str, Source]:
        """Return the sessions stored in a home by their ids, each with the file that grew last.

        No subagent's.
        """

    def stored_session(self, home: str, id: str) -> Session | None:
        """Return a session stored in a home; None where it keeps none of this id. *id* may be anything."""


@runtime_checkable
class Prover(Protocol):
    """A finder that knows processes by what the harness's files show, whatever they are called."""

    def proves(self, process: Process, home: str) -> bool:
        """Return whether what a home holds, or the process has open there, shows that it is the harness's."""

    def claimed(self, home: str, pids: Collection[int]) -> Collection[int]:
        """Return of which processes `proves` may say so, by one scan of a home."""


def _matches_none(_process: Process) -> bool:
    return False


def _shows_nothing(_process: Process, _home: Callable[[], str]) -> bool:
    return False


def _writes_none(_process: Process, _home: str) -> bool:
    return False


def _only_home(_process: Process, home: str) -> tuple[str, ...]:
    return (home,)


class NoFinder:
    """The finder of a harness whose sessions are not found."""

    def __init__(self, _table: ProcessTable) -> None: ...

    def resolve(self, process: Process, home: str, siblings: object) -> Session | None:
        return Session(via="none")

    def subagents(self, session: Session) -> Mapping[str, Session]:
        return {}

    def stored(self, home: str) -> Mapping[str, Source]:
        return {}

    def stored_session(self, home: str, id: str) -> None:
        return None


class Harness(NamedTuple):
    """One kind of coding agent."""

    name: str
    variable: str | None
    """The environment variable that moves its home."""
    home: str
    """Where its home is below $HOME, unless that is set."""
    matches: Callable[[Process], bool] = _matches_none
    """Whether a process is one. Reads its argv and exe, no more."""
    finder: Callable[[ProcessTable], Finder] = NoFinder
    writes_below: Callable[[Process, str], bool] = _writes_none
    """Whether a process has a transcript below a home open for writing: then that one is its home."""
    may_show: Callable[[Process, Callable[[], str]], bool] = _shows_nothing
    """Whether a process may be shown to be one by what it has open, or by its home: a quick look."""
    chat_format: ChatFormat | None = None
    """How its transcripts are read; None: they are not."""
    subagent_format: ChatFormat | None = None
    """How the transcripts of its subagents are read."""
    side_chain: Callable[[str], ChatDecoder] | None = None
    """How a side chain in a session's own file is read, by what its first record is called."""
    stores: tuple[tuple[str, ...], ...] = ()
    """The directories below its home that hold transcripts and nothing else: what is mirrored."""
    store_files: tuple[str, ...] = ()
    """What the files in *stores* are called, by their paths there: `*` is anything, also several names."""
    skills: tuple[tuple[str, ...], ...] = ()
    """The directories below its home that hold its own skills, a directory each."""
    homes: Callable[[Process, str], tuple[str, ...]] = _only_home
    """Where *stores* and *skills* of a process are, by its home: where it keeps its sessions first."""
