"""The quick way and the long way say the same, whatever is asked."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.errors import Gone
from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.ninep import fastpath, limits
from davserver.ninep import messages as m
from davserver.ninep.dialect import DIALECTS
from davserver.ninep.wire import CODECS, encode
from tests.davserver.ninep.conftest import MTIME_NS, Talk

FIDS = st.integers(0, 4)
NEW_FIDS = st.one_of(FIDS, st.just(m.NOFID))
NAMES = st.sampled_from(
    ["chat", "f", "00000000-user", "00000001-assistant", "..", ".", "", "a/b", "a\0", "no"]
)
TAGS = st.integers(0, 0xFFFF)
OFFSETS = st.sampled_from([0, 1, 5, 6, 7, 4999, 5000, 1 << 62, limits.MAX_OFFSET, limits.MAX_OFFSET + 1])
COUNTS = st.sampled_from([0, 1, 100, 8192, 0xFFFFFFFF])
FLAGS = st.sampled_from([0, 0o100000, 1, 2, 3, 0o1000, 0o200000])
MESSAGES = st.one_of(
    st.builds(m.Twalk, TAGS, FIDS, NEW_FIDS, st.lists(NAMES, max_size=3).map(tuple)),
    st.builds(m.Tgetattr, TAGS, FIDS, st.just(0x7FF)),
    st.builds(m.Tlopen, TAGS, FIDS, FLAGS),
    st.builds(m.Topen, TAGS, FIDS, st.just(0)),
    st.builds(m.Tread, TAGS, FIDS, OFFSETS, COUNTS),
    st.builds(m.Treaddir, TAGS, FIDS, st.just(0), COUNTS),
    st.builds(m.Tclunk, TAGS, FIDS),
)


def torn(frame, change):
    """Let a frame be shorter or longer than its message."""
    body = frame[4 : max(7, len(frame) + min(change, 0))] + b"\x01" * max(change, 0)
    return struct.pack("<I", 4 + len(body)) + body


FRAMES = st.one_of(
    MESSAGES.map(encode),
    st.tuples(MESSAGES.map(encode), st.integers(-6, 6)).map(lambda two: torn(*two)),
    st.tuples(MESSAGES.map(encode), st.binary(min_size=1, max_size=4)).map(
        lambda two: two[0][:-4] + two[1].ljust(4)
    ),
)


def tree(mtime_ns=MTIME_NS):
    chat = MemoryChat()
    chat.say("user", b"hello\n", mtime_ns)
    chat.say("assistant", b"", mtime_ns)
    return MemoryDirectory("root", [chat, MemoryFile("f", b"f" * 5000, mtime_ns)])


def long_way(root, version):
    talk = Talk(root, version, msize=8192)
    talk.session._quick = {}
    return talk.session


def answers(session, frames, *, at_once):
    """Ask one after the other, or all at once; return every reply."""
    replies = b""
    for piece in [b"".join(frames)] if at_once else frames:
        session.receive_data(piece)
        while reply := session.next_replies(1 << 16):
            replies += reply
        session.work_ahead()
    return replies


@given(st.sampled_from(sorted(DIALECTS)), st.lists(FRAMES, max_size=30), st.booleans())
def test_both_ways_say_the_same(version, frames, at_once):
    quickly = Talk(root := tree(), version, msize=8192).session
    assert answers(quickly, frames, at_once=at_once) == answers(
        long_way(root, version), frames, at_once=False
    )


@pytest.mark.parametrize("mtime_ns", [0, 1, -1, -(1 << 62), (1 << 62) + 999_999_999])
def test_times_of_any_year_are_the_same(mtime_ns):
    asked = [encode(m.Twalk(1, 0, 1, ("f",))), encode(m.Tgetattr(2, 1, 0x7FF))]
    root = tree(mtime_ns)
    quickly = Talk(root, "9P2000.L").session
    assert answers(quickly, asked, at_once=False) == answers(long_way(root, "9P2000.L"), asked, at_once=False)


def quick_answers(talk):
    """Return the list of messages, by number, that the quick way answers from now on."""
    answered = []

    def noting(number, answer):
        def note(session, buffer, start, size):
            reply = answer(session, buffer, start, size)
            answered.extend([number] if reply is not None else [])
            return reply

        return note

    talk.session._quick = {number: noting(number, answer) for number, answer in talk.session._quick.items()}
    return answered


def test_what_a_client_asks_of_a_message_is_answered_quickly(linux):
    answered = quick_answers(linux)
    asked = [
        m.Twalk(1, 0, 1, ("chat",)),
        m.Twalk(1, 1, 2, ("00000000-assistant",)),
        m.Twalk(1, 2, 3, ()),
        m.Tgetattr(1, 3, 0x7FF),
        m.Tlopen(1, 3, 0o100000),
        m.Tread(1, 3, 0, 8192),
        m.Tclunk(1, 3),
    ]
    for message in asked:
        linux.call(message)
    assert answered == [CODECS[type(message)].number for message in asked]


def test_a_traced_conversation_goes_the_long_way(root):
    traced = []
    talk = Talk(root, "9P2000.L")
    talk.session._trace = lambda *said: traced.append(said)
    talk.call(m.Tversion(m.NOTAG, 8192, "9P2000.L"))
    talk.attach(0)
    talk.walk(0, 1, "chat")
    assert [type(message) for _, message in traced][-2:] == [m.Twalk, m.Rwalk]


def test_no_request_is_too_long_to_be_looked_at_in_any_conversation():
    assert fastpath.LONGEST <= limits.MIN_MSIZE


# Working ahead


class Preparing(MemoryFile):
    def __init__(self, error=None) -> None:
        super().__init__("f", b"text")
        self.prepared = 0
        self.error = error

    def open(self):
        reader = super().open()

        def prepare():
            self.prepared += 1
            if self.error:
                raise self.error

        reader.prepare = prepare
        return reader


@pytest.mark.parametrize("version", sorted(DIALECTS))
def test_what_was_opened_is_prepared_once_nobody_waits(version):
    file = Preparing()
    talk = Talk(MemoryDirectory("root", [file]), version)
    talk.reach(1, "f")
    assert file.prepared == 0
    talk.session.work_ahead()
    talk.session.work_ahead()
    assert file.prepared == 1


def test_what_was_closed_again_is_not_prepared():
    file = Preparing()
    talk = Talk(MemoryDirectory("root", [file]), "9P2000.L")
    talk.reach(1, "f")
    talk.clunk(1)
    talk.session.work_ahead()
    assert file.prepared == 0


def test_what_cannot_be_prepared_costs_nobody_anything():
    talk = Talk(MemoryDirectory("root", [Preparing(Gone("f"))]), "9P2000.L")
    talk.reach(1, "f")
    talk.session.work_ahead()
    assert talk.read(1) == b"text"


def test_a_fault_of_what_is_prepared_is_logged(caplog):
    talk = Talk(MemoryDirectory("root", [Preparing(ZeroDivisionError())]), "9P2000.L")
    talk.reach(1, "f")
    talk.session.work_ahead()
    assert "prepare" in caplog.text
    caplog.clear()
    assert talk.read(1) == b"text"
