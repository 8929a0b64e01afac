"""A made agent that talks, for those who have none running: `make demo`.

It makes a home and a process table in a temporary directory, serves them with the arguments that it is
given (those of `agents9 serve`), and lets its claude say something every second until the server ends.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

PID = 4242
SESSION = str(uuid.uuid4())
CWD = "/srv/demo"
START_TICKS = "1000"
TURNS = [
    ("user", "Which files are here?"),
    ("assistant", {"type": "thinking", "thinking": "One look at the directory will tell."}),
    ("assistant", {"type": "text", "text": "I look."}),
    ("assistant", {"type": "tool_use", "id": "call", "name": "Bash", "input": {"command": "ls -l"}}),
    ("result", "total 4\n-rw-r--r-- 1 u u 12 Nov  2 10:00 hello.txt"),
    ("assistant", {"type": "text", "text": "There is one file, **hello.txt**, of 12 bytes."}),
]


def make_process_table(proc: Path, home: Path) -> None:
    """Write what /proc would show of one claude."""
    directory = proc / str(PID)
    directory.mkdir(parents=True)
    fields = ["S", "1", *["0"] * 17, START_TICKS, *["7"] * 30]
    (proc / "stat").write_text(f"btime {int(time.time()) - 60}\n")
    (directory / "stat").write_text(f"{PID} (claude) {' '.join(fields)}\n")
    (directory / "comm").write_text("claude\n")
    (directory / "status").write_text(f"Name:\tclaude\nUid:\t{os.getuid()}\t{os.getuid()}\n")
    (directory / "cmdline").write_bytes(b"claude\0")
    (directory / "environ").write_bytes(b"HOME=" + os.fsencode(home) + b"\0")
    (directory / "cwd").symlink_to(CWD)


def write_record(home: Path, status: str) -> None:
    """Write what a claude says of itself."""
    sessions = home / ".claude" / "sessions"
    sessions.mkdir(parents=True, exist_ok=True)
    record = {
        "pid": PID, "sessionId": SESSION, "cwd": CWD, "procStart": START_TICKS, "version": "2.1.332",
        "startedAt": int(time.time() * 1000), "name": "demo", "status": status,
    }  # fmt: skip
    (sessions / f"{PID}.json").write_text(json.dumps(record))


def line(role: str, said: object) -> str:
    """Return one record of a transcript."""
    if role == "result":
        content: object = [{"type": "tool_result", "tool_use_id": "call", "content": said}]
    else:
        content = said if isinstance(said, str) else [said]
    record = {
        "type": "assistant" if role == "assistant" else "user",
        "uuid": str(uuid.uuid4()), "sessionId": SESSION, "cwd": CWD, "isSidechain": False,
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "message": {"role": role, "model": "made-up", "content": content},
    }  # fmt: skip
    return json.dumps(record) + "\n"


def main() -> int:
    """Serve a talking agent until interrupted or terminated; return the server's exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT is ignored where a shell began it with &
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="agents9-demo-") as name:
        proc, home = Path(name, "proc"), Path(name, "home")
        make_process_table(proc, home)
        write_record(home, "idle")
        project = home / ".claude" / "projects" / "-srv-demo"
        project.mkdir(parents=True)
        command = [sys.executable, "-m", "davserver", "serve", "--proc", str(proc), *sys.argv[1:]]
        with subprocess.Popen(command) as server, (project / f"{SESSION}.jsonl").open("a") as transcript:
            try:
                talk(server, home, transcript)
            except KeyboardInterrupt:
                server.terminate()
            return server.returncode


def talk(server: "subprocess.Popen[bytes]", home: Path, transcript: object) -> None:
    """Say the turns over and over while the server runs."""
    for role, said in itertools.cycle(TURNS):
        write_record(home, "idle" if role == "user" else "busy")
        print(line(role, said), end="", file=transcript, flush=True)  # type: ignore[call-overload]
        try:
            server.wait(1)
        except subprocess.TimeoutExpired:
            continue
        return


if __name__ == "__main__":
    sys.exit(main())
