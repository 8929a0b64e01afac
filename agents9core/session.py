"""One answer of the resolver: which session an agent is in, and the files of its transcript.

Pure data. The next answer may be another session (`/clear`, `/resume`, `/new`).
"""

from typing import NamedTuple

from agents9core.files.root import Root
from agents9core.files.rows import RowSource


class Source(NamedTuple):
    """One file of a transcript: a path below a pinned root, and how much of it counts."""

    root: Root
    path: tuple[str, ...]
    limit: int | None = None
    """Bytes from the start that belong to the transcript; None for the file that grows."""
    rows: RowSource | None = None
    """Which rows of the database that the file is; None: it is no database."""

    @property
    def compressed(self) -> bool:
        """Whether the file must be inflated first (`agents9core.files.zstd`); its *limit* counts inflated
        bytes."""
        return self.path[-1].endswith(".zst")

    @property
    def framed(self) -> bool:
        """Whether the file grows by compressed frames (`agents9core.files.frames`)."""
        return self.path[-1].endswith(".zstd")


class Session(NamedTuple):
    """The session that an agent is in. None or an empty field: not known, or there is none."""

    via: str
    """The route that answered: registry, fd, lock, daemon, none ..."""
    id: str | None = None
    cwd: str | None = None
    """From the harness's own record; the process's working directory takes precedence."""
    sources: tuple[Source, ...] = ()
    """The files of the transcript in order: what was forked from first, the one that grows last."""
    missing_base: str | None = None
    """The id of a rollout that the transcript begins with and that cannot be found."""
    chain: str | None = None
    """The side chain that it is of a transcript in whose file others stand too; None: all of it is its."""
    unreadable: str | None = None
    """Why its transcript is not read into messages, where that is so."""
    title: str | None = None
    """Only where the harness keeps it outside the transcript."""
    model: str | None = None
    """Only where the transcript is not read into messages."""
    name: str | None = None
    status: str | None = None
    """idle, busy or waiting, where the harness publishes it."""
    waitingfor: str | None = None
    version: str | None = None
    started_ns: int = 0
    """When it began, from its own record; 0: not asked."""
    record_mtime_ns: int = 0
    """When the harness's own record of these fields was last written; 0 where there is none."""
    threads: tuple["Session", ...] = ()
    """Every thread of its own that the process has open, where it has several."""
    steps: tuple[str, ...] = ()
    """What each route saw, a line each, for `agents9 doctor`."""


def side_chain(session: Session, begins: str) -> Session:
    """Return the subagent of a session that is a side chain in its transcript."""
    return Session("subagent", id=begins, sources=session.sources, chain=begins)
