"""Which of several open sessions a process is in. Pure: what is open goes in, an answer comes out.

codex, omp and dsh use it: a process of each may hold several transcripts or locks open.
"""

from collections.abc import Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

Key = tuple[int, int]
"""(pid, start): a process for as long as it lives."""


_AT_ONCE_NS = 1_000_000_000
"""Threads that were opened so close together were opened by a program, not by a person who changed over."""


class OpenSession(Protocol):
    """A session that a process has open."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def has_file(self) -> bool:
        """Whether it has a transcript already. One that is locked and not open gives way to what is open."""

    @property
    def written_ns(self) -> int:
        """When its transcript was last written, or its lock made."""

    @property
    def opened_ns(self) -> int:
        """When it was opened: its lock is made anew then. 0: there is none."""

    @property
    def turn_ns(self) -> int:
        """When the last turn began in it; 0: none did, or that is not asked."""

    @property
    def touched_ns(self) -> int:
        """When a person last came to it."""


S = TypeVar("S", bound=OpenSession)


class OpenFileSession(NamedTuple):
    """A session of which only the time of its file is known."""

    id: str
    via: str
    written_ns: int
    has_file: bool = False
    opened_ns: int = 0
    turn_ns: int = 0
    touched_ns: int = 0


class OpenThreads(NamedTuple, Generic[S]):
    """What a process has open."""

    by_fd: Mapping[str, S]
    by_lock: Mapping[str, S]
    steps: tuple[str, ...]

    def threads(self) -> dict[str, S]:
        """Return all of them by id; what an open file says goes before what a lock says."""
        return {**self.by_lock, **self.by_fd}


def choose(held: OpenThreads[S]) -> str | None:
    """Return the thread that a process is in. Pure.

    Of several the one that a person came to last: in which the last turn began, or that was opened after
    that. What is locked and has a file, which is not open, gives way to what is.
    """
    unwritten = [thread for thread in held.by_lock.values() if not thread.has_file]
    fresh = [thread for thread in unwritten if thread.id not in held.by_fd]
    threads = [*held.by_fd.values(), *fresh] if held.by_fd else list(held.by_lock.values())
    if not threads:
        return None
    last_ns = max(thread.touched_ns for thread in threads)
    latest = [thread for thread in threads if thread.touched_ns > last_ns - _AT_ONCE_NS]
    return max(latest, key=lambda one: (one.turn_ns, one.opened_ns, one.written_ns, one.id)).id
