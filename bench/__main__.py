"""Run every row and print it: ours, the baseline of the same run, the ratio."""

import http.client
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import orjson

from agents9core.harness import codex_chat
from agents9core.identity import PathNumbers
from agents9core.session import Source
from agents9core.store import Root
from agents9core.transcript import Transcripts
from bench import inputs, ninep, world

RUNS = 5
PROPERTIES = ("getcontentlength", "getlastmodified", "creationdate", "getetag", "resourcetype", "executable")
PROPFIND = (
    '<?xml version="1.0"?><propfind xmlns="DAV:"><prop>'
    + "".join(f"<{name}/>" for name in PROPERTIES)
    + "</prop></propfind>"
)
_INDEX_ONCE = """
import resource, sys
from bench.__main__ import index
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
index(sys.argv[1])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def index(path: str, transcripts: Transcripts | None = None) -> int:
    """Index a rollout from the start, or, with *transcripts* that know it, look once more."""
    transcripts = transcripts or Transcripts(PathNumbers())
    source = Source(Root(os.path.dirname(path)), (os.path.basename(path),))
    with transcripts.visit((source,), codex_chat.read) as visit:
        return len(visit.index)


def loads_every_line(path: str) -> None:
    """Parse every line, in chunks of the size that the index reads."""
    rest = b""
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(1 << 20):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                orjson.loads(line)


def row(name: str, ours: float, unit: str, baseline: float | None = None, of: str = "") -> None:
    """Print one row."""
    ratio = f"{ours / baseline:8.2f} x {of} ({baseline:.4g} {unit})" if baseline else ""
    print(f"{name:44} {ours:10.4g} {unit:6}{ratio}", flush=True)


def several(run) -> float:
    """Return the median of RUNS timings."""
    return median(world.timed(run) for _ in range(RUNS))


def index_rows(path: str) -> None:
    """Measure the index alone, in this process."""
    cold, parsed = [], []
    for _ in range(RUNS):
        cold.append(world.timed(lambda: index(path)))
        parsed.append(world.timed(lambda: loads_every_line(path)))
    row(
        f"cold index of {os.path.getsize(path) / 1e6:.0f} MB",
        median(cold),
        "s",
        median(parsed),
        "orjson.loads",
    )
    known = Transcripts(PathNumbers())
    index(path, known)
    time.sleep(0.05)
    looks = 1000
    second = several(lambda: [index(path, known) for _ in range(looks)]) / looks
    row("second look, nothing new", second * 1e6, "µs")
    peak = subprocess.run(
        [sys.executable, "-c", _INDEX_ONCE, path], capture_output=True, text=True, check=True
    ).stdout
    row("peak memory of a cold index, over idle", float(peak), "MiB")


def http_rows(pid: int, port: int) -> None:
    """Measure the HTTP door."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(method: str, path: str, body: str | None = None, **headers: str) -> bytes:
        client.request(method, path, body, headers)
        return client.getresponse().read()

    first = world.timed(lambda: ask("GET", world.CHAT))
    row("first listing over HTTP, cold", first, "s")
    listing = several(lambda: ask("PROPFIND", world.CHAT, PROPFIND, Depth="1"))
    row(f"PROPFIND of {inputs.MESSAGES} messages", listing, "s")
    as_json = several(lambda: ask("GET", world.CHAT, Accept="application/json"))
    row(f"JSON listing of {inputs.MESSAGES} messages", as_json, "s", listing, "PROPFIND")
    names = ask("GET", world.CHAT).decode().split()
    gets = names[:: len(names) // 2000][:2000]
    spent = several(lambda: [ask("GET", world.CHAT + name) for name in gets])
    row("GET of messages, one connection", len(gets) / spent, "/s")
    row("memory of the server, now", world.memory_mib(pid, "VmRSS"), "MiB")
    row("memory of the server, at its highest", world.memory_mib(pid, "VmHWM"), "MiB")


def ninep_rows(port: int, names: list[str]) -> None:
    """Measure the 9P door."""
    path = world.CHAT.strip("/").split("/")
    for depth in (1, 32):
        rate = median(ninep.looks_per_second(port, path, names, depth) for _ in range(RUNS))
        row(f"9P walk+getattr+clunk, {depth} at once", rate, "/s")


def main() -> None:
    """Make the input, measure all rows."""
    with tempfile.TemporaryDirectory(prefix="agents9-bench-") as name:
        base = Path(name)
        rollout = base / "rollout.jsonl"
        inputs.codex_rollout(rollout)
        index_rows(str(rollout))
        proc = world.make_machine(base, rollout)
        with world.served(proc) as (pid, http_port, ninep_port):
            http_rows(pid, http_port)
            client = http.client.HTTPConnection("127.0.0.1", http_port)
            client.request("GET", world.CHAT)
            names = client.getresponse().read().decode().split()[:2000]
            ninep_rows(ninep_port, names)


if __name__ == "__main__":
    main()
