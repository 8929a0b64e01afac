"""davfs2: a mount made by root, whose daemon runs as a user of its own and has a password."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.fuse import needs_fuse, open_directory, within
from tests.e2e.machine import Machine, served

pytestmark = pytest.mark.e2e

PASSWORD = 'pa "ss\\w#rd'
AS_A_SECRET = '"pa \\"ss\\\\w#rd"'
READER, OTHER = "daemon", "nobody"
LONG = "".join(f"line {number}\n" for number in range(28_000))
CONFIG = """\
use_locks 0
ask_auth 0
buf_size 256
table_size 65536
dir_refresh 1
file_refresh 1
secrets {0}/secrets
cache_dir {0}/cache
"""


class Davfs2:
    """A machine, its server, and how to mount it below *base*."""

    def __init__(self, base, machine, server):
        self.base, self.machine, self.server = base, machine, server
        self.at = base / "mnt"
        self.at.mkdir()
        (base / "cache").mkdir(mode=0o770)
        os.chmod(base / "cache", 0o770)
        shutil.chown(base / "cache", group="davfs2")

    def mount(self, secret=AS_A_SECRET, at=None, config=CONFIG):
        """Mount as root; return what the program said."""
        secrets, conf = self.base / "secrets", self.base / "davfs2.conf"
        secrets.write_text(f"{self.server.url}/ me {secret}\n" if secret else "")
        secrets.chmod(0o600)
        conf.write_text(config.format(self.base))
        reader = pwd.getpwnam(READER)
        options = f"ro,conf={conf},uid={reader.pw_uid},gid={reader.pw_gid},file_mode=400,dir_mode=500"
        command = ["mount", "-t", "davfs", "-o", options, self.server.url + "/", at or self.at]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def run(self, command, user=READER):
        """Run a shell command in the mount, as a user."""
        found = pwd.getpwnam(user)
        become = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []} if found.pw_uid else {}
        shell = ["sh", "-c", f"cd {self.at} && {command}"]
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(shell, capture_output=True, text=True, timeout=60, cwd="/", env=env, **become)

    def says(self, command):
        done = self.run(command)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


def unmount(at):
    subprocess.run(["umount", at], capture_output=True, check=True, timeout=60)


@pytest.fixture(scope="module")
def davfs2():
    needs_fuse()
    with open_directory() as base:
        machine = Machine(base / "machine")
        machine.says("assistant", [{"type": "text", "text": "naïve 漢"}], 2)
        machine.says("user", LONG, 3)
        passwords = str(base / "passwords")
        set_password = [sys.executable, "-m", "davserver", "passwd", passwords, "me"]
        subprocess.run(set_password, input=PASSWORD + "\n", text=True, check=True, timeout=60)
        uid = pwd.getpwnam("davfs2").pw_uid
        refused = f"agents9: refused a client (uid {uid}): a wrong name or password\n"  # of the wrong secret
        with served(machine, "--password-file", passwords, said=refused) as server:
            yield Davfs2(base, machine, server)


@pytest.fixture(scope="module")
def mounted(davfs2):
    done = davfs2.mount()
    assert done.returncode == 0, done.stderr
    yield davfs2
    unmount(davfs2.at)


CHAT = "active/claude/601/chat"


def test_ls_shows_names_sizes_owners_and_modes(mounted):
    rows = [line.split() for line in mounted.says("ls -l active/claude/601/chat").splitlines()[1:]]
    assert [(row[0], row[2], row[4], row[-1]) for row in rows][:3] == [
        ("-r--------", READER, "4", "00000000-user"),
        ("-r--------", READER, "11", "00000001-assistant"),
        ("-r--------", READER, str(len(LONG)), "00000002-user"),
    ]
    assert mounted.says("stat -c '%A %U' active").split() == ["dr-x------", READER]


def test_the_time_of_a_message_is_that_of_its_record(mounted):
    assert mounted.says(f"TZ=UTC stat -c %y {CHAT}/00000001-assistant").startswith("2026-11-02 10:00:02.0")


def test_the_whole_tree_is_listed_and_read(mounted):
    listed = mounted.says("find . -path ./lost+found -prune -o -type f -print -exec cat {} + | grep -c .")
    assert int(listed) > 28_000
    assert mounted.says("ls active").split() == ["claude", "codex", "dsh", "hermes", "omp", "pi"]


def test_cat_gives_the_bytes(mounted):
    assert mounted.says(f"cat {CHAT}/00000001-assistant") == "naïve 漢\n"
    assert mounted.says(f"cat {CHAT}/00000002-user") == LONG
    assert mounted.says("cat active/claude/601/transcript") == mounted.machine.transcript.read_text()


def test_another_user_sees_nothing_of_it(mounted):
    for command in ("ls", f"cat {mounted.at}/version", f"ls {mounted.at}/active"):
        done = mounted.run(command, OTHER)
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert "Permission denied" in done.stderr or "can't cd" in done.stderr


def test_nothing_can_be_written(mounted):
    for command in ("echo x >new", "rm version", "echo x >>version", "mkdir new"):
        assert "Read-only file system" in mounted.run(command, "root").stderr


def test_what_is_said_later_is_seen(mounted):
    assert "00000003-user" not in mounted.says(f"ls {CHAT}")
    mounted.machine.says("user", "later", 4)
    within(10, lambda: "00000003-user" in mounted.says(f"ls {CHAT}"))
    assert mounted.says(f"cat {CHAT}/00000003-user") == "later\n"


def test_a_transcript_that_grew_is_read_whole_the_next_time(mounted):
    """The first readers after growth may still get the old length, which the kernel holds for a second."""
    mounted.says("cat active/claude/601/transcript")
    mounted.machine.says("user", "more", 5)
    whole = mounted.machine.transcript.read_text()
    assert whole.endswith('"more"}}\n')
    within(10, lambda: mounted.says("cat active/claude/601/transcript") == whole)


def test_df_is_answered(mounted):
    assert mounted.server.url in mounted.says("df . | tail -n 1")


def test_mounting_again(davfs2, tmp_path):
    for _ in range(2):
        assert davfs2.mount(at=tmp_path).returncode == 0
        assert "version" in os.listdir(tmp_path)
        unmount(tmp_path)


@pytest.mark.parametrize("secret", ["", "wrong"])
def test_without_the_password_there_is_no_mount(davfs2, tmp_path, secret):
    done = davfs2.mount(secret, tmp_path)
    assert done.returncode != 0
    assert not os.path.ismount(tmp_path)
    assert "uthenticat" in done.stderr or "challenge" in done.stderr or "429" in done.stderr, done.stderr


def test_the_readme_has_the_configuration_that_works():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for line in (*CONFIG.splitlines()[:4], "file_mode=400,dir_mode=500"):
        assert line in readme
