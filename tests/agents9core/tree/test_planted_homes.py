"""Homes that a process names: nothing in the tree leads from them to what is no transcript."""

import json
import os

import pytest

from agents9core import resolver as resolver_module
from agents9core import stored as stored_module
from agents9core.errors import TreeError
from agents9core.harness.table import HARNESSES
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from tests.support.fakeproc import FakeProc

SECRET = "the owner's secret"
VARIABLES = {
    "claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "dsh": "DSH_HOME", "omp": "PI_CODING_AGENT_DIR",
    "pi": "PI_CODING_AGENT_DIR",
}  # fmt: skip
STORES = {"claude": "projects", "codex": "sessions", "dsh": "sessions", "omp": "sessions", "pi": "sessions"}
ARGV = {"dsh": ["node", "/opt/node_modules/@deepseek-ai/dsh/lib/bin.js", "web"]}


@pytest.fixture(autouse=True)
def _every_look_is_fresh(monkeypatch):
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(stored_module, "REUSE_SECONDS", -1)


@pytest.fixture
def user(tmp_path, monkeypatch):
    """The owner's home, with what no confined agent may read."""
    user = tmp_path / "user"
    names = (
        ".ssh/id_work .ssh/a/x.jsonl notes.txt a/notes.jsonl .netrc diary/monday/x.txt projects/app/.env"
        " projects/app/main.py projects/app/data.jsonl sessions/2026/plan.txt sessions/a/x.jsonl"
    )
    for name in names.split():
        path = user / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"type": "session", "secret": SECRET}) + "\n")
    monkeypatch.setenv("HOME", str(user))
    return user


@pytest.fixture
def proc(tmp_path):
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def tree(user, proc):
    return build_tree(Resolver(str(proc.root)))


def plant(proc, harness, home, pid=700):
    comm = "node" if harness == "dsh" else harness
    environ = {VARIABLES[harness]: str(home), "HOME": str(home.parent)}
    proc.put(pid, comm, ARGV.get(harness, [harness]), environ=environ, cwd=str(home.parent))


def everything(node, path=""):
    """Read each file below a directory; return the bytes of all, and the names."""
    found = []
    for row in node.members():
        try:
            child = node.walk(row.name)
            if row.stat.is_dir:
                found += everything(child, f"{path}/{row.name}")
            else:
                found.append((f"{path}/{row.name}", child.open().read(0, 1 << 16)))
        except TreeError:
            continue
    return found


def leaks(tree):
    return [path for path, data in everything(tree) if SECRET.encode() in data]


HARNESSES_WITH_STORES = sorted(STORES)
TARGETS = ["{user}", "{user}/.ssh", "{user}/.ssh/a", "/", "{user}/..", "{user}/../user/."]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("harness", HARNESSES_WITH_STORES)
def test_a_store_that_is_a_link_to_what_is_the_owners_shows_nothing(
    tree, proc, user, tmp_path, harness, target
):
    home = tmp_path / "confined" / "x"
    home.mkdir(parents=True)
    (home / STORES[harness]).symlink_to(target.format(user=user))
    plant(proc, harness, home)
    mirror = tree.walk(harness)
    assert [row.name for row in tree.walk("active").walk(harness).members()] == ["700"]
    assert everything(mirror) == []
    assert leaks(tree) == []


@pytest.mark.parametrize("harness", HARNESSES_WITH_STORES)
def test_a_named_home_that_is_the_owners_shows_nothing(tree, proc, user, harness):
    plant(proc, harness, user)
    assert leaks(tree) == []


@pytest.mark.parametrize("harness", HARNESSES_WITH_STORES)
def test_only_what_is_called_like_a_transcript_is_shown_of_any_directory(tree, proc, tmp_path, harness):
    home = tmp_path / "work"
    store = home / STORES[harness]
    for name in (
        "a/b/plan.txt",
        "a/b/main.py",
        "a/notes.md",
        "top.json",
        "a/b/c/d.csv",
        "a/rollout.txt",
        "a/jsonl",
    ):
        path = store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    plant(proc, harness, home)
    assert everything(tree.walk(harness)) == []


def test_a_link_that_is_turned_after_the_process_has_ended_shows_nothing(tree, proc, user, tmp_path):
    home = tmp_path / "confined" / "x"
    (home / "real" / "-p").mkdir(parents=True)
    (home / "real" / "-p" / "said.jsonl").write_text("{}\n")
    (home / "projects").symlink_to(home / "real")
    plant(proc, "claude", home)
    assert [path for path, _ in everything(tree.walk("claude"))] == ["/projects/-p/said.jsonl"]
    for name in ("stat", "status", "cmdline", "environ"):
        (proc.root / "700" / name).unlink()
    (home / "projects").unlink()
    (home / "projects").symlink_to(user)
    assert everything(tree.walk("claude")) == []
    assert leaks(tree) == []


def test_a_record_is_read_of_no_directory_that_is_the_owners(tree, proc, user, tmp_path):
    """The registry leads to a session's facts: title, cwd, status."""
    home = tmp_path / "confined" / "x"
    home.mkdir(parents=True)
    (home / "sessions").symlink_to(user / ".ssh")
    record = {"sessionId": "s", "procStart": "5000", "name": SECRET, "cwd": f"/{SECRET}"}
    (user / ".ssh" / "700.json").write_text(json.dumps(record))
    plant(proc, "claude", home)
    assert leaks(tree) == []


CLAUDE = (
    "-p/{id}.jsonl -p/{id}/subagents/agent-a1.jsonl -p/{id}/subagents/agent-a1.meta.json"
    " -p/{id}/subagents/workflows/wf_1/agent-2.jsonl -p/{id}/subagents/workflows/wf_1/journal.jsonl"
    " -p/{id}/tool-results/toolu_1.txt -p/{id}/tool-results/b.json -p/{id}/custom-title.json"
    " -p/agent-0a1b2c3d.jsonl -p/memory/MEMORY.md -p/{id}/session-memory/summary.md"
)
CODEX = (
    "2026/11/29/rollout-2026-11-29T10-00-00-{id}.jsonl rollout-2025-04-01-{id}.json"
    " 2026/11/01/rollout-2026-11-01T10-00-00-{id}.jsonl.zst"
)
OMP = (
    "--p--/{omp}.jsonl --p--/{omp}/Anna.jsonl --p--/{omp}/Anna.md --p--/{omp}/Anna/A.B.jsonl"
    " --p--/{omp}/0.bash.log"
)
PI = "--p--/{omp}.jsonl"
DSH = (
    "--p--/s-1/session.jsonl.zstd --p--/s-1/session.v4.jsonl.zstd --p--/s/session.v3.jsonl"
    " --p--/s-1/session.lock"
)
REAL = {"claude": CLAUDE, "codex": CODEX, "omp": OMP, "pi": PI, "dsh": DSH}


@pytest.mark.parametrize("harness", HARNESSES_WITH_STORES)
def test_every_file_of_a_real_store_is_shown(tree, user, harness):
    id = "01a227fd-2222-7222-8333-944445555666"
    store = os.path.join(user, HARNESSES[harness].home, *HARNESSES[harness].stores[0])
    paths = [name.format(id=id, omp=f"2026-11-29T10-00-00-000Z_{id}") for name in REAL[harness].split()]
    for path in paths:
        os.makedirs(os.path.dirname(os.path.join(store, path)), exist_ok=True)
        with open(os.path.join(store, path), "w") as file:
            file.write("{}\n")
    below = "/" + "/".join(HARNESSES[harness].stores[0])
    assert sorted(path for path, _ in everything(tree.walk(harness))) == sorted(
        f"{below}/{path}" for path in paths
    )
