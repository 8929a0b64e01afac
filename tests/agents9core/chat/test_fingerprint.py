"""Whether a file is still the one that was read."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat import fingerprint as witness_module
from agents9core.chat.fingerprint import Change, Fingerprint
from agents9core.files.statx import statx

SAID = bytes(range(256)) * 8
LONG_AGO_NS, LATER_NS = 0, 2**62


class Watched:
    """A file, and a fingerprint that covered what it held."""

    def __init__(self, path, said=SAID):
        self.path = path
        path.write_bytes(said)
        self.fingerprint = Fingerprint()
        self.fingerprint.update(said)
        with open(path, "rb") as file:
            self.seen = statx(file.fileno())

    def verdict(self, checked_ns=LATER_NS, **now):
        """Look again; *now*: what the look shows instead of what it would."""
        self.fingerprint.accept(self.seen, checked_ns)
        with open(self.path, "rb") as file:
            stat = statx(file.fileno())._replace(**now)
            return self.fingerprint.compare(file.fileno(), stat)


@pytest.fixture
def watched(tmp_path):
    return Watched(tmp_path / "file")


@pytest.fixture
def _nothing_is_read(monkeypatch):
    def read(fd, count, offset):
        raise AssertionError("the file was read")

    monkeypatch.setattr(witness_module.os, "pread", read)


def moved(watched, **more):
    return watched.verdict(mtime_ns=watched.seen.mtime_ns + 1, **more)


def test_a_file_that_was_never_seen_grew(watched):
    with open(watched.path, "rb") as file:
        assert Fingerprint().compare(file.fileno(), watched.seen) is Change.GREW


@pytest.mark.usefixtures("_nothing_is_read")
def test_where_nothing_moved_nothing_is_read(watched):
    assert watched.verdict() is Change.SAME


def test_a_look_right_after_a_write_proves_nothing(watched):
    watched.path.write_bytes(b"x" + SAID[1:])
    same = {"mtime_ns": watched.seen.mtime_ns, "ctime_ns": watched.seen.ctime_ns}
    assert watched.verdict(watched.seen.ctime_ns + 20_000_000, **same) is Change.REPLACED
    assert watched.verdict(watched.seen.ctime_ns + 20_000_001, **same) is Change.SAME


def test_a_look_right_after_a_write_is_good_where_the_ends_still_stand(watched):
    assert watched.verdict(LONG_AGO_NS) is Change.SAME


def test_a_file_with_more_at_its_end_grew(watched):
    with open(watched.path, "ab") as file:
        file.write(b"more")
    assert watched.verdict() is Change.GREW


@pytest.mark.parametrize("place", [0, 63, len(SAID) - 64, len(SAID) - 1])
def test_a_longer_file_that_begins_with_something_else_is_another(watched, place):
    spoilt = bytearray(SAID + b"more")
    spoilt[place] ^= 1
    watched.path.write_bytes(spoilt)
    assert watched.verdict() is Change.REPLACED


def test_a_shorter_file_is_another(watched):
    os.truncate(watched.path, len(SAID) - 1)
    assert watched.verdict() is Change.REPLACED


@pytest.mark.parametrize("reborn", [{"btime_ns": 1}, {"ino": 1}, {"dev": 1}])
def test_a_file_born_anew_is_another(watched, reborn):
    assert watched.verdict(**reborn) is Change.REPLACED


def test_a_time_that_moves_before_the_size_does_is_no_other_file(watched):
    assert moved(watched) is Change.SAME


@pytest.mark.parametrize("place", [0, 64, 1000, len(SAID) - 65, len(SAID) - 1])
def test_a_file_rewritten_in_place_is_another(watched, place):
    with open(watched.path, "r+b") as file:
        file.seek(place)
        file.write(bytes([SAID[place] ^ 1]))
    assert moved(watched) is Change.REPLACED


def test_putting_the_time_back_hides_no_rewriting(watched):
    time.sleep(0.03)
    watched.path.write_bytes(SAID[:1000] + b"?" + SAID[1001:])
    os.utime(watched.path, ns=(watched.seen.mtime_ns, watched.seen.mtime_ns))
    assert watched.verdict() is Change.REPLACED


def test_what_stands_after_the_covered_bytes_may_be_anything(watched):
    watched.path.write_bytes(SAID + b"one")
    with open(watched.path, "rb") as file:
        watched.seen = statx(file.fileno())
    watched.path.write_bytes(SAID + b"two")
    assert moved(watched) is Change.SAME


def test_a_file_that_ends_while_it_is_hashed_is_another(watched, monkeypatch):
    real = os.pread
    monkeypatch.setattr(witness_module.os, "pread", lambda fd, n, at: real(fd, n, at) if n <= 64 else b"")
    assert moved(watched) is Change.REPLACED


def test_a_large_file_is_hashed_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(witness_module, "_CHUNK", 100)
    assert moved(Watched(tmp_path / "file")) is Change.SAME


@pytest.mark.parametrize("said", [b"", b"a", b"a" * 63, b"a" * 64, b"a" * 65])
def test_a_small_file_is_the_same_and_its_end_is_known(tmp_path, said):
    watched = Watched(tmp_path / "file", said)
    assert moved(watched) is Change.SAME
    if said:
        watched.path.write_bytes(said[:-1] + b"b")
        assert moved(watched) is Change.REPLACED


@given(st.lists(st.binary(max_size=100), max_size=8))
def test_any_cuts_cover_the_same(pieces):
    with pytest.MonkeyPatch.context() as patch:
        said = b"".join(pieces)
        patch.setattr(witness_module.os, "pread", lambda fd, count, at: said[at : at + count])
        watched = Fingerprint()
        for piece in pieces:
            watched.update(piece)
        stat = statx_of(len(said))
        watched.accept(stat, LATER_NS)
        assert watched.compare(-1, stat._replace(mtime_ns=2)) is Change.SAME


def statx_of(size):
    with open("/proc/self/exe", "rb") as file:
        return statx(file.fileno())._replace(size=size)
