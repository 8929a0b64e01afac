"""The kept entries of long chats: what packing again would give, and few of them."""

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.ninep import entry_cache as entries_module
from davserver.ninep.dirlist import Listing
from davserver.ninep.entry_cache import SLICE_ROWS, EntryCache
from davserver.ninep.stat import dirents


class Packer:
    """Packs as a Treaddir does, and says where it did."""

    def __init__(self):
        self.starts = []

    def __call__(self, rows, first):
        self.starts.append(first)
        return dirents(rows, first)


@pytest.fixture
def chat():
    made = MemoryChat()
    for number in range(SLICE_ROWS + 5):
        made.say("user", b"x" * number)
    return made


def test_a_whole_slice_of_messages_is_packed_once(chat):
    entries, pack = EntryCache(), Packer()
    for _ in range(2):
        rows = chat.members()
        whole, rest = (entries.slice_at(rows, start, pack) for start in (0, SLICE_ROWS))
        assert whole + rest == dirents(rows.columns(0, len(rows)), 0)
        chat.say("bash", b"")
    assert pack.starts == [0, SLICE_ROWS, SLICE_ROWS]


def test_another_transcript_is_packed_anew(chat):
    entries, pack = EntryCache(), Packer()
    entries.slice_at(chat.members(), 0, pack)
    chat.clear()
    for _ in range(SLICE_ROWS):
        chat.say("bash", b"")
    assert b"00000000-bash" in entries.slice_at(chat.members(), 0, pack)[0]


def test_rows_that_are_no_messages_are_packed_each_time():
    directory = MemoryDirectory("many", [MemoryFile(f"{number}") for number in range(SLICE_ROWS)])
    entries, pack = EntryCache(), Packer()
    for _ in range(2):
        entries.slice_at(directory.members(), 0, pack)
    assert pack.starts == [0, 0]


def test_few_slices_are_kept_the_least_recently_used_dropped_first(chat, monkeypatch):
    monkeypatch.setattr(entries_module, "MAX_SLICES", 2)
    for _ in range(3 * SLICE_ROWS):
        chat.say("user", b"")
    entries, pack, rows = EntryCache(), Packer(), chat.members()
    for number in (0, 1, 0, 2, 0, 1):
        entries.slice_at(rows, number * SLICE_ROWS, pack)
    assert [start // SLICE_ROWS for start in pack.starts] == [0, 1, 2, 1]


@pytest.mark.parametrize("room", [64, 100, 1000, 11_000, 20_000])
def test_reads_of_any_size_give_every_entry_once(chat, room):
    rows = chat.members()
    expected = b"".join(dirents(rows.columns(0, len(rows)), 0))
    for resume in ("cookie", "offset"):
        listing, got, cookie = Listing(chat), b"", 0
        while True:
            if resume == "cookie":
                data = listing.from_cookie(cookie, room, dirents)
            else:
                data = listing.from_offset(len(got), room, dirents)
            if not data:
                break
            assert len(data) <= room
            got += data
            cookie = got.count(b"-user")
        assert got == expected
