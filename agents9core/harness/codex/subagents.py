"""codex's subagents: the threads whose parent is this thread, and the parents of theirs.

They are threads of the same home with rollouts of their own; the first record of each names its parent. A
subagent's subagent is listed with it, once. Names are what codex calls them, made unique in the order in
which the threads were born; one that was given stays.
"""

import re
import time
from collections.abc import Iterable

from agents9core.harness.codex.store import Rollout, RolloutHeader, Rollouts, first_day
from agents9core.routes.uuid7 import born_ms
from agents9core.session import Session

_ODD = re.compile("[^A-Za-z0-9_.-]")
_LONGEST_NAME = 64


class Families:
    """The threads of a home that other threads have started. May be used from several threads.

    One look serves all that ask about threads that are not older, for some time: a walk through thousands of
    sessions must not read thousands of names for each.
    """

    def __init__(self, rollouts: Rollouts) -> None:
        self.rollouts = rollouts
        self._looked: tuple[float, str, dict[str, tuple[Rollout, RolloutHeader]]] = (float("-inf"), "", {})

    def since(self, thread: str, seconds: float) -> dict[str, tuple[Rollout, RolloutHeader]]:
        """Return the newest file of each thread with a parent that was made since *thread*.

        *seconds*: how old the answer may be.
        """
        looked, first, files = self._looked
        asked, day = time.monotonic(), first_day(thread)
        if asked - looked > seconds or day < first:
            files = self._newest_files(thread)
            self._looked = (asked, day, files)
        return {child: file for child, file in files.items() if file[0].is_since(day)}

    def _newest_files(self, thread: str) -> dict[str, tuple[Rollout, RolloutHeader]]:
        found: dict[str, tuple[Rollout, RolloutHeader]] = {}
        for rollout in self.rollouts.since(thread):
            header = self.rollouts.first_header(rollout)
            if header is None or header.parent is None:
                continue
            known = found.get(header.thread)
            if known is None or known[0].age < rollout.age:
                found[header.thread] = (rollout, header)
        return found


def subagents(families: Families, thread: str, names: dict[str, str], seconds: float) -> dict[str, Session]:
    """Return the subagents of a thread by name, also those of its subagents.

    *names* has the names that were given before, by thread; new ones are added. *seconds*: how old the look
    at the files may be.
    """
    files = families.since(thread, seconds)
    found: dict[str, Session] = {}
    for child in _descendants(thread, files):
        rollout, header = files[child]
        sources, missing = families.rollouts.chain(rollout, header)
        if child not in names:
            names[child] = _unique(_plain_name(header.nickname, child), set(names.values()))
        session = Session("subagent", id=child, cwd=header.cwd, sources=sources, missing_base=missing)
        found[names[child]] = session
    return found


def _descendants(thread: str, files: dict[str, tuple[Rollout, RolloutHeader]]) -> Iterable[str]:
    """Return the threads below *thread*, in the order in which they were born."""
    children: dict[str, list[str]] = {}
    for child, (_, header) in files.items():
        children.setdefault(header.parent or "", []).append(child)
    family = {thread}
    waiting = [thread]
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in family]
        family.update(new)
        waiting += new
    return sorted(family - {thread}, key=lambda id: (born_ms(id) or 0, files[id][0].when, id))


def _plain_name(nickname: str | None, thread: str) -> str:
    name = _ODD.sub("-", nickname or "")[:_LONGEST_NAME]
    return thread if name in ("", ".", "..") else name


def _unique(name: str, taken: set[str]) -> str:
    number = 1
    unique = name
    while unique in taken:
        number += 1
        unique = f"{name}-{number}"
    return unique
