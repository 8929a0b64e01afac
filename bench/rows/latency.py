"""How soon 100 new lines are seen by one who looks every 20 ms, and what that costs the server."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from bench import client9p, web
from bench.inputs import codex_said
from bench.setting import Bench
from bench.table import at_most, at_most_times
from bench.world import Server, chat, cpu_seconds, served

TITLE = "Appended lines"
NEEDS = ()
_LINES = 100
_POLL_SECONDS = 0.02
_PID = 7
_CHAT = chat("codex", _PID)
_GIVE_UP_SECONDS = 10


def measure(bench: Bench) -> None:
    trials = max(3, bench.size.looks // 100)
    costs: dict[tuple[str, str], list[float]] = {}
    for size, path in (("small", bench.inputs.small_rollout), ("big", bench.inputs.rollout)):
        with bench.world() as world:
            rollout = world.codex(_PID, path, grows=True)
            with served(world) as server:
                for via, looker in (("HTTP", _OverHttp), ("9P", _Over9p)):
                    seen = looker(server)
                    runs = [_appends(server, rollout, seen, trials) for _ in range(bench.runs)]
                    costs[size, via] = [cost for _, cost in runs]
                    name = (
                        f"{_LINES} lines more, {path.stat().st_size / 1e6:.0f} MB: all seen over {via}, p99"
                    )
                    bench.row(name, "ms", [p99 for p99, _ in runs], target=at_most(100))
    for via in ("HTTP", "9P"):
        name = f"{_LINES} lines more: the server's CPU until seen over {via}, big file"
        bench.row(name, "ms", costs["big", via], costs["small", via], "small file", at_most_times(1.25))


class _OverHttp:
    """Asks for what came after the last message."""

    def __init__(self, server: Server) -> None:
        self._client = web.Client(server.http)
        self.count = len(self._client.names(_CHAT))

    def has(self, count: int) -> bool:
        return len(self._client.after(_CHAT, self.count - 1)) == count - self.count


class _Over9p:
    """Walks to the message that will be the last."""

    def __init__(self, server: Server) -> None:
        self._client = client9p.Client(server.ninep)
        self._client.walk(1, _CHAT.strip("/"))
        self.count = len(web.Client(server.http).names(_CHAT))

    def has(self, count: int) -> bool:
        return self._client.has(1, f"{count - 1:08d}-assistant")


def _appends(server: Server, rollout: Path, looker: _OverHttp | _Over9p, trials: int) -> tuple[float, float]:
    """Return the 99th percentile of the milliseconds until seen, and the server's CPU a time."""
    dice = random.Random(20)
    before = cpu_seconds(server.pid)
    waits = sorted(_append(rollout, looker, dice.uniform(0, _POLL_SECONDS)) for _ in range(trials))
    return waits[int(0.99 * len(waits))] * 1e3, (cpu_seconds(server.pid) - before) / trials * 1e3


def _append(rollout: Path, looker: _OverHttp | _Over9p, phase: float) -> float:
    """Write lines, look at first *phase* later, and return when they were all there."""
    lines = b"".join(codex_said(number) for number in range(_LINES))
    with rollout.open("ab") as out:
        out.write(lines)
    written = time.perf_counter()
    wanted = looker.count + _LINES
    seen = _poll(lambda: looker.has(wanted), written + phase)
    looker.count = wanted
    return seen - written


def _poll(look: Callable[[], bool], at: float) -> float:
    deadline = at + _GIVE_UP_SECONDS
    while at < deadline:
        time.sleep(max(0.0, at - time.perf_counter()))
        if look():
            return time.perf_counter()
        at += _POLL_SECONDS
    raise TimeoutError("new lines are never seen")
