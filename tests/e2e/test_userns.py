"""A reader inside a user namespace, where the kernel shows neither links nor environment: the lock route."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

THREAD = "01a22000-0000-7000-8000-0000000000f1"
DAY = "2026/11/02"
HOLD_THE_LOCK = """
import fcntl, sys
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
rollout = open(sys.argv[2], "a")
print("held", flush=True)
sys.stdin.read()
"""
LOOK = """
import json, sys
from agents9core.resolver import Resolver
resolver = Resolver(roots={"codex": sys.argv[1]})
agent = resolver.agent("codex", int(sys.argv[2]))
session = resolver.session(agent)
listed = agent in resolver.agents("codex")
paths = ["/".join(source.path) for source in session.sources]
print(json.dumps([listed, session.via, session.id, resolver.cwd(agent), paths]))
"""


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "u" / ".codex"
    (home / "thread-writer-locks").mkdir(parents=True)
    day = home / "sessions" / DAY
    day.mkdir(parents=True)
    meta = {"type": "session_meta", "payload": {"id": THREAD, "source": "cli", "cwd": "/srv/demo"}}
    (day / f"rollout-2026-11-02T10-00-00-{THREAD}.jsonl").write_text(json.dumps(meta) + "\n")
    return home


@pytest.fixture
def codex(home, tmp_path):
    """Run a process that is called codex and holds a thread; it ends when its input does."""
    program = tmp_path / "codex"
    shutil.copy(os.path.realpath(sys.executable), program)
    lock = home / "thread-writer-locks" / f"{THREAD}.lock"
    rollout = next(home.rglob("rollout-*.jsonl"))
    process = subprocess.Popen(
        [program, "-c", HOLD_THE_LOCK, lock, rollout],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"HOME": str(home.parent), "CODEX_HOME": str(home), "PYTHONHOME": sys.base_prefix},
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.communicate()
    assert process.returncode == 0


def look(home, pid, *inside):
    command = [*inside, sys.executable, "-c", LOOK, home, str(pid)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, timeout=60, check=True)
    return json.loads(done.stdout)


def test_inside_a_user_namespace_the_lock_says_it(home, codex):
    name = f"{DAY}/rollout-2026-11-02T10-00-00-{THREAD}.jsonl"
    inside = look(home, codex.pid, "unshare", "-U", "--map-root-user")
    assert inside == [True, "lock", THREAD, "/srv/demo", [name]]


def test_outside_the_open_file_says_it(home, codex):
    listed, via, thread, cwd, _ = look(home, codex.pid)
    assert (listed, via, thread, cwd) == (True, "fd", THREAD, os.getcwd())
