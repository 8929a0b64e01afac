"""Rubbish: whatever arrives, each request gets one reply or the conversation ends, and nothing breaks."""

import random
import struct
import time

import pytest

from davserver.ninep.errors import WireError
from davserver.ninep.session import HANDLERS, NinepSession
from davserver.ninep.wire import CODECS, encode

from .conftest import OWNER, Talk
from .test_session import conversation
from .test_wire import PAIRS

SECONDS = 1.0
"""How long each of these goes on."""
NUMBERS = sorted({CODECS[request].number for request in HANDLERS})
ODD = [0, 1, 2, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF]


def replies(session, data):
    """Feed *data* and return the replies, and whether the conversation may go on."""
    session.receive_data(data)
    got = []
    try:
        while (frame := session.next_reply()) is not None:
            assert len(frame) == int.from_bytes(frame[:4], "little")
            assert frame[4] % 2 == 1
            got.append(frame)
    except WireError:
        return got, False
    return got, True


def mutate(random_, frame):
    """Change a byte, a field, or the length of *frame*, and mostly keep its size field right."""
    body = bytearray(frame[4:])
    for _ in range(random_.randint(1, 3)):
        where = random_.randrange(len(body))
        match random_.randrange(5):
            case 0:
                body[where] = random_.randrange(256)
            case 1:
                body[where : where + 4] = struct.pack("<I", random_.choice(ODD))
            case 2:
                del body[max(where, 3) :]
            case 3:
                body += random_.randbytes(random_.randint(1, 40))
            case 4:
                body[where : where + 2] = struct.pack("<H", random_.choice(ODD) & 0xFFFF)
    size = 4 + len(body) if random_.random() < 0.97 else random_.choice(ODD)
    return struct.pack("<I", size) + body


@pytest.mark.parametrize("version", ["9P2000", "9P2000.u", "9P2000.L"])
def test_mutated_conversations(root, version):
    random_ = random.Random(version)
    frames = [encode(message) for message in conversation(version)]
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        session = NinepSession(root, OWNER)
        for frame in frames:
            mutated = mutate(random_, frame) if random_.random() < 0.4 else frame
            got, goes_on = replies(session, mutated)
            assert len(got) <= 1
            if not goes_on:
                break
        session.close()
    assert replies(NinepSession(root, OWNER), frames[0])[1]


def test_random_requests_are_each_answered_once(talk):
    random_ = random.Random(talk.version)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        kind = random_.choice(NUMBERS)
        body = b"".join(struct.pack("<I", random_.choice(ODD)) for _ in range(random_.randint(0, 6)))
        tag = random_.randrange(0x10000)
        got, goes_on = replies(talk.session, struct.pack("<IBH", 7 + len(body), kind, tag) + body)
        assert goes_on
        assert [frame[5:7] for frame in got] == [struct.pack("<H", tag)]
    talk.session.receive_data(struct.pack("<IBH", 7, 0, 1))
    assert talk.session.next_reply()


@pytest.mark.parametrize("message", [message for message, _ in PAIRS if type(message) in HANDLERS])
def test_every_message_whole_and_cut_is_answered(root, message):
    frame = encode(message)
    for version in ("9P2000", "9P2000.u", "9P2000.L"):
        talk = Talk(root, version)
        for end in range(7, len(frame) + 1):
            cut = struct.pack("<I", end) + frame[4:end]
            got, goes_on = replies(talk.session, cut)
            assert goes_on
            assert len(got) == 1


def test_random_bytes_end_or_wait(root):
    random_ = random.Random(9)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        session = NinepSession(root, OWNER)
        for _ in range(5):
            _, goes_on = replies(session, random_.randbytes(random_.randint(1, 60)))
            if not goes_on:
                break
