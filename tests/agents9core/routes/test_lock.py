from hypothesis import given
from hypothesis import strategies as st

from agents9core.routes.lock import parse_locks, read_locks
from tests.support.fakeproc import FakeProc


def parse(text):
    return parse_locks(text.encode().splitlines())


def test_an_exclusive_flock_is_held():
    assert parse("1: FLOCK  ADVISORY  WRITE 26283 fe:00:5488867 0 EOF\n") == {26283: {5488867}}


def test_several_of_one_process_are_together():
    lines = "1: FLOCK  ADVISORY  WRITE 7 fe:00:1 0 EOF\n27: FLOCK  ADVISORY  WRITE 7 00:2f:2 0 EOF\n"
    assert parse(lines) == {7: {1, 2}}


def test_a_waiter_holds_nothing():
    lines = "1: FLOCK  ADVISORY  WRITE 7 fe:00:1 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 8 fe:00:1 0 EOF\n"
    assert parse(lines) == {7: {1}}


def test_readers_posix_locks_leases_and_open_file_locks_do_not_count():
    lines = """\
1: FLOCK  ADVISORY  READ 7 fe:00:1 0 EOF
2: POSIX  ADVISORY  WRITE 7 fe:00:2 0 EOF
3: LEASE  ACTIVE    WRITE 7 fe:00:3 0 EOF
4: OFDLCK ADVISORY  WRITE -1 fe:00:4 0 EOF
"""
    assert parse(lines) == {}


def test_a_pid_that_another_namespace_hides_is_no_ones():
    assert parse("1: FLOCK  ADVISORY  WRITE -1 fe:00:4 0 EOF\n") == {}


@given(st.binary(max_size=300))
def test_garbage_never_raises(data):
    parse_locks(data.splitlines())


@given(st.integers(1, 2**22), st.integers(0, 2**64 - 1), st.binary(max_size=80))
def test_garbage_beside_it_does_not_hide_a_lock(pid, inode, garbage):
    line = b"5: FLOCK  ADVISORY  WRITE %d 08:01:%d 0 EOF" % (pid, inode)
    assert inode in parse_locks([*garbage.splitlines(), line])[pid]


def test_the_table_is_read_from_its_root(tmp_path):
    proc = FakeProc(tmp_path / "proc")
    lock = tmp_path / "a.lock"
    lock.touch()
    proc.flock(7, lock)
    assert read_locks(str(proc.root)) == {7: {lock.stat().st_ino}}


def test_a_table_that_cannot_be_read_is_empty(tmp_path):
    assert read_locks(str(tmp_path)) == {}
