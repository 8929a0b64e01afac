"""What a look at the whole process table costs: 10,000 processes, 20 of them agents."""

import gc
import os
import time
from collections.abc import Callable
from functools import partial

from agents9core.resolver import Resolver
from bench.setting import Bench
from bench.table import at_most_times
from bench.world import World

TITLE = "Scanning the processes"
NEEDS = ()
_AGENTS = 20
_BARE = "open and read stat and comm of each"


def measure(bench: Bench) -> None:
    count = bench.size.processes
    with bench.world() as world:
        for pid in range(1, _AGENTS + 1):
            world.codex(pid, bench.inputs.small_rollout)
        for pid in range(1000, 1000 + count):
            world.bystander(pid)
        firsts, laters, bare = [], [], []
        for _ in range(bench.runs):
            resolver = Resolver(str(world.proc))
            bare.append(_milliseconds(partial(_read_each, world)))
            firsts.append(_milliseconds(partial(_agents, resolver)))
            laters.append(_milliseconds(partial(_agents, resolver)))
    bench.row(f"first scan of {count} processes", "ms", firsts, bare, _BARE, at_most_times(2))
    bench.row("a later one", "ms", laters, bare, _BARE, at_most_times(2))


def _agents(resolver: Resolver) -> None:
    if len(resolver.agents("codex")) != _AGENTS:
        raise AssertionError("not all agents were found")


def _read_each(world: World) -> None:
    for name in os.listdir(world.proc):
        if name.isdigit():
            for file in ("stat", "comm"):
                with open(f"{world.proc}/{name}/{file}", "rb") as opened:
                    opened.read()


def _milliseconds(look: Callable[[], None]) -> float:
    """Return what a look costs in CPU time."""
    gc.collect()
    began = time.process_time()
    look()
    return (time.process_time() - began) * 1e3
