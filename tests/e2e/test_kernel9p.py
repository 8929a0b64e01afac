"""A memory tree, seen through the Linux kernel's own 9P client (v9fs)."""

import hashlib
import os
import threading
from typing import NamedTuple

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.ninep.server import NinepServer
from davserver.ninep.stat import Owner

from .kernel9p import Guest, Outcome, start_guest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

VERSIONS = ("9p2000", "9p2000.u", "9p2000.L")
MTIME_NS = 1_764_430_802_000_000_000
"""2025-11-29T15:40:02Z"""
LONG = bytes(range(256)) * 8192


def md5(data: bytes) -> str:
    return f"{hashlib.md5(data).hexdigest()}  -"


EVERYTHING = md5(b"".join(b"message %d\n" % number for number in range(300)))
"""What md5sum says of all messages, one after the other."""


class Signal(MemoryFile):
    """A file whose reader tells the test that the guest has come so far."""

    def __init__(self, name: str) -> None:
        super().__init__(name, b"go on\n", MTIME_NS)
        self.reached = threading.Event()

    def open(self):
        self.reached.set()
        return super().open()


class Tree(NamedTuple):
    root: MemoryDirectory
    chat: MemoryChat
    growing: MemoryFile
    ready: Signal


@pytest.fixture
def tree():
    chat = MemoryChat()
    for number in range(300):
        chat.say("user", b"message %d\n" % number, MTIME_NS)
    many = MemoryDirectory("many", [MemoryFile(f"{number:08d}-user") for number in range(5000)])
    growing, ready = MemoryFile("growing", b"first\n", MTIME_NS), Signal("ready")
    sub = MemoryDirectory("sub", [MemoryFile("ü", b"umlaut\n", MTIME_NS), MemoryFile("empty", b"", MTIME_NS)])
    root = MemoryDirectory("", [chat, growing, many, ready, MemoryFile("long", LONG, MTIME_NS), sub])
    return Tree(root, chat, growing, ready)


@pytest.fixture
def start(tree, tmp_path):
    """Boots guests that mount *tree*; what still runs is ended after the test."""
    server = NinepServer(tree.root, Owner(os.getuid(), os.getgid(), "glenda", "sys"), lambda sock: True)
    socket_file = tmp_path / "9p.sock"
    server.listen_unix(socket_file)
    server.start()
    guests: list[Guest] = []

    def boot(commands: str, version: str = "9p2000.L", options: str = "") -> Guest:
        guests.append(start_guest(tmp_path / f"guest{len(guests)}", socket_file, commands, version, options))
        return guests[-1]

    yield boot
    for guest in guests:
        guest.end()
    server.stop()


def check(outcome: Outcome) -> list[str]:
    """Return the lines of a run that went well."""
    assert (outcome.status, outcome.stderr) == (0, "")
    assert "unknown error" not in outcome.dmesg
    return outcome.stdout.splitlines()


@pytest.mark.parametrize("version", VERSIONS)
def test_reading_the_tree(start, version):
    commands = """
        ls
        cat sub/ü; stat -c '%A %s %Y' sub sub/ü sub/empty
        ls many | wc -l; ls many | sort -u | wc -l; ls -l chat | tail -n 1 | cut -c 1-10
        cat chat/00000299-user
        cat chat/* | md5sum
        md5sum <long; tail -c 3 long | od -An -tx1; dd if=long bs=1000 skip=7 count=1 2>/dev/null | md5sum
        cat sub/../sub/./ü
    """
    lines = check(start(commands, version).finish())
    assert lines[:6] == ["chat", "growing", "long", "many", "ready", "sub"]
    assert lines[6:10] == [
        "umlaut",
        f"dr-x------ 0 {MTIME_NS // 10**9}",
        f"-r-------- 7 {MTIME_NS // 10**9}",
        f"-r-------- 0 {MTIME_NS // 10**9}",
    ]
    assert lines[10:14] == ["5000", "5000", "-r--------", "message 299"]
    assert lines[14:18] == [EVERYTHING, md5(LONG), " fd fe ff", md5(LONG[7000:8000])]
    assert lines[18] == "umlaut"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_cannot_be(start, version):
    commands = """
        for command in 'cat nothing' 'cat long/x' 'echo x >new' 'echo x >>growing' 'rm growing' 'mkdir new' \\
            'chmod 600 growing' 'mv growing grown' 'touch growing' 'ln -s growing link' 'cat sub'; do
            sh -c "$command" 2>&1 | sed 's/.*: //'
        done
    """
    lines = check(start(commands, version).finish())
    assert lines[:2] == ["No such file or directory", "Not a directory"]
    assert set(lines[2:-1]) <= {"Read-only file system", "Operation not permitted"}
    assert lines.count("Read-only file system") >= 7
    assert lines[-1] == "Is a directory"


@pytest.mark.parametrize("version", VERSIONS)
def test_other_users_of_a_mount_that_root_made_see_nothing(start, version):
    """Root's mount is served by what root may read, so the modes have to keep the others out."""
    commands = """
        for command in 'ls .' 'cat sub/ü' 'cat growing' 'stat long' 'cd sub'; do
            setpriv --reuid=1 --regid=1 --clear-groups sh -c "$command" 2>&1 | sed 's/.*: //'
        done
        cat sub/ü
    """
    lines = check(start(commands, version, options="access=any").finish())
    assert lines == ["Permission denied"] * 4 + ["can't cd to sub", "umlaut"]


def test_what_the_linux_dialect_adds(start):
    commands = """
        stat -f -c '%S %l' .
        df . | tail -n 1 | cut -d ' ' -f 1
        stat -c '%U %G %h' sub
        flock -s growing echo locked
        sync growing
        ls -l --context sub >/dev/null
        find . -type d | sort
    """
    lines = check(start(commands).finish())
    assert lines[:2] == ["4096 255", "10.9.0.1"]
    assert lines[2].endswith(" 1")
    assert lines[3:] == ["locked", ".", "./chat", "./many", "./sub"]


def test_a_cached_mount(start):
    commands = "ls -l chat | wc -l; cat chat/* | md5sum; exec 7<chat/00000007-user 8<sub; cat chat/* | md5sum"
    assert check(start(commands, options="cache=loose").finish()) == ["301", EVERYTHING, EVERYTHING]


def test_a_big_msize(start):
    assert check(start("md5sum <long; ls many | wc -l", options="msize=1048600").finish()) == [
        md5(LONG),
        "5000",
    ]


def test_tail_follows_a_growing_file(start, tree):
    guest = start("timeout 20 tail -n +1 -f growing | { cat ready >/dev/null; head -n 3; }")
    assert tree.ready.reached.wait(60)
    tree.growing.append(b"second\n")
    tree.growing.append(b"third\n")
    assert check(guest.finish()) == ["first", "second", "third"]


def test_a_file_that_goes_while_it_is_open(start, tree):
    commands = """
        exec 5<growing
        head -c 3 <&5; echo
        cat ready >/dev/null
        until [ -e sub/gone ]; do sleep 0.1; done
        cat <&5 2>&1 | sed 's/.*: //'
        stat growing 2>&1 | sed 's/.*: //'
        ls
    """
    guest = start(commands)
    assert tree.ready.reached.wait(60)
    tree.growing.remove()
    tree.root.walk("sub").add(MemoryFile("gone"))
    lines = check(guest.finish())
    assert lines == ["fir", "Stale file handle", "Stale file handle", "chat", "long", "many", "ready", "sub"]


def test_many_readers_at_once(start):
    commands = "for n in 1 2 3 4 5 6 7 8; do cat chat/0000[0-9]*$n-user | md5sum & md5sum <long & done; wait"
    lines = check(start(commands).finish())
    assert len(lines) == 16
    assert lines.count(md5(LONG)) == 8
