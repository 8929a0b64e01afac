"""Which of its threads a process is in. Pure: what is open goes in, an answer comes out.

A process may hold several threads of its own (`choose`: not only codex's), and the terminal interfaces of
codex 0.171 hold none: their threads live in a daemon that all of a home share, and nothing links the two. See
the ladder in docs/DESIGN.md.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from agents9core.harness.rollout import Header, Rollout, born_ms

Key = tuple[int, int]
"""(pid, start): a process for as long as it lives."""

_TUI_ORIGINATOR = "codex-tui"


class Thread(NamedTuple):
    """A thread that a process has open, no subagent's."""

    id: str
    via: str
    written_ns: int
    """When its rollout was last written, or its lock made."""
    rollout: Rollout | None = None
    """None before the first prompt: a thread is locked when it starts, its file is made later."""
    header: Header | None = None


class Choice(NamedTuple):
    """Which of its threads a process was found in, and which it had then."""

    thread: str
    known: frozenset[str]


class Held(NamedTuple):
    """What a process has open."""

    by_fd: Mapping[str, Thread]
    by_lock: Mapping[str, Thread]
    steps: tuple[str, ...]

    def threads(self) -> dict[str, Thread]:
        """Return all of them by id; what an open file says goes before what a lock says."""
        return {**self.by_lock, **self.by_fd}


def choose(before: Choice | None, held: Held) -> Choice | None:
    """Return the thread that a process is in: see the module's ladder. Pure.

    Of several the one written last; then it stays, until another is opened (then that one) or it is closed.
    """
    threads = held.threads()
    opened = [thread for id, thread in threads.items() if before and id not in before.known]
    if opened:
        chosen = _written_last(opened)
    elif before and before.thread in threads:
        chosen = before.thread
    else:
        chosen = _written_last((held.by_fd or held.by_lock).values())
    return Choice(chosen, frozenset(threads)) if chosen else None


def _written_last(threads: Iterable[Thread]) -> str:
    last = max(threads, key=lambda thread: (thread.written_ns, thread.id), default=None)
    return last.id if last else ""


class Tui(NamedTuple):
    """A terminal interface that has no thread of its own."""

    key: Key
    started_ms: int
    directory: str | None
    """Where it works; None: unknown."""
    resumes: str | None
    """The thread that its command line names."""
    starts_new: bool
    """Whether its first thread is born after it: it was not started to resume one."""


def assign(
    tuis: list[Tui],
    threads: Iterable[Thread],
    before: Mapping[Key, Choice],
    doubted: Mapping[str, Iterable[Tui]] = MappingProxyType({}),
) -> dict[Key, Choice]:
    """Give the daemon's threads to the TUIs that they can only belong to. Pure.

    Nothing on disk or in the process table links the two. A thread named on the command line is a TUI's;
    else it must have the TUI's directory, have been started by a TUI, and after this one. What another TUI
    has or had is out, and what fits several is nobody's: no answer is better than a wrong one. *doubted*
    (see `doubts`) are those that a thread fitted earlier: of one that has ended it may still be.

    A TUI that had one may have left it, where a new one came that fits it and cannot be told from another's.
    """
    threads = list(threads)
    written = {thread.id: thread for thread in threads if thread.header is not None}
    unwritten = [born_ms(thread.id) or 0 for thread in threads if thread.header is None]
    here = {tui.key for tui in tuis}
    had = {choice.thread for key, choice in before.items() if key not in here}
    ended = {id: [tui for tui in doubted.get(id, ()) if tui.key not in here] for id in written}
    rivals = {id: [*tuis, *ended[id]] for id in written}
    given: dict[Key, str] = {}
    for tui in sorted(tuis, key=lambda tui: (tui.key not in before, tui.key[1])):
        claimed = _claimed(tui, written, before.get(tui.key))
        if claimed and claimed not in given.values():
            given[tui.key] = claimed
    free = {id: thread for id, thread in written.items() if id not in had and id not in given.values()}
    for tui in tuis:
        if tui.key in given and tui.key in before:
            _follow(tui, rivals, free, before[tui.key], given)
    while sure := _only_possible([tui for tui in tuis if tui.key not in given], ended, free, unwritten):
        given |= sure
        free = {id: thread for id, thread in free.items() if id not in given.values()}
    if unsure := _may_have_left([tui for tui in tuis if tui.key in given], rivals, free, before):
        kept = {key: choice for key, choice in before.items() if key not in unsure}
        return assign(tuis, threads, kept, doubted)
    return {key: Choice(id, frozenset(written)) for key, id in given.items()}


def doubts(
    tuis: list[Tui],
    threads: Iterable[Thread],
    given: Mapping[Key, Choice],
    before: Mapping[str, frozenset[Tui]],
) -> dict[str, frozenset[Tui]]:
    """Return the TUIs without an answer that each thread that is nobody's fits, or fitted *before*. Pure.

    One that has ended counts as long as the thread lives: else it would be given to the one that is left.
    """
    has = {choice.thread for choice in given.values()}
    without = [tui for tui in tuis if tui.key not in given]
    found = {
        thread.id: before.get(thread.id, frozenset())
        | {tui for tui in without if thread.id not in has and _fits(tui, thread)}
        for thread in threads
    }
    return {id: fitting for id, fitting in found.items() if fitting}


def why_none(tui: Tui, tuis: list[Tui], threads: Iterable[Thread], given: Mapping[Key, Choice]) -> str:
    """Say why a TUI has none of the daemon's threads. Pure."""
    threads = list(threads)
    has = {choice.thread for choice in given.values()}
    fitting = [thread for thread in threads if _fits(tui, thread)]
    free = [thread for thread in fitting if thread.id not in has]
    rivals = sum(any(_fits(other, thread) for thread in free) for other in tuis)
    if not fitting:
        return f"none was started in {tui.directory} by a TUI after this one"
    if not free:
        return "those that fit are other TUIs'"
    if _may_be_unwritten(tui, [born_ms(thread.id) or 0 for thread in threads if thread.header is None]):
        return f"{len(free)} of them fit, and one without a file may be its as well"
    if len(free) == rivals == 1:
        return "one fits, and may be that of a TUI that has left"
    return f"{len(free)} of them and {rivals} TUIs fit each other, and cannot be told apart"


def _claimed(tui: Tui, written: Mapping[str, Thread], before: Choice | None) -> str | None:
    """Return the thread that a TUI had at the last look, else the one that its command line names."""
    for id in (before.thread if before else None, tui.resumes):
        if id is not None and id in written and (id == tui.resumes or _fits(tui, written[id])):
            return id
    return None


def _fits(tui: Tui, thread: Thread) -> bool:
    header, born = thread.header, born_ms(thread.id)
    return (
        header is not None
        and header.originator == _TUI_ORIGINATOR
        and header.cwd is not None
        and header.cwd == tui.directory
        and born is not None
        and born >= tui.started_ms
    )


def _follow(
    tui: Tui,
    rivals: Mapping[str, list[Tui]],
    free: dict[str, Thread],
    before: Choice,
    given: dict[Key, str],
) -> None:
    """Move a TUI to the youngest thread that came since and that no other TUI could have started (`/new`)."""
    opened = [
        id
        for id, thread in free.items()
        if id not in before.known and _fits(tui, thread) and not _fits_another(tui, rivals[id], thread)
    ]
    if opened:
        given[tui.key] = max(opened, key=lambda id: (born_ms(id) or 0, id))
        for id in opened:
            del free[id]


def _may_have_left(
    tuis: list[Tui], rivals: Mapping[str, list[Tui]], free: Mapping[str, Thread], before: Mapping[Key, Choice]
) -> set[Key]:
    """Return the TUIs that had a thread and may have started a new one, which may be another's as well."""
    return {
        tui.key
        for tui in tuis
        for id, thread in free.items()
        if tui.key in before
        and id not in before[tui.key].known
        and _fits(tui, thread)
        and _fits_another(tui, rivals[id], thread)
    }


def _fits_another(tui: Tui, tuis: Iterable[Tui], thread: Thread) -> bool:
    return any(_fits(other, thread) for other in tuis if other.key != tui.key)


def _may_be_unwritten(tui: Tui, unwritten: list[int]) -> bool:
    """Say whether a TUI may be in a thread without a file yet: then a written one may be another's."""
    return any(born >= tui.started_ms for born in unwritten)


def _only_possible(
    waiting: list[Tui], ended: Mapping[str, list[Tui]], free: Mapping[str, Thread], unwritten: list[int]
) -> dict[Key, str]:
    """Return the TUIs that have one possible thread each, where it is not another's only one too.

    Nor may it be that of one that has *ended*.
    """
    found: dict[Key, str] = {}
    for tui in waiting:
        fitting = [thread for thread in free.values() if tui.starts_new and _fits(tui, thread)]
        if len(fitting) != 1 or _may_be_unwritten(tui, unwritten):
            continue
        if not _fits_another(tui, ended[fitting[0].id], fitting[0]):
            found[tui.key] = fitting[0].id
    wanted = Counter(found.values())
    return {key: id for key, id in found.items() if wanted[id] == 1}
