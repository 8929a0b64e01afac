"""A machine with one codex on it, and the server that looks at it."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from bench.inputs import THREAD

PID = 4343
CHAT = f"/active/codex/{PID}/chat/"


def make_machine(base: Path, rollout: Path) -> Path:
    """Make a process table in which a codex holds *rollout* open, and return it."""
    home = base / "codex"
    day = home / "sessions" / "2026" / "11" / "02"
    day.mkdir(parents=True)
    place = day / f"rollout-2026-11-02T10-00-00-{THREAD}.jsonl"
    rollout.rename(place)
    process = base / "proc" / str(PID)
    (process / "fd").mkdir(parents=True)
    fields = ["S", "1", *["0"] * 17, "1000", *["1"] * 30]
    (process / "stat").write_text(f"{PID} (codex) {' '.join(fields)}\n")
    (process / "status").write_text(f"Uid:\t{os.getuid()}\n")
    (process / "cmdline").write_bytes(b"codex\0")
    (process / "environ").write_bytes(b"CODEX_HOME=" + os.fsencode(home) + b"\0")
    (process / "fd" / "20").symlink_to(place)
    return base / "proc"


@contextmanager
def served(proc: Path):
    """Serve a machine; give the server's pid and the ports of its doors."""
    command = [sys.executable, "-m", "davserver", "serve", "--proc", str(proc)]
    command += ["--http", "127.0.0.1:0", "--9p", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        http = int(re.search(r":(\d+)/", server.stdout.readline())[1])
        ninep = int(re.search(r":(\d+)$", server.stdout.readline())[1])
        yield server.pid, http, ninep
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def memory_mib(pid: int, which: str) -> float:
    """Return a process's memory: VmRSS now, VmHWM at its highest."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+)", status)[1]) / 1024


def timed(run) -> float:
    """Return the seconds that *run* takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
