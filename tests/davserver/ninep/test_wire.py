"""Messages and bytes, both ways."""

import struct
from typing import get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from davserver.ninep import messages as m
from davserver.ninep import wire
from davserver.ninep.errors import IllegalName, ProtocolError
from davserver.ninep.wire import CODECS, decode, describe, encode

QID = struct.pack("<BIQ", 0x80, 5, 6)

PAIRS = [
    (m.Tversion(0xFFFF, 8192, "9P2000"), "13000000 64 ffff 00200000 0600 395032303030"),
    (m.Rversion(0xFFFF, 8192, "9P2000"), "13000000 65 ffff 00200000 0600 395032303030"),
    (m.Tauth(1, 2, "u", "a"), "11000000 66 0100 02000000 0100 75 0100 61"),
    (m.TauthU(1, 2, "u", "a", 3), "15000000 66 0100 02000000 0100 75 0100 61 03000000"),
    (m.Tattach(1, 2, 0xFFFFFFFF, "u", ""), "14000000 68 0100 02000000 ffffffff 0100 75 0000"),
    (m.TattachU(1, 2, 0xFFFFFFFF, "u", "", 7), "18000000 68 0100 02000000 ffffffff 0100 75 0000 07000000"),
    (m.Rattach(1, QID), "14000000 69 0100 80 05000000 0600000000000000"),
    (m.Rerror(1, "ü"), "0b000000 6b 0100 0200 c3bc"),
    (m.RerrorU(1, "no", 5), "0f000000 6b 0100 0200 6e6f 05000000"),
    (m.Rlerror(1, 95), "0b000000 07 0100 5f000000"),
    (m.Tflush(1, 2), "09000000 6c 0100 0200"),
    (m.Rflush(1), "07000000 6d 0100"),
    (m.Twalk(1, 2, 3, ()), "11000000 6e 0100 02000000 03000000 0000"),
    (m.Twalk(1, 2, 3, ("ab", "..")), "19000000 6e 0100 02000000 03000000 0200 0200 6162 0200 2e2e"),
    (m.Rwalk(1, ()), "09000000 6f 0100 0000"),
    (m.Rwalk(1, (QID, QID)), "23000000 6f 0100 0200" + 2 * "80 05000000 0600000000000000"),
    (m.Topen(1, 2, 3), "0c000000 70 0100 02000000 03"),
    (m.Ropen(1, QID, 4), "18000000 71 0100 80 05000000 0600000000000000 04000000"),
    (m.Tcreate(1, 2, "n", 3, 4), "13000000 72 0100 02000000 0100 6e 03000000 04"),
    (m.TcreateU(1, 2, "n", 3, 4, "e"), "16000000 72 0100 02000000 0100 6e 03000000 04 0100 65"),
    (m.Tread(1, 2, 3, 4), "17000000 74 0100 02000000 0300000000000000 04000000"),
    (m.Rread(1, b"\0\xff"), "0d000000 75 0100 02000000 00ff"),
    (m.Twrite(1, 2, 3, b"hi"), "19000000 76 0100 02000000 0300000000000000 02000000 6869"),
    (m.Tclunk(1, 2), "0b000000 78 0100 02000000"),
    (m.Rclunk(1), "07000000 79 0100"),
    (m.Tremove(1, 2), "0b000000 7a 0100 02000000"),
    (m.Tstat(1, 2), "0b000000 7c 0100 02000000"),
    (m.Rstat(1, b"abc"), "0c000000 7d 0100 0300 616263"),
    (m.Twstat(1, 2, b"abc"), "10000000 7e 0100 02000000 0300 616263"),
    (m.Rwstat(1), "07000000 7f 0100"),
    (m.Tstatfs(1, 2), "0b000000 08 0100 02000000"),
    (
        m.Rstatfs(1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
        "43000000 09 0100 02000000 03000000"
        + "".join(f"0{i}00000000000000" for i in range(4, 10))
        + "0a000000",
    ),
    (m.Tlopen(1, 2, 3), "0f000000 0c 0100 02000000 03000000"),
    (m.Rlopen(1, QID, 4), "18000000 0d 0100 80 05000000 0600000000000000 04000000"),
    (m.Tlcreate(1, 2, "n", 3, 4, 5), "1a000000 0e 0100 02000000 0100 6e 03000000 04000000 05000000"),
    (m.Tsymlink(1, 2, "n", "../t", 5), "18000000 10 0100 02000000 0100 6e 0400 2e2e2f74 05000000"),
    (
        m.Tmknod(1, 2, "n", 3, 4, 5, 6),
        "1e000000 12 0100 02000000 0100 6e 03000000 04000000 05000000 06000000",
    ),
    (m.Trename(1, 2, 3, "n"), "12000000 14 0100 02000000 03000000 0100 6e"),
    (m.Treadlink(1, 2), "0b000000 16 0100 02000000"),
    (m.Tgetattr(1, 2, 0x7FF), "13000000 18 0100 02000000 ff07000000000000"),
    (
        m.Rgetattr(1, 2, QID, 3, 4, 5, *range(6, 21)),
        "a0000000 19 0100 0200000000000000 80 05000000 0600000000000000 03000000 04000000 05000000"
        + "".join(struct.pack("<Q", i).hex() for i in range(6, 21)),
    ),
    (
        m.Tsetattr(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
        "43000000 1a 0100 02000000 03000000 04000000 05000000 06000000"
        + "".join(struct.pack("<Q", i).hex() for i in range(7, 12)),
    ),
    (m.Txattrwalk(1, 2, 3, ""), "11000000 1e 0100 02000000 03000000 0000"),
    (m.Txattrcreate(1, 2, "n", 3, 4), "1a000000 20 0100 02000000 0100 6e 0300000000000000 04000000"),
    (m.Treaddir(1, 2, 3, 4), "17000000 28 0100 02000000 0300000000000000 04000000"),
    (m.Rreaddir(1, b""), "0b000000 29 0100 00000000"),
    (m.Tfsync(1, 2, 3), "0f000000 32 0100 02000000 03000000"),
    (m.Rfsync(1), "07000000 33 0100"),
    (
        m.Tlock(1, 2, 1, 3, 4, 5, 6, "c"),
        "27000000 34 0100 02000000 01 03000000 0400000000000000 0500000000000000 06000000 0100 63",
    ),
    (m.Rlock(1, 2), "08000000 35 0100 02"),
    (
        m.Tgetlock(1, 2, 1, 4, 5, 6, "c"),
        "23000000 36 0100 02000000 01 0400000000000000 0500000000000000 06000000 0100 63",
    ),
    (
        m.Rgetlock(1, 2, 4, 5, 6, "c"),
        "1f000000 37 0100 02 0400000000000000 0500000000000000 06000000 0100 63",
    ),
    (m.Tlink(1, 2, 3, "n"), "12000000 46 0100 02000000 03000000 0100 6e"),
    (m.Tmkdir(1, 2, "n", 3, 4), "16000000 48 0100 02000000 0100 6e 03000000 04000000"),
    (m.Trenameat(1, 2, "o", 3, "n"), "15000000 4a 0100 02000000 0100 6f 03000000 0100 6e"),
    (m.Tunlinkat(1, 2, "n", 3), "12000000 4c 0100 02000000 0100 6e 03000000"),
]


def named(value):
    return type(value).__name__ if hasattr(value, "_fields") else ""


@pytest.mark.parametrize(("message", "hexadecimal"), PAIRS, ids=named)
def test_encode(message, hexadecimal):
    assert encode(message).hex(" ") == bytes.fromhex(hexadecimal).hex(" ")


@pytest.mark.parametrize(("message", "hexadecimal"), PAIRS, ids=named)
def test_decode(message, hexadecimal):
    assert decode(type(message), bytes.fromhex(hexadecimal)) == message


def test_every_message_has_a_pair():
    assert {type(message) for message, _ in PAIRS} == set(CODECS)


@pytest.mark.parametrize(("message", "hexadecimal"), PAIRS, ids=named)
def test_every_truncation_and_extension_is_refused(message, hexadecimal):
    frame = bytes.fromhex(hexadecimal)
    for end in range(7, len(frame)):
        with pytest.raises(ProtocolError):
            decode(type(message), frame[:end])
    with pytest.raises(ProtocolError):
        decode(type(message), frame + b"\0")


@pytest.mark.parametrize("message", [message for message, _ in PAIRS], ids=named)
def test_a_frame_is_read_within_its_bounds(message):
    frame = encode(message)
    buffer = bytearray(b"\xff" * 9 + frame + b"\xff" * 200)
    assert CODECS[type(message)].decode(buffer, 9, 9 + len(frame)) == message
    if len(frame) > 7:
        with pytest.raises(ProtocolError):
            CODECS[type(message)].decode(buffer, 9, 9 + len(frame) - 1)


DRAWN = {
    wire.U8: "{}[1]",
    wire.U16: "{}[2]",
    wire.U32: "{}[4]",
    wire.U64: "{}[8]",
    wire.QidBytes: "{}[13]",
    wire.String: "{}[s]",
    wire.Name: "{}[s]",
    wire.Names: "n{0}[2] n{0}*({0}[s])",
    wire.Qids: "n{0}[2] n{0}*({0}[13])",
    wire.Data: "count[4] {}[count]",
    wire.StatData: "n{0}[2] {0}[n{0}]",
}
"""How the manual draws a field of each type."""


def field_types(cls):
    return get_type_hints(cls, include_extras=True)


@pytest.mark.parametrize("cls", CODECS, ids=lambda cls: cls.__name__)
def test_the_docstring_is_the_layout(cls):
    drawn = " ".join(DRAWN[kind].format(name) for name, kind in field_types(cls).items())
    assert " ".join(cls.__doc__.split()) == f"size[4] {cls.__name__.removesuffix('U')} {drawn}"


VALUES = {
    wire.U8: st.integers(0, 0xFF),
    wire.U16: st.integers(0, 0xFFFF),
    wire.U32: st.integers(0, 0xFFFFFFFF),
    wire.U64: st.integers(0, 0xFFFFFFFFFFFFFFFF),
    wire.QidBytes: st.binary(min_size=13, max_size=13),
    wire.String: st.text(max_size=300),
    wire.Data: st.binary(max_size=3000),
    wire.StatData: st.binary(max_size=3000),
    wire.Qids: st.lists(st.binary(min_size=13, max_size=13), max_size=16).map(tuple),
}
_letters = st.characters(exclude_characters="/\0", exclude_categories=["Cs"])
VALUES[wire.Name] = st.text(_letters, min_size=1, max_size=80).filter(lambda name: name != ".")
VALUES[wire.Names] = st.lists(VALUES[wire.Name], max_size=16).map(tuple)


def messages_of(cls):
    return st.builds(cls, *(VALUES[kind] for kind in field_types(cls).values()))


@settings(suppress_health_check=[HealthCheck.too_slow])  # a machine that is busy with other things
@given(st.sampled_from(sorted(CODECS, key=lambda cls: cls.__name__)).flatmap(messages_of))
def test_round_trip(message):
    frame = encode(message)
    assert int.from_bytes(frame[:4], "little") == len(frame)
    assert decode(type(message), frame) == message


@given(st.sampled_from(sorted(CODECS, key=lambda cls: cls.__name__)), st.binary(max_size=200))
def test_any_body_is_a_message_or_refused(cls, body):
    frame = struct.pack("<IBH", 7 + len(body), CODECS[cls].number, 1) + body
    try:
        message = decode(cls, frame)
    except ProtocolError:
        return
    assert encode(message) == frame


@pytest.mark.parametrize("name", ["", ".", "a/b", "/", "a\0"])
def test_a_name_that_cannot_be(name):
    for message in (m.Twalk(1, 2, 3, (name,)), m.Tcreate(1, 2, name, 0, 0), m.Trenameat(1, 2, "a", 3, name)):
        with pytest.raises(IllegalName):
            decode(type(message), encode(message))


def test_seventeen_elements():
    with pytest.raises(ProtocolError):
        decode(m.Twalk, encode(m.Twalk(1, 2, 3, ("a",) * 17)))
    with pytest.raises(ProtocolError):
        decode(m.Rwalk, encode(m.Rwalk(1, (QID,) * 17)))


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (m.Tread(1, 2, 3, 4), "Tread tag=1 fid=2 offset=3 count=4"),
        (m.Rread(1, b"secret"), "Rread tag=1 data[6]"),
        (m.Rread(1, b"thirteen byte"), "Rread tag=1 data[13]"),
        (m.Rattach(1, QID), "Rattach tag=1 qid=80050000000600000000000000"),
        (m.Rwalk(1, (QID,)), "Rwalk tag=1 wqid=[80050000000600000000000000]"),
        (m.Twalk(1, 2, 3, ("a\x1b", "b")), "Twalk tag=1 fid=2 newfid=3 wname=('a\\x1b', 'b')"),
        (m.Rclunk(1), "Rclunk tag=1"),
    ],
)
def test_describe(message, line):
    assert describe(message) == line
