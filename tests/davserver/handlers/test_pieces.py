"""The kept pieces of long listings: the same answers as without them, within a budget."""

import time

import pytest

from agents9core.memory import MemoryChat
from davserver.handlers import pieces as pieces_module
from davserver.handlers.pieces import Pieces
from davserver.handlers.rows import SLICE_ROWS

NOW_NS = time.time_ns()


@pytest.fixture
def chat():
    made = MemoryChat()
    for number in range(2 * SLICE_ROWS + 10):
        made.say("user", b"x" * number, NOW_NS - 10**9)
    return made


class Writer:
    """Writes rows, and says which it has written."""

    def __init__(self):
        self.written = []

    def __call__(self, rows):
        self.written.append((rows.names[0], len(rows.names)))
        return "".join(map("{}={}\n".format, rows.names, rows.lengths)).encode()


def listed(pieces, chat, write, start=0, template="t"):
    return b"".join(pieces.of(chat.members(), start, template, write))


def test_a_listing_again_writes_only_what_was_no_whole_slice(chat):
    pieces, write = Pieces(), Writer()
    first = listed(pieces, chat, write)
    assert first == Writer()(chat.members().columns(0, 10**6))
    assert write.written == [("00000000-user", 256), ("00000256-user", 256), ("00000512-user", 10)]
    chat.say("bash", b"more", NOW_NS - 1)
    assert listed(pieces, chat, write) == first + b"00000522-bash=4\n"
    assert write.written[3:] == [("00000512-user", 11)]


@pytest.mark.parametrize("start", [1, 255, 256, 300, 521, 522])
def test_a_listing_from_anywhere_joins_the_same_slices(chat, start):
    pieces = Pieces()
    whole = listed(pieces, chat, Writer())
    assert listed(pieces, chat, Writer(), start) == b"".join(whole.splitlines(keepends=True)[start:])


def test_what_another_template_wrote_is_not_used(chat):
    pieces = Pieces()
    listed(pieces, chat, Writer())
    assert listed(pieces, chat, lambda _: b"other ", template="u") == b"other other other "


def test_what_another_transcript_wrote_is_not_used(chat):
    pieces = Pieces()
    listed(pieces, chat, Writer())
    chat.clear()
    for _ in range(SLICE_ROWS):
        chat.say("user", b"", NOW_NS - 1)
    assert b"00000255-user=0\n" in listed(pieces, chat, Writer())


def test_what_has_a_time_to_come_is_written_each_time(chat):
    pieces, write = Pieces(), Writer()
    for _ in range(SLICE_ROWS):
        chat.say("user", b"", NOW_NS + 10**12)
    for _ in range(2):
        listed(pieces, chat, write)
    assert [name for name, _ in write.written].count("00000512-user") == 2
    assert [name for name, _ in write.written].count("00000256-user") == 1


def test_pieces_are_kept_within_a_budget_the_least_recently_used_dropped_first(monkeypatch):
    pieces = Pieces()
    for number in range(3):
        pieces.put(("t", number), b"%d" % number)
    monkeypatch.setattr(pieces_module, "BUDGET_BYTES", pieces._held_bytes)
    assert pieces.get(("t", 0)) == b"0"
    pieces.put(("t", 3), b"3")
    assert [pieces.get(("t", number)) for number in range(4)] == [b"0", None, b"2", b"3"]
    pieces.put(("t", 3), b"3")
    assert pieces.get(("t", 0)) == b"0"
