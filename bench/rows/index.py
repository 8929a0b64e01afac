"""The index of a transcript, in this process, and the first listing of one that nobody has looked at yet."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson

from agents9core.chat.decoder import ChatDecoder
from agents9core.chat.transcript import Transcripts
from agents9core.files.root import Root
from agents9core.harness.claude import chat as claude_chat
from agents9core.harness.codex import chat as codex_chat
from agents9core.identity import PathNumbers
from agents9core.session import Session, Source
from bench import web
from bench.setting import Bench
from bench.table import at_most, at_most_times
from bench.world import chat, in_turns, served

TITLE = "The index"
NEEDS = ()
_CHUNK_BYTES = 1 << 18


def index(path: Path, read: ChatDecoder, transcripts: Transcripts | None = None) -> int:
    """Index a transcript from the start, or, with *transcripts* that know it, look once more."""
    transcripts = transcripts or Transcripts(PathNumbers())
    source = Source(Root(str(path.parent)), (path.name,))
    return len(transcripts.snapshot(Session("bench", sources=(source,)), read).index)


def reader_of(harness: str) -> ChatDecoder:
    return {"codex": codex_chat, "claude": claude_chat}[harness].read


def loads_every_line(path: Path) -> None:
    """Parse every line, in chunks of the size that the index reads."""
    rest = b""
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                orjson.loads(line)


def scan(path: Path) -> None:
    """Read the file, and find each newline."""
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            at = chunk.find(b"\n")
            while at >= 0:
                at = chunk.find(b"\n", at + 1)


def measure(bench: Bench) -> None:
    for harness, path in (("codex", bench.inputs.rollout), ("claude", bench.inputs.transcript)):
        _cold(bench, harness, path)
    _second_look(bench)


def _cold(bench: Bench, harness: str, path: Path) -> None:
    of = f"cold index, {harness}, {path.stat().st_size / 1e6:.0f} MB"
    runs = bench.runs
    ours, parsed, floor = in_turns(
        runs,
        *(partial(_costs, run) for run in _measures(path, reader_of(harness))),
    )
    _row_of(bench, f"{of}: wall", ours, parsed, 0, "orjson.loads", 0.7)
    _row_of(bench, f"{of}: CPU", ours, parsed, 1, "orjson.loads", 0.7)
    _row_of(bench, f"{of}: wall", ours, floor, 0, "read and scan", 4)
    listing = [_first_listing(bench, harness, path) for _ in range(runs)]
    wall = [cost[0] for cost in parsed]
    bench.row(f"{of}: first listing, HTTP", "s", listing, wall, "orjson.loads", at_most_times(0.9))


def _measures(path: Path, read: ChatDecoder) -> tuple[Callable[[], object], ...]:
    return partial(index, path, read), partial(loads_every_line, path), partial(scan, path)


def _costs(run: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that *run* takes, by the wall clock and by the CPU's."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def _row_of(bench, name, ours, baseline, which, of, limit) -> None:
    """Add a row of the costs *which*: 0 for wall, 1 for CPU."""
    samples = [cost[which] for cost in ours], [cost[which] for cost in baseline]
    bench.row(name, "s", *samples, of, at_most_times(limit))


def _first_listing(bench: Bench, harness: str, path: Path) -> float:
    with bench.world() as world:
        (world.codex if harness == "codex" else world.claude)(7, path)
        with served(world) as server:
            return web.get(server.http, chat(harness, 7)).seconds


def _second_look(bench: Bench) -> None:
    for path in (bench.inputs.small_rollout, bench.inputs.rollout):
        known = Transcripts(PathNumbers())
        index(path, codex_chat.read, known)
        time.sleep(0.05)  # what was written just now is looked at more closely
        ours, fstat = in_turns(
            bench.runs,
            partial(_microseconds, partial(index, path, codex_chat.read, known), bench.size.looks),
            partial(_fstat, path, bench.size.looks),
        )
        name = f"a second look, nothing new, {path.stat().st_size / 1e6:.0f} MB"
        bench.row(name, "µs", ours, fstat, "fstat", at_most(100))


def _microseconds(run: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times * 1e6


def _fstat(path: Path, times: int) -> float:
    fd = os.open(path, os.O_RDONLY)
    try:
        return _microseconds(partial(os.fstat, fd), times)
    finally:
        os.close(fd)
