"""Which of its threads a process is in. Pure: what is open goes in, an answer comes out.

A process may hold several threads of its own (`choose`: not only codex's), and the terminal interfaces of
codex 0.171 hold none: their threads live in a daemon that all of a home share, and nothing links the two. See
the routes in docs/DESIGN.md. What is said depends on nothing that was seen earlier, so a server that was just
started says the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agents9core.harness.codex.store import Rollout, RolloutHeader
from agents9core.routes.choice import Key
from agents9core.routes.uuid7 import born_ms

_TUI_ORIGINATOR = "codex-tui"


class Thread(NamedTuple):
    """A thread that a process has open, no subagent's."""

    id: str
    via: str
    written_ns: int
    """When its rollout was last written, or its lock made."""
    rollout: Rollout | None = None
    """None before the first prompt: a thread is locked when it starts, its file is made later."""
    header: RolloutHeader | None = None
    opened_ns: int = 0
    """When it was opened, started or resumed: its lock is made anew. 0: there is none."""
    turn_ns: int = 0
    """When the last turn began in it; 0: none did, or that is not asked."""

    @property
    def has_file(self) -> bool:
        """Whether its rollout is there already."""
        return self.rollout is not None

    @property
    def touched_ns(self) -> int:
        """When a person last came to it."""
        return max(self.opened_ns, self.turn_ns)


class Tui(NamedTuple):
    """A terminal interface that has no thread of its own."""

    key: Key
    started_ms: int
    directory: str | None
    """Where it works; None: unknown."""
    resumes: str | None
    """The thread that its command line names."""
    picks: bool = False
    """Whether it may be in no thread yet: it was started to pick one from a list."""


def assign(tuis: list[Tui], threads: Iterable[Thread]) -> dict[Key, str]:
    """Give the daemon's threads to the TUIs that they can only belong to. Pure.

    Nothing on disk or in the process table links the two. A thread that a command line names is that TUI's;
    else it must have the TUI's directory, be a TUI's, and have been opened after this one started. Of those
    that can be no other TUI's a TUI is in the one opened last, where nothing newer may be its as well. A TUI
    with one possible thread has that. Where a turn began in one after another was opened, both were in use at
    one time: one is an ended TUI's. What fits several belongs to none: no answer is better than a wrong one.

    A thread without a file has no directory yet, and may be anybody's; a TUI may be given it.
    """
    threads = list(threads)
    named = {tui.resumes for tui in tuis}
    possible = {
        tui.key: [
            one for one in threads if one.id == tui.resumes or (one.id not in named and _fits(tui, one))
        ]
        for tui in tuis
    }
    given: dict[Key, str] = {}
    while True:
        taken = set(given.values())
        found = {
            tui.key: thread
            for tui in tuis
            if tui.key not in given
            and (free := [thread for thread in possible[tui.key] if thread.id not in taken])
            and (thread := _only_possible(tui, free, possible))
        }
        wanted = Counter(found.values())
        sure = {key: id for key, id in found.items() if wanted[id] == 1}
        if not sure:
            return given
        given |= sure


def _only_possible(tui: Tui, free: list[Thread], possible: Mapping[Key, list[Thread]]) -> str | None:
    """Return the thread that a TUI is in if it is in one of these; None: that is not certain."""
    newest = max(free, key=lambda thread: (_opened_ms(tui, thread), thread.id))
    others = (one.id for key, threads in possible.items() if key != tui.key for one in threads)
    alone = newest.id not in others
    certain = tui.directory is not None or newest.id == tui.resumes
    certain &= not any(one.turn_ns > newest.opened_ns > one.opened_ns for one in free)
    return newest.id if certain and (alone or (len(free) == 1 and not tui.picks)) else None


def why_none(tui: Tui, tuis: list[Tui], threads: Iterable[Thread], given: Mapping[Key, str]) -> str:
    """Return why a TUI has none of the daemon's threads. Pure."""
    fitting = [thread for thread in threads if _fits(tui, thread)]
    free = [thread for thread in fitting if thread.id not in given.values()]
    rivals = sum(any(_fits(other, thread) for thread in free) for other in tuis)
    if tui.key in given:
        return "the thread that it opened last has no file yet"
    if not fitting:
        return f"none was opened in {tui.directory} by a TUI after this one started"
    if not free:
        return "those that fit are other TUIs'"
    if len(free) > rivals == 1:
        return f"{len(free)} of them fit, and one may be that of a TUI that has left"
    return f"{len(free)} of them and {rivals} TUIs fit each other, and cannot be told apart"


def _fits(tui: Tui, thread: Thread) -> bool:
    """Return whether a thread may be a TUI's; one of which the directory is unknown may be in any."""
    header = thread.header
    if _opened_ms(tui, thread) < tui.started_ms:
        return False
    if header is None or (tui.directory is None and header.originator == _TUI_ORIGINATOR):
        return True
    return header.originator == _TUI_ORIGINATOR and header.cwd is not None and header.cwd == tui.directory


def _opened_ms(tui: Tui, thread: Thread) -> int:
    """Return when a thread was opened; without a lock when it was born. What a TUI names it has opened."""
    opened = thread.opened_ns // 1_000_000 or born_ms(thread.id) or 0
    return max(opened, tui.started_ms) if thread.id == tui.resumes else opened
