"""gio and gvfs, as the desktop's file manager uses them, on a message bus of their own."""

import os
import shlex
import subprocess

import pytest

from tests.e2e.machine import Machine, served

pytestmark = pytest.mark.e2e

CHAT = "active/claude/601/chat"
SCRIPT = """\
gio mount {url} >/dev/null 2>&1 || exit 9
{commands}
status=$?
gio mount -u {url} >/dev/null 2>&1 || exit 8
exit $status
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp("gio"))
    machine.says("assistant", [{"type": "text", "text": "naïve 漢"}], 2)
    machine.says("user", "long " * 60_000, 3)
    return machine


@pytest.fixture(scope="module")
def url(machine):
    with served(machine) as server:
        yield f"dav://localhost:{server.http}/"


@pytest.fixture
def gio(url, tmp_path):
    """Mount, run shell commands in which $u is the mount, unmount; return what they printed."""
    (tmp_path / "run").mkdir(mode=0o700)
    places = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "LC_ALL": "C.UTF-8"}

    def run(commands, expected=0):
        script = SCRIPT.format(url=url, commands=f"u={shlex.quote(url)}\n{commands}")
        done = subprocess.run(
            ["dbus-run-session", "--", "sh", "-c", script],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, cwd=tmp_path,
            env={**os.environ, **places},
        )  # fmt: skip
        assert done.returncode == expected, done.stderr
        return done.stdout

    return run


def test_list_shows_names_and_sizes(gio):
    rows = [line.split("\t") for line in gio(f"gio list -l ${{u}}{CHAT}/").splitlines()]
    assert rows == [
        ["00000000-user", "4", "(regular)"],
        ["00000001-assistant", "11", "(regular)"],
        ["00000002-user", "300001", "(regular)"],
    ]


def test_list_shows_directories(gio):
    rows = [line.split("\t") for line in gio("gio list -l ${u}active/").splitlines()]
    assert [(row[0], row[2]) for row in rows] == [
        (name, "(directory)") for name in ("claude", "codex", "omp", "pi", "dsh", "hermes")
    ]


def test_info_shows_a_text_with_its_size_time_and_tag(gio):
    said = gio(f"gio info ${{u}}{CHAT}/00000001-assistant")
    for fact in (
        "display name: 00000001-assistant",
        "type: regular",
        "size:  11",
        "standard::content-type: text/plain",
        "time::modified: 1793613602",
        "etag::value: ",
    ):
        assert fact in said


def test_cat_gives_the_bytes(gio, machine):
    assert gio(f"gio cat ${{u}}{CHAT}/00000001-assistant") == "naïve 漢\n"
    assert gio(f"gio cat ${{u}}{CHAT}/00000002-user") == "long " * 60_000 + "\n"
    assert gio("gio cat ${u}active/claude/601/transcript") == machine.transcript.read_text()


def test_copy_and_tree_walk_it(gio, machine, tmp_path):
    tree = gio("gio copy ${u}active/claude/601/transcript copy && gio tree $u")
    assert (tmp_path / "copy").read_text() == machine.transcript.read_text()
    for name in ("README", "hermes", "601", "00000002-user", "transcript"):
        assert f"-- {name}\n" in tree


def test_what_is_said_later_is_seen(gio, machine):
    path = shlex.quote(str(machine.transcript))
    line = '{"type":"user","message":{"content":"later"}}'
    said = gio(f"echo {shlex.quote(line)} >>{path}; gio cat ${{u}}{CHAT}/00000003-user")
    assert said == "later\n"


def test_nothing_can_be_written(gio):
    assert "Not Allowed" in gio("echo x | gio save ${u}new 2>&1; gio remove ${u}version 2>&1; gio list $u")


def test_what_is_not_there_is_said(gio):
    said = gio(f"gio info ${{u}}{CHAT}/0-user 2>&1", expected=2)
    assert "0-user" in said
