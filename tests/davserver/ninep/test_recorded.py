"""What real clients said, recorded and said again: Linux 6.1's v9fs and diod 1.0.24's tools.

Each file holds a client's side of one connection to the tree below: `ls -l`, `cat`, `stat`, `find`, `df` and
a name that is not there for the kernel; a listing and a file for diod.
"""

import errno
import random
from pathlib import Path

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.ninep.session import NinepSession
from davserver.ninep.stat import Owner

DATA = Path(__file__).parent.parent.parent / "data" / "ninep"
MTIME_NS = 1_764_430_802_000_000_000
RERROR, RLERROR, RVERSION = 107, 7, 101
NAMES = sorted(path.name for path in DATA.glob("*.client.9p"))


@pytest.fixture
def session():
    chat = MemoryChat()
    for number in range(3):
        chat.say("assistant" if number % 2 else "user", b"message %d\n" % number, MTIME_NS + number * 10**9)
    root = MemoryDirectory("/", [MemoryFile("version", b"agents9\n", MTIME_NS), chat])
    return NinepSession(root, Owner(0, 0, "root", "root"))


def frames(data):
    """Part a stream of messages."""
    found = []
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(data[:size])
        data = data[size:]
    return found


def answers(session, pieces):
    """Feed the pieces one after the other, and return every reply."""
    replies = []
    for piece in pieces:
        session.receive_data(piece)
        while (reply := session.next_reply()) is not None:
            replies.append(reply)
    return replies


def error_of(reply):
    """Return what an error reply says, by its dialect; None where it is none."""
    if reply[4] == RLERROR:
        return int.from_bytes(reply[7:11], "little")
    if reply[4] == RERROR:
        length = int.from_bytes(reply[7:9], "little")
        return reply[9 : 9 + length].decode()
    return None


def test_there_are_recordings_of_each_dialect():
    assert {name.split("-")[1].removesuffix(".client.9p") for name in NAMES} == {
        "9P2000", "9P2000.u", "9P2000.L",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_request_has_its_answer(session, name):
    requests = frames((DATA / name).read_bytes())
    replies = answers(session, requests)
    assert [(reply[4] - 1, reply[5:7]) for reply in replies if error_of(reply) is None] == [
        (request[4], request[5:7])
        for request, reply in zip(requests, replies, strict=True)
        if error_of(reply) is None
    ]


@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_not_there_is_refused(session, name):
    refused = {error_of(reply) for reply in answers(session, frames((DATA / name).read_bytes()))} - {None}
    assert refused <= {errno.ENOENT, errno.EOPNOTSUPP, "file does not exist"}
    assert bool(refused) == ("diodcat" not in name or refused == {errno.ENOENT})


@pytest.mark.parametrize("name", NAMES)
def test_the_fids_that_were_made_are_let_go(session, name):
    answers(session, frames((DATA / name).read_bytes()))
    assert session.fid_count <= 1


@pytest.mark.parametrize("name", NAMES)
def test_any_cuts_give_the_same_answers(session, name):
    data = (DATA / name).read_bytes()
    whole = answers(session, [data])
    dice = random.Random(9)
    segments = []
    at = 0
    while at < len(data):
        length = dice.choice([1, 2, 3, 7, 50])
        segments.append(data[at : at + length])
        at += length
    assert len(answers(session, segments)) == len(whole)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("v9fs")])
def test_the_kernel_read_every_file(session, name):
    replies = b"".join(answers(session, frames((DATA / name).read_bytes())))
    for text in (b"agents9\n", b"message 0\n", b"message 1\n", b"message 2\n"):
        assert text in replies
