"""A made machine, its processes and their files under tmp_path, and the real server that looks at it."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

START = 5000
BTIME = 1_795_000_000
SESSION = "0d0f6c1e-1111-4222-8333-944445555666"
THREAD = "01a19bb3-9500-7000-8000-0000000000c1"
STAMP = "2026-11-02T10:00:0{}.000Z"


class Machine:
    """One claude (pid 601) and one codex (pid 611), each with a chat that the test adds to."""

    def __init__(self, base: Path) -> None:
        self.proc = base / "proc"
        self.home = base / "home"
        self.proc.mkdir(parents=True)
        (self.proc / "stat").write_text(f"btime {BTIME}\n")
        (self.proc / "locks").write_text("")
        self.transcript = self.home / ".claude" / "projects" / "-srv-demo" / f"{SESSION}.jsonl"
        self.transcript.parent.mkdir(parents=True)
        day = self.home / ".codex" / "sessions" / "2026" / "11" / "02"
        day.mkdir(parents=True)
        self.rollout = day / f"rollout-2026-11-02T10-00-00-{THREAD}.jsonl"
        self.start(601, "claude")
        self.start(611, "codex")
        self.register(601, SESSION)
        self.says("user", "one")
        self.rolls("session_meta", {"id": THREAD, "cwd": "/srv/demo", "source": "cli"})
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        self.rolls("response_item", item)
        (self.proc / "611" / "fd").mkdir()
        (self.proc / "611" / "fd" / "20").symlink_to(self.rollout)

    def start(self, pid: int, comm: str, start: int = START) -> None:
        directory = self.proc / str(pid)
        directory.mkdir()
        fields = ["S", "1", *["0"] * 17, str(start), *["7"] * 30]
        (directory / "stat").write_text(f"{pid} ({comm}) {' '.join(fields)}\n")
        (directory / "status").write_text(f"Uid:\t{os.getuid()}\t{os.getuid()}\n")
        (directory / "cmdline").write_bytes(comm.encode() + b"\0")
        (directory / "environ").write_bytes(b"HOME=" + os.fsencode(self.home) + b"\0")
        (directory / "cwd").symlink_to("/srv/demo")

    def end(self, pid: int) -> None:
        (self.proc / str(pid)).rename(self.home / f"ended-{pid}")

    def register(self, pid: int, session: str, **more: object) -> None:
        record = {"pid": pid, "sessionId": session, "cwd": "/srv/demo", "procStart": str(START),
                  "version": "2.1.332", "status": "idle", **more}  # fmt: skip
        sessions = self.home / ".claude" / "sessions"
        sessions.mkdir(exist_ok=True)
        (sessions / f"{pid}.json").write_text(json.dumps(record))

    def says(self, role: str, content: object, number: int = 1) -> None:
        """Let the claude say something."""
        self.writes(claude_line(role, content, number))

    def writes(self, text: str) -> None:
        """Add to the claude's transcript."""
        with self.transcript.open("a") as out:
            out.write(text)

    def rolls(self, kind: str, payload: object) -> None:
        """Let the codex write a line."""
        with self.rollout.open("a") as out:
            out.write(json.dumps({"timestamp": STAMP.format(1), "type": kind, "payload": payload}) + "\n")


def claude_line(role: str, content: object, number: int = 1) -> str:
    record = {"type": role, "timestamp": STAMP.format(number), "message": {"role": role, "content": content}}
    return json.dumps(record) + "\n"


class Served:
    """A server that runs, and where."""

    def __init__(self, process: "subprocess.Popen[str]", lines: list[str]) -> None:
        self.process = process
        self.lines = lines
        self.url = lines[0].rstrip("/")
        self.http = int(re.search(r":(\d+)/$", lines[0])[1])
        self.ninep = int(re.search(r":(\d+)$", lines[1])[1])


@contextmanager
def served(machine: Machine, *arguments: str, said: str = ""):
    """Run `agents9 serve` on free ports until the block ends.

    It must then stop by itself, and have written *said* on its standard error and nothing else.
    """
    command = [sys.executable, "-m", "davserver", "serve", "--proc", str(machine.proc)]
    command += ["--http", "127.0.0.1:0", "--9p", "127.0.0.1:0", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Served(process, [process.stdout.readline().strip() for _ in range(2)])
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        written = process.stderr.read()
    if (process.returncode, written) != (0, said):
        raise AssertionError(f"status {process.returncode}, said {written!r}")


def get(url: str, *options: str) -> str:
    """Return what curl prints; a failure of its own raises."""
    return subprocess.run(
        ["curl", "-sS", *options, url], capture_output=True, text=True, check=True, timeout=60
    ).stdout
