"""Machines with agents on them, the server that looks at one, and what a process costs."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.inputs import CWD, SESSION, THREAD

_START = "5000"
_TOP = Path(__file__).parent.parent
_BTIME = 1_780_000_000


class World:
    """A process table and the files of its agents below *base*."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.proc = base / "proc"
        self.proc.mkdir(parents=True)
        (self.proc / "stat").write_text(f"btime {_BTIME}\n")
        (self.proc / "locks").write_text("")

    def codex(self, pid: int, source: Path, *, grows: bool = False) -> Path:
        """Let a codex hold *source* open, or a copy of its own that *grows*; return where it stands."""
        home = self.base / f"home-{pid}"
        place = home / f"sessions/2026/11/02/rollout-2026-11-02T10-00-00-{THREAD}.jsonl"
        _put(source, place, grows)
        process = self._process(pid, "codex", f"CODEX_HOME={home}")
        (process / "fd").mkdir()
        (process / "fd" / "20").symlink_to(place)
        return place

    def claude(self, pid: int, source: Path, *, grows: bool = False) -> Path:
        """Let a claude be in the session of *source*; as `codex`."""
        home = self.base / f"home-{pid}"
        place = home / f".claude/projects/-srv-bench/{SESSION}.jsonl"
        _put(source, place, grows)
        self._process(pid, "claude", f"HOME={home}")
        record = {"pid": pid, "sessionId": SESSION, "cwd": CWD, "procStart": _START, "status": "idle"}
        sessions = home / ".claude" / "sessions"
        sessions.mkdir()
        (sessions / f"{pid}.json").write_text(json.dumps(record))
        return place

    def bystander(self, pid: int) -> None:
        """Let a process run that is no agent."""
        self._process(pid, "bash", "")

    def _process(self, pid: int, comm: str, environ: str) -> Path:
        process = self.proc / str(pid)
        process.mkdir()
        layout = [str(pid * 1000 + field) for field in range(23, 53)]  # where its memory lies, and the like
        fields = ["S", "1", *["0"] * 17, _START, *layout]
        (process / "stat").write_text(f"{pid} ({comm}) {' '.join(fields)}\n")
        (process / "comm").write_text(f"{comm}\n")
        (process / "status").write_text(f"Uid:\t{os.getuid()}\t{os.getuid()}\n")
        (process / "cmdline").write_bytes(comm.encode() + b"\0")
        (process / "environ").write_bytes(environ.encode() + b"\0")
        (process / "cwd").symlink_to(CWD)
        return process


def _put(source: Path, place: Path, grows: bool) -> None:
    place.parent.mkdir(parents=True)
    if grows:
        shutil.copyfile(source, place)
    else:
        os.link(source, place)


def chat(harness: str, pid: int) -> str:
    """Return the path of a chat."""
    return f"/active/{harness}/{pid}/chat/"


class Server(NamedTuple):
    """A server that runs."""

    pid: int
    http: int
    ninep: int
    seconds: float
    """How long it took until both front ends listened."""


@contextmanager
def served(world: World, *arguments: str, python: Path | str = sys.executable) -> Iterator[Server]:
    """Serve a machine until the block ends."""
    command = [str(python), "-m", "davserver", "serve", "--proc", str(world.proc)]
    command += ["--http", "127.0.0.1:0", "--9p", "127.0.0.1:0", *arguments]
    began = time.perf_counter()
    with running(command, stdout=subprocess.PIPE, text=True, cwd=_TOP) as process:
        ports = [int(re.search(r":(\d+)/?$", process.stdout.readline())[1]) for _ in range(2)]
        yield Server(process.pid, *ports, time.perf_counter() - began)


@contextmanager
def running(command: list[str], **options: object) -> Iterator[subprocess.Popen]:
    """Run a program until the block ends."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def memory_mib(pid: int, which: str = "VmRSS") -> float:
    """Return a process's memory: VmRSS now, VmHWM at its highest since `reset_peak`."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+)", status)[1]) / 1024


def reset_peak(pid: int) -> float:
    """Let the highest memory be that of now, and return it."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return memory_mib(pid, "VmHWM")


def peak_over_idle(pid: int, run: Callable[[], object]) -> float:
    """Return by how many MiB a process grew at most while *run* ran."""
    idle = reset_peak(pid)
    run()
    return memory_mib(pid, "VmHWM") - idle


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, by its clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def timed(run: Callable[[], object]) -> float:
    """Return the seconds that *run* takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def in_turns(runs: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Take *runs* samples of each, in turns, so that what disturbs one disturbs the other."""
    samples: list[list[float]] = [[] for _ in measures]
    for _ in range(runs):
        for measure, taken in zip(measures, samples, strict=True):
            taken.append(measure())
    return samples
