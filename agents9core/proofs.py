"""Agents that no name gives away: a process that a harness's own files show to be its.

A listing looks at what the known homes speak of (records, locks), at processes whose names have a harness's
in them, at those that it has not seen before, and at a few of the others in turn: what all have open is too
much to look at each time.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain

from agents9core.harness.base import Prover
from agents9core.harness.programs import is_other
from agents9core.harness.table import HARNESSES
from agents9core.routes.process import Process

Homes = Callable[[str], Iterable[str]]
"""The homes of a harness that are known."""
HomeOf = Callable[[str, Process], str]
"""Where a process of a harness keeps its files."""
_A_TURN = 16


class Proofs:
    """Finds such processes. Not for several threads at once, but for `of`."""

    def __init__(self, provers: Mapping[str, Prover], home_of: HomeOf) -> None:
        self._provers = provers
        self._home_of = home_of
        self._seen: dict[int, tuple[int, bytes | None]] = {}
        """The processes that were examined, by pid: start and layout."""
        self._turn = 0
        self._speaks = re.compile("|".join(map(re.escape, provers))).search
        """Whether a name has a harness's in it."""

    def among(self, processes: list[Process], homes: Homes) -> dict[int, str]:
        """Return the harness of each process that is shown to be one's, by pid."""
        pids = {process.pid for process in processes}
        claimed = {
            name: set(chain.from_iterable(prover.claimed(home, pids) for home in homes(name)))
            for name, prover in self._provers.items()
        }
        found = {}
        for process in self._due(processes, set().union(*claimed.values())):
            names = [
                name for name in self._provers if process.pid in claimed[name] or self._may(name, process)
            ]
            if name := next((name for name in names if self._shows(name, process)), None):
                found[process.pid] = name
        return found

    def of(self, process: Process) -> str | None:
        """Return the harness whose process one is shown to be."""
        return next((name for name in self._provers if self._shows(name, process)), None)

    def _may(self, name: str, process: Process) -> bool:
        return HARNESSES[name].may_show(process, partial(self._home_of, name, process))

    def _shows(self, name: str, process: Process) -> bool:
        if is_other(process.comm) or is_other((process.argv() or ("",))[0]) or is_other(process.exe() or ""):
            return False
        return self._provers[name].proves(process, self._home_of(name, process))

    def _due(self, processes: list[Process], claimed: set[int]) -> list[Process]:
        """Return those that are to be examined now, and note that they were."""
        shapes = {process.pid: (process.start, process.layout) for process in processes}
        wanted = claimed.union(process.pid for process in processes[self._turn : self._turn + _A_TURN])
        self._turn = self._turn + _A_TURN if self._turn + _A_TURN < len(processes) else 0
        seen, self._seen = self._seen, shapes
        return [
            process
            for process in processes
            if process.pid in wanted
            or seen.get(process.pid) != shapes[process.pid]
            or self._speaks(process.comm)
        ]
