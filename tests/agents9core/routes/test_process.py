import os
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.routes import process as process_module
from agents9core.routes.process import ProcessTable, parse_stat
from tests.support.fakeproc import BTIME, stat_line


def table(proc):
    return ProcessTable(str(proc.root))


def test_stat_fields_are_counted_from_the_last_parenthesis():
    parsed = parse_stat(stat_line(7, "weird) R 1 (x", start=6070))
    assert (parsed.comm, parsed.state, parsed.start) == ("weird) R 1 (x", "S", 6070)


def test_stat_with_no_more_than_the_fields_of_old_kernels_is_read():
    line = b"601 (claude) S 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 6010 0 0"
    assert parse_stat(line) == ("claude", "S", 6010, None, False, 0, 1)


def test_stat_without_permission_shows_no_layout():
    fields = stat_line(7, "x").split()
    fields[25] = fields[26] = b"1"
    assert parse_stat(b" ".join(fields)).layout is None


def test_stat_tells_a_copy_of_its_parent():
    line = stat_line(7, "claude").split()
    line[8] = b"4194368"
    assert parse_stat(b" ".join(line)).forked
    assert not parse_stat(stat_line(7, "claude")).forked


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"7",
        b"7 (x",
        b"7 x) S",
        b"7 )x( S " + b"1 " * 50,
        b"7 (x) S 1 2",
        stat_line(7, "x", start=5)[:40],
    ],
)
def test_stat_that_is_none_is_none(line):
    assert parse_stat(line) is None


@given(st.binary(max_size=200))
def test_stat_of_garbage_never_raises(line):
    parse_stat(line)


@given(
    st.binary(max_size=15).filter(lambda comm: b"\n" not in comm),
    st.integers(0, 2**63),
    st.sampled_from(string.ascii_letters),
)
def test_stat_round_trip(comm, start, state):
    parsed = parse_stat(stat_line(1, os.fsdecode(comm), start=start, state=state))
    assert (os.fsencode(parsed.comm), parsed.start, parsed.state) == (comm, start, state)


def test_pids_are_the_numeric_names(proc):
    proc.put(12, "a", ["a"])
    proc.put(3, "b", ["b"])
    (proc.root / "self").mkdir()
    (proc.root / "²").mkdir()
    assert sorted(table(proc).pids()) == [3, 12]


def test_pids_of_no_table_are_none(tmp_path):
    assert ProcessTable(str(tmp_path / "nowhere")).pids() == []


def test_look_sees_pid_start_comm_and_state(proc):
    proc.put(12, "claude", ["claude"], start=77)
    found = table(proc).read_own(12)
    assert (found.pid, found.start, found.comm, found.state) == (12, 77, "claude", "S")


@pytest.mark.parametrize("state", ["Z", "X"])
def test_look_at_the_dead_is_none(proc, state):
    proc.put(12, "claude", ["claude"], state=state)
    assert table(proc).read_own(12) is None


def test_look_at_nobody_is_none(proc):
    assert table(proc).read_own(99) is None


def test_look_at_another_users_process_is_none(proc):
    proc.put(12, "claude", ["claude"], uid=os.getuid() + 1)
    assert table(proc).read_own(12) is None
    assert table(proc).read(12) is not None


def test_look_at_a_process_without_status_is_none(proc):
    (proc.put(12, "claude", ["claude"]) / "status").unlink()
    assert table(proc).read_own(12) is None


def test_the_overflow_uid_is_nobodys_ours_included(proc, monkeypatch):
    nobody = int(Path("/proc/sys/kernel/overflowuid").read_text())
    monkeypatch.setattr(os, "getuid", lambda: nobody)
    proc.put(12, "claude", ["claude"], uid=nobody)
    assert table(proc).read_own(12) is None


def test_argv_environ_links(proc):
    proc.put(12, "x", ["x", "", "y"], environ={"A": "1", "B": "a=b"}, cwd="/srv", exe="/usr/bin/x")
    proc.link(12, "ns/pid", "pid:[4026531836]")
    found = table(proc).read_own(12)
    assert found.argv() == ("x", "", "y")
    assert found.environ() == {"A": "1", "B": "a=b"}
    assert (found.cwd(), found.exe(), found.pid_namespace()) == ("/srv", "/usr/bin/x", "pid:[4026531836]")


def test_a_working_directory_that_was_removed_keeps_its_name(proc, tmp_path):
    proc.put(12, "x", ["x"], cwd="/gone/x (deleted)")
    assert table(proc).read_own(12).cwd() == "/gone/x"
    (tmp_path / "y (deleted)").mkdir()
    proc.put(13, "x", ["x"], cwd=str(tmp_path / "y (deleted)"))
    assert table(proc).read_own(13).cwd() == str(tmp_path / "y (deleted)")


def test_argv_that_a_title_was_written_over_ends_at_the_nuls(proc):
    (proc.put(12, "claude", []) / "cmdline").write_bytes(b"claude" + b"\0" * 300)
    assert table(proc).read_own(12).argv() == ("claude",)


def test_argv_of_a_kernel_thread_is_empty(proc):
    proc.put(2, "kthreadd", [])
    assert table(proc).read_own(2).argv() == ()


def test_names_and_values_that_are_not_utf8_survive(proc):
    (proc.put(12, "x", ["x"]) / "environ").write_bytes(b"HOME=/h\xff\0broken\0HOME=/second\0")
    assert table(proc).read_own(12).environ() == {"HOME": "/h\udcff"}


def test_what_is_refused_is_unknown(proc):
    directory = proc.put(12, "x", ["x"])
    (directory / "fd").rmdir()
    (directory / "cmdline").unlink()
    found = table(proc).read_own(12)
    assert found.argv() is found.environ() is found.cwd() is found.exe() is None
    assert found.open_files() is found.pid_namespace() is None


def test_what_a_process_that_ended_would_say_is_unknown(proc):
    proc.put(12, "x", ["x"], cwd="/srv", fds={3: "/dev/null"})
    found = table(proc).read_own(12)
    proc.end(12)
    assert found.argv() is found.cwd() is found.open_files() is found.real_uid() is None


def test_open_files_are_known_by_the_file_that_is_open(proc, tmp_path):
    (tmp_path / "a").write_text("a")
    proc.put(12, "x", ["x"], fds={3: tmp_path / "a", 4: "socket:[7]", 5: "/gone (deleted)"})
    files = {file.target: file for file in table(proc).read_own(12).open_files()}
    stat = (tmp_path / "a").stat()
    assert files[str(tmp_path / "a")].identity() == (stat.st_dev, stat.st_ino)
    assert files["socket:[7]"].identity() is None
    assert files["/gone (deleted)"].identity() is None


def test_open_files_whose_links_are_refused_are_left_out(proc):
    proc.put(12, "x", ["x"], fds={3: "/dev/null"})
    proc.refuse(12)
    assert list(table(proc).read_own(12).open_files()) == []


@pytest.mark.parametrize(
    ("flags", "writable"),
    [(os.O_RDONLY, False), (os.O_RDWR | os.O_APPEND, True), (os.O_WRONLY, True), (None, None)],
)
def test_open_files_say_whether_they_are_written(proc, flags, writable):
    proc.put(12, "x", ["x"])
    proc.open(12, 3, "/dev/null", flags)
    (file,) = table(proc).read_own(12).open_files()
    assert file.writable() is writable


def test_the_start_time_counts_from_the_tables_own_boot(proc):
    assert table(proc).started_ns(6050) == BTIME * 10**9 + 60_500_000_000


def test_the_start_time_counts_from_the_real_boot_where_the_table_has_none(proc):
    (proc.root / "stat").unlink()
    lines = Path("/proc/stat").read_text().splitlines()
    (real,) = (int(line.split()[1]) for line in lines if line.startswith("btime"))
    assert abs(table(proc).started_ns(0) - real * 10**9) <= 10**9


def test_a_boot_time_that_wanders_by_a_second_is_not_followed(proc, monkeypatch):
    monkeypatch.setattr(process_module, "_BTIME_SECONDS", -1)
    looked = table(proc)
    before = looked.started_ns(0)
    (proc.root / "stat").write_text(f"btime {BTIME + 1}\n")
    assert looked.started_ns(0) == before
    (proc.root / "stat").write_text(f"btime {BTIME + 2}\n")
    assert looked.started_ns(0) == before + 2 * 10**9


def test_the_real_table_has_this_process():
    found = ProcessTable().read_own(os.getpid())
    assert found.cwd() == os.getcwd()
    assert found.layout is not None
    assert found.environ() is not None
