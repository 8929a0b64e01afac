"""The server through plan9port's own codec for 9P2000, which knows nothing of ours."""

import os

import py9p
import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.ninep.server import NinepServer
from davserver.ninep.stat import Owner

MTIME_NS = 1_764_430_802_000_000_000


@pytest.fixture
def client():
    chat = MemoryChat()
    for number in range(400):
        chat.say("user", f"naïve {number}\n".encode(), MTIME_NS + number * 10**9)
    root = MemoryDirectory("/", [MemoryFile("long", bytes(range(256)) * 400, MTIME_NS), chat])
    server = NinepServer(root, Owner(os.getuid(), os.getgid(), "glenda", "sys"), lambda sock: True)
    host, port = server.listen_tcp("127.0.0.1", 0)
    server.start()
    with py9p.Client.connect_tcp(host, port) as client:
        client.negotiate()
        client.attach(0)
        yield client
    server.stop()


def read_all(client, fid):
    data = b""
    while piece := client.read(fid, 8000, len(data)):
        data += piece
    return data


def test_a_file_is_read_whole(client):
    client.walk(0, 1, "long")
    client.open(1)
    assert read_all(client, 1) == bytes(range(256)) * 400


def test_a_stat_says_what_the_node_says(client):
    client.walk(0, 1, "chat/00000007-user")
    stat = client.stat(1)
    assert (stat.name, stat.length, stat.uid, stat.gid) == ("00000007-user", 9, "glenda", "sys")
    assert (stat.mode & 0o777, stat.mtime) == (0o400, MTIME_NS // 10**9 + 7)


def test_a_directory_s_stats_are_read_one_after_the_other(client):
    client.walk(0, 1, "chat")
    client.open(1)
    data = read_all(client, 1)
    names = []
    while data:
        size = int.from_bytes(data[:2], "little") + 2
        names.append(py9p.decode_dir(data[:size]).name)
        data = data[size:]
    assert names == [f"{number:08d}-user" for number in range(400)]


def test_what_is_not_there_is_an_error_with_its_phrase(client):
    with pytest.raises(py9p.NinePError, match="file does not exist"):
        client.walk(0, 1, "nothing")
