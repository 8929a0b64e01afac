"""rclone mount, by the line that the README has."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.fuse import needs_fuse, within
from tests.e2e.machine import Machine, claude_line, served

pytestmark = pytest.mark.e2e

AGENT = "active/claude/601"
LONG = "".join(f"line {number}\n" for number in range(28_000))


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp("rclone"))
    machine.says("user", LONG, 2)
    return machine


@pytest.fixture(scope="module")
def mount(machine, tmp_path_factory):
    """The mount, by the README's line."""
    needs_fuse()
    at = tmp_path_factory.mktemp("mnt")
    rclone = shutil.which("rclone")
    assert rclone, "rclone is not installed; run tests/e2e/install-clients"
    with served(machine) as server:
        command = [rclone, "--config", at.with_name("none"), "mount", ":webdav:", at]
        command += ["--webdav-url", server.url + "/", "--read-only"]
        command += ["--vfs-cache-mode", "off", "--dir-cache-time", "1s"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                within(30, lambda: os.path.ismount(at) or process.poll() is not None)
                assert process.poll() is None, process.stdout.read()
                yield at
            finally:
                process.terminate()
                process.communicate(timeout=30)
    assert not os.path.ismount(at)


def test_the_whole_tree_is_there(mount):
    found = [os.path.join(top, name) for top, _, names in os.walk(mount) for name in names]
    assert str(mount / AGENT / "chat" / "00000001-user") in found
    assert all(Path(name).read_bytes() for name in found)


def test_names_sizes_and_times(mount):
    chat = mount / AGENT / "chat"
    assert sorted(os.listdir(chat))[:2] == ["00000000-user", "00000001-user"]
    looked = (chat / "00000001-user").stat()
    assert (looked.st_size, int(looked.st_mtime)) == (len(LONG), 1793613602)
    assert (chat / "00000001-user").read_text() == LONG


def test_a_growing_transcript_is_followed_by_opening_it_again(mount, machine):
    """A file that is held open keeps the size it had (rclone 1.60), so `tail -f` alone shows nothing new."""
    path, seen = mount / AGENT / "transcript", b""
    for number in range(3):
        machine.writes(claude_line("user", f"later {number}"))
        whole = machine.transcript.read_bytes()

        def read_on(whole=whole):
            nonlocal seen
            with path.open("rb") as file:
                file.seek(len(seen))
                seen += file.read()
            assert whole.startswith(seen)
            return seen == whole

        assert within(10, read_on) < 5


def test_a_message_that_is_said_later_is_seen(mount, machine):
    names = set(os.listdir(mount / AGENT / "chat"))
    machine.says("user", "the last")
    within(10, lambda: set(os.listdir(mount / AGENT / "chat")) - names)
    name = max(os.listdir(mount / AGENT / "chat"))
    assert (mount / AGENT / "chat" / name).read_text() == "the last\n"


def test_nothing_can_be_written(mount):
    with pytest.raises(OSError, match="Read-only file system"):
        (mount / "new").write_text("x")
    with pytest.raises(OSError, match="Read-only file system"):
        (mount / "version").unlink()
