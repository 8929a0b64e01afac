"""The tree through diod's own clients, which speak 9P2000.L without a kernel."""

import os

import pytest

from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.ninep.server import NinepServer
from davserver.ninep.stat import Owner

pytestmark = pytest.mark.e2e

MTIME_NS = 1_764_430_802_000_000_000
LONG = bytes(range(256)) * 8192


@pytest.fixture
def ninep(tmp_path):
    """Serve a tree; the addresses of both its listeners."""
    many = MemoryDirectory("many", [MemoryFile(f"{number:08d}-user", b"x") for number in range(5000)])
    sub = MemoryDirectory("sub", [MemoryFile("ü", b"umlaut\n", MTIME_NS)])
    root = MemoryDirectory("", [MemoryFile("version", b"agents9\n"), MemoryFile("long", LONG), many, sub])
    server = NinepServer(root, Owner(os.getuid(), os.getgid(), "glenda", "sys"), lambda sock: True)
    host, port = server.listen_tcp("127.0.0.1", 0)
    server.listen_unix(tmp_path / "9p.sock")
    server.start()
    yield f"{host}:{port}", str(tmp_path / "9p.sock")
    server.stop()


@pytest.mark.parametrize("listener", [0, 1])
def test_diodls_lists_a_directory(run, ninep, listener):
    done = run("diodls", "-s", ninep[listener], "-a", "/")
    assert (done.returncode, done.stdout.split()) == (0, ["version", "long", "many", "sub"])


def test_diodls_lists_what_takes_many_messages(run, ninep):
    done = run("diodls", "-s", ninep[0], "-a", "/", "many")
    assert done.stdout.split() == [f"{number:08d}-user" for number in range(5000)]


def test_diodls_shows_modes_and_sizes(run, ninep):
    done = run("diodls", "-l", "-s", ninep[0], "-a", "/", "sub")
    mode, links, *_, size, _month, _day, _time, name = done.stdout.split()
    assert (mode.rstrip("."), links, size, name) == ("-r--------", "1", "7", "ü")


def test_diodcat_reads_files(run, ninep):
    done = run("diodcat", "-s", ninep[0], "-a", "/", "sub/ü", "version")
    assert (done.returncode, done.stdout) == (0, "umlaut\nagents9\n")


def test_diodcat_reads_a_long_file(run, ninep):
    assert run("diodcat", "-s", ninep[0], "-a", "/", "long", text=False).stdout == LONG


@pytest.mark.parametrize(
    ("aname", "name", "why"),
    [
        ("/", "nothing", "No such file or directory"),
        ("/", "sub", "Is a directory"),
        ("/other", "version", "No such file or directory"),
    ],
)
def test_diodcat_says_why_not(run, ninep, aname, name, why):
    done = run("diodcat", "-s", ninep[0], "-a", aname, name)
    assert done.returncode != 0
    assert why in done.stderr
