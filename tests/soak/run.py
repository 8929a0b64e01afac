"""Runs the story and its readers against a server of its own, and watches what the server takes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from tests.soak.readers import Http, NineP, Reader
from tests.soak.story import Story

TOP = Path(__file__).parents[2]
HTTP_CLIENTS, NINEP_CLIENTS = 16, 8
LOOK_SECONDS = 0.5
GROWTH_BYTES = 32 << 20
GROWTH_DESCRIPTORS = 16
"""What the last quarter may have, in the median, over the second: a leak makes more in some minutes."""
SHOWN = 20


@dataclass
class Report:
    """What came of it."""

    seconds: float
    counts: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    absent: int = 0
    checked_names: int = 0
    checked_bytes: int = 0
    took: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    said: str = ""
    status: int | None = None

    def faults(self) -> list[str]:
        """Return all that was not as it should be."""
        found = list(self.wrong)
        if self._grew(self.memory) > GROWTH_BYTES:
            found.append(f"memory grew by {self._grew(self.memory) >> 20} MiB")
        if self._grew(self.descriptors) > GROWTH_DESCRIPTORS:
            found.append(f"{self._grew(self.descriptors)} descriptors more")
        if self.said or self.status:
            found.append(f"status {self.status}, said {self.said[:2000]!r}")
        return found

    @staticmethod
    def _grew(looks: list[int]) -> int:
        _, second, _, last = quarters(looks)
        return int(last - second)

    def __str__(self) -> str:
        lines = [
            f"{self.seconds:.0f} s: " + ", ".join(f"{count} {what}" for what, count in self.counts.items()),
            f"{self.requests} requests, {self.absent} of them rightly of what was not there: "
            f"{self.checked_names} names and {self.checked_bytes >> 20} MiB checked",
        ]
        for front_end, took in self.took.items():
            took = sorted(took)
            p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
            lines.append(
                f"{front_end}: p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, max {took[-1] * 1e3:.0f} ms"
            )
        mebibytes = [look >> 20 for look in self.memory]
        for what, looks in (("MiB", mebibytes), ("descriptors", self.descriptors)):
            by_quarter = " ".join(f"{value:.0f}" for value in quarters(looks))
            lines.append(f"{what}: {by_quarter} by quarters of the time, {max(looks)} at most")
        faults = self.faults()
        lines += [f"{len(faults)} faults", *faults[:SHOWN]]
        return "\n".join(lines)


def quarters(looks: list[int]) -> list[float]:
    """Return the median of each quarter of the time."""
    size = max(1, len(looks) // 4)
    return [median(looks[at : at + size]) for at in range(0, 4 * size, size)]


def soak(base: Path, seconds: float, seed: int = 9) -> Report:
    """Let agents talk and clients ask for some seconds; return what came of it."""
    report = Report(seconds)
    story = Story(base / "machine", seed)
    with server(story, base / "stderr") as (process, http, ninep):
        enough = threading.Event()
        readers = [
            Reader(
                story, partial(Http, http) if number < HTTP_CLIENTS else partial(NineP, ninep), number, enough
            )
            for number in range(HTTP_CLIENTS + NINEP_CLIENTS)
        ]
        story.start()
        for reader in readers:
            reader.start()
        watch(process.pid, seconds, report)
        enough.set()
        for reader in readers:
            reader.join()
        story.stop()
    report.status = process.returncode
    report.said = (base / "stderr").read_text()
    gather(report, story, readers)
    return report


@contextmanager
def server(story: Story, stderr: Path) -> Iterator[tuple["subprocess.Popen[str]", int, int]]:
    """Serve the story's machine until the block ends."""
    command = [sys.executable, "-m", "davserver", "serve", "--proc", str(story.proc)]
    command += ["--http", "127.0.0.1:0", "--9p", "127.0.0.1:0"]
    environ = {**os.environ, "HOME": str(story.home)}
    with (
        stderr.open("wb") as said,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True, cwd=TOP, env=environ
        ) as process,
    ):
        try:
            lines = [process.stdout.readline().strip().rstrip("/") for _ in range(2)]
            http, ninep = (int(line.rpartition(":")[2]) for line in lines)
            yield process, http, ninep
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        finally:
            process.kill()


def watch(pid: int, seconds: float, report: Report) -> None:
    """Look at the server's memory and descriptors until the time is up, or it has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        report.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
        report.descriptors.append(len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(LOOK_SECONDS)


def gather(report: Report, story: Story, readers: list[Reader]) -> None:
    """Add up what the readers saw."""
    if story.failure:
        raise story.failure
    report.counts = story.counts
    for reader in readers:
        front_end = "HTTP" if int(reader.name.rpartition("-")[2]) < HTTP_CLIENTS else "9P"
        report.took.setdefault(front_end, []).extend(reader.took)
        report.requests += len(reader.took)
        report.absent += reader.absent
        report.checked_names += reader.checked_names
        report.checked_bytes += reader.checked_bytes
        report.wrong += [f"{front_end}: {what}" for what in reader.wrong]
