"""A minute of work: transcripts that grow while readers follow them over both front ends."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bench import client9p, web
from bench.inputs import claude_said, codex_said
from bench.setting import Bench
from bench.table import at_most
from bench.world import chat, memory_mib, served

TITLE = "Growing transcripts with readers"
NEEDS = ()
_TRANSCRIPTS = 8
_LINES_A_SECOND = 50
_HTTP_READERS = 10
_9P_READERS = 4
_PAUSE_SECONDS = 0.02
_TICK_SECONDS = 0.1
_SETTLED = 1 / 3
"""The part of the time after which memory is to be flat."""
_FLAT_MIB = 8


class Seen(NamedTuple):
    """What a reader met."""

    waits: list[float]
    errors: list[str]
    lines: int


def measure(bench: Bench) -> None:
    runs = [_run(bench) for _ in range(bench.runs)]
    of = f"{_TRANSCRIPTS} growing, {_HTTP_READERS} + {_9P_READERS} readers, {bench.size.seconds:.0f} s"
    bench.row(f"{of}: p99 of a GET", "ms", [run["http"] for run in runs], target=at_most(100))
    bench.row(f"{of}: p99 of a 9P read of a message", "ms", [run["9p"] for run in runs], target=at_most(100))
    bench.row(f"{of}: errors", "", [run["errors"] for run in runs], target=at_most(0))
    bench.row(
        f"{of}: memory more at the end", "MiB", [run["memory"] for run in runs], target=at_most(_FLAT_MIB)
    )
    written = [run["written"] for run in runs]
    bench.row(f"{of}: messages read by each", "", [run["read"] for run in runs], written, "written")


def _run(bench: Bench) -> dict[str, float]:
    with bench.world() as world:
        files = {}
        for number in range(_TRANSCRIPTS):
            harness = ("codex", "claude")[number % 2]
            source = bench.inputs.small_rollout if harness == "codex" else bench.inputs.small_transcript
            files[chat(harness, 10 + number)] = getattr(world, harness)(10 + number, source, grows=True)
        with served(world) as server:
            counts = {path: len(web.Client(server.http).names(path)) for path in files}
            readers = _HTTP_READERS + _9P_READERS
            with ProcessPoolExecutor(readers + 1, mp_context=get_context("fork")) as pool:
                return _load(pool, bench.size.seconds, server, files, counts)


def _load(pool, seconds, server, files: dict[str, Path], counts: dict[str, int]) -> dict[str, float]:
    until = time.monotonic() + seconds
    paths = list(files)
    writing = pool.submit(write, files, until)

    def follow(reader: Callable[..., Seen], port: int, number: int) -> "Future[Seen]":
        path = paths[number % len(paths)]
        return pool.submit(reader, port, path, counts[path], until)

    over_http = [follow(read_http, server.http, number) for number in range(_HTTP_READERS)]
    over_9p = [follow(read_9p, server.ninep, number) for number in range(_9P_READERS)]
    time.sleep(seconds * _SETTLED)
    settled = memory_mib(server.pid)
    http, ninep = ([one.result() for one in readers] for readers in (over_http, over_9p))
    written = writing.result()
    errors = [error for seen in (*http, *ninep) for error in seen.errors]
    for error in errors[:3]:
        print("   ", error)
    return {
        "http": _p99_ms(http),
        "9p": _p99_ms(ninep),
        "errors": len(errors),
        "memory": memory_mib(server.pid) - settled,
        "read": min(seen.lines for seen in (*http, *ninep)),
        "written": written,
    }


def _p99_ms(readers: list[Seen]) -> float:
    waits = sorted(wait for seen in readers for wait in seen.waits)
    return waits[int(0.99 * len(waits))] * 1e3


def write(files: dict[str, Path], until: float) -> int:
    """Let each file grow until then; return how many lines each has more."""
    lines = 0
    began = time.monotonic()
    while (now := time.monotonic()) < until:
        due = int((now - began) * _LINES_A_SECOND)
        for path, file in files.items():
            said = codex_said if "/codex/" in path else claude_said
            with file.open("ab") as out:
                out.write(
                    b"".join(said(number, f"Line {number} is written.") for number in range(lines, due))
                )
        lines = due
        time.sleep(_TICK_SECONDS)
    return lines


def read_http(port: int, path: str, count: int, until: float) -> Seen:
    """Read each message that comes, as a page would: what is new, then each of it."""
    client = web.Client(port)
    seen = Seen([], [], 0)
    last = count - 1
    lines = 0
    while time.monotonic() < until:
        try:
            for row in client.after(path, last):
                start = time.perf_counter()
                client.get(str(row["href"]))
                seen.waits.append(time.perf_counter() - start)
                last = int(row["id"])
                lines += 1
        except OSError as error:
            seen.errors.append(repr(error))
            client = web.Client(port)
        time.sleep(_PAUSE_SECONDS)
    return seen._replace(lines=lines)


def read_9p(port: int, path: str, count: int, until: float) -> Seen:
    """Read each message that comes; its name is known before."""
    client = client9p.Client(port)
    client.walk(1, path.strip("/"))
    seen = Seen([], [], 0)
    lines = 0
    while time.monotonic() < until:
        name = f"{count + lines:08d}-assistant"
        try:
            while client.has(1, name):
                start = time.perf_counter()
                client.walk(2, name, 1)
                client.open(2)
                client.read(2, 0, 1 << 16)
                client.clunk(2)
                seen.waits.append(time.perf_counter() - start)
                lines += 1
                name = f"{count + lines:08d}-assistant"
        except OSError as error:
            seen.errors.append(repr(error))
        time.sleep(_PAUSE_SECONDS)
    return seen._replace(lines=lines)
