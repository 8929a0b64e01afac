"""The process table: the processes of this host, and what each states about itself. See proc(5).

The only module that reads it; another directory of the same shape can stand in for `/proc`. Everything but
`stat` is read when asked for, and a refusal (another user, a user namespace, a process that ended) is None:
"unknown", never an exception.
"""

import os
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_STAT_BYTES = 4096
_ARGV_BYTES = 1 << 20
_ENVIRON_BYTES = 8 << 20
"""More than execve(2) accepts by default (a quarter of an 8 MiB stack, or 6 MiB)."""
_PAGE = 4096
"""The kernel gives a file of the table whole, or pages of it: what is shorter than one was all."""
_ENDED = ("Z", "X", "x")
_HIDDEN = (b"0", b"1")
"""What `startcode` shows where the reader may not inspect the process (or it has no memory at all)."""
_DELETED = " (deleted)"
_FORKED = 0x40
"""PF_FORKNOEXEC of linux/sched.h."""
_BTIME_SECONDS = 10
"""How long a reading of the boot time is used before it is checked against the clock again."""


class OpenDescriptor(NamedTuple):
    """One descriptor of a process."""

    link: str
    """The link in the process's `fd` directory; opening or stat'ing it reaches the open file itself."""
    target: str
    """The path it was opened by, as the kernel knows it now; ` (deleted)` at the end when it is unlinked."""

    def identity(self) -> tuple[int, int] | None:
        """Return (dev, ino) of the file that is really open."""
        try:
            stat = os.stat(self.link)
        except (OSError, ValueError):
            return None
        return (stat.st_dev, stat.st_ino)

    def writable(self) -> bool | None:
        """Return whether it is open for writing, by `fdinfo`."""
        directory, number = os.path.split(self.link)
        info = _read(f"{directory}info/{number}", _STAT_BYTES)
        flags = re.search(rb"^flags:\s*([0-7]+)$", info or b"", re.MULTILINE)
        return int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY if flags else None


class Process(NamedTuple):
    """A process as `stat` showed it; (pid, start) is its identity."""

    pid: int
    start: int
    """Clock ticks after boot: field 22 of `stat`."""
    comm: str
    state: str
    layout: bytes | None = None
    """Where its program and arguments lie in memory: another value after each execve. None: refused."""
    forked: bool = False
    """Whether it is a copy of its parent still, and has run no program of its own: a helper being started."""
    directory: str = ""
    tty: int = 0
    """The device number of its controlling terminal; 0: it has none."""
    parent: int = 0
    """The pid of the process that started it, or has taken it over."""

    def argv(self) -> tuple[str, ...] | None:
        """Return its arguments; empty for a kernel thread, a zombie, or in the middle of an execve."""
        line = _read(f"{self.directory}/cmdline", _ARGV_BYTES)
        if line is None:
            return None
        # A program that writes its title over its arguments leaves a run of NULs (claude 2.0.76).
        line = line.rstrip(b"\0")
        return tuple(map(os.fsdecode, line.split(b"\0"))) if line else ()

    def environ(self) -> dict[str, str] | None:
        """Return the environment it was started with. Of a repeated name the first counts: getenv(3)."""
        block = _read(f"{self.directory}/environ", _ENVIRON_BYTES)
        if block is None:
            return None
        found: dict[str, str] = {}
        for assignment in block.split(b"\0"):
            name, equals, value = assignment.partition(b"=")
            if equals:
                found.setdefault(os.fsdecode(name), os.fsdecode(value))
        return found

    def exe(self) -> str | None:
        """Return the path of its program."""
        return _link(f"{self.directory}/exe")

    def cwd(self) -> str | None:
        """Return its working directory; of one that was removed the path that it had."""
        path = _link(f"{self.directory}/cwd")
        if path is None or not path.endswith(_DELETED) or os.path.lexists(path):
            return path
        return without_deleted(path)

    def pid_namespace(self) -> str | None:
        """Return what its pid namespace is called, `pid:[4026531836]`."""
        return _link(f"{self.directory}/ns/pid")

    def root(self) -> str:
        """Return the path by which its root directory is reached."""
        return f"{self.directory}/root"

    def namespace_pids(self) -> tuple[int, ...]:
        """Return its pid in each pid namespace that it is in, the innermost last; empty where refused."""
        status = _read(f"{self.directory}/status", _STAT_BYTES)
        pids = re.search(rb"^NSpid:\s+([\d\t ]+)$", status or b"", re.MULTILINE)
        return tuple(map(int, pids[1].split())) if pids else ()

    def open_files(self) -> Iterator[OpenDescriptor] | None:
        """Return the descriptors whose links can be read, or None where they may not even be listed."""
        try:
            numbers = os.listdir(f"{self.directory}/fd")
        except OSError:
            return None
        links = (f"{self.directory}/fd/{number}" for number in numbers)
        return (OpenDescriptor(link, target) for link in links if (target := _link(link)) is not None)

    def real_uid(self) -> int | None:
        """Return whose process it is; `stat` of its directory would not say it for every process."""
        status = _read(f"{self.directory}/status", _STAT_BYTES)
        uid = re.search(rb"^Uid:\s+(\d+)", status or b"", re.MULTILINE)
        return int(uid[1]) if uid else None


class ProcessTable:
    """The processes below one directory. May be used from several threads."""

    def __init__(self, root: str = "/proc") -> None:
        self.root = root
        self._uid = os.getuid()
        self._nobody = int(_read("/proc/sys/kernel/overflowuid", 16) or 65534)
        self._hz = os.sysconf("SC_CLK_TCK")
        self._boot = (0, float("-inf"))

    def pids(self) -> list[int]:
        """Return the pids of now, unordered."""
        try:
            names = os.listdir(self.root)
        except OSError:
            return []
        return [int(name) for name in names if name.isascii() and name.isdigit()]

    def read(self, pid: int) -> Process | None:
        """Read one process, of any user; None when it has ended. Reads `stat` alone."""
        directory = f"{self.root}/{pid}"
        line = _read(f"{directory}/stat", _STAT_BYTES)
        parsed = parse_stat(line) if line else None
        if parsed is None or parsed.state in _ENDED:
            return None
        return Process(
            pid,
            parsed.start,
            parsed.comm,
            parsed.state,
            parsed.layout,
            parsed.forked,
            directory,
            parsed.tty,
            parsed.parent,
        )

    def read_own(self, pid: int) -> Process | None:
        """Read one process; None when it has ended or is not this server's user's."""
        process = self.read(pid)
        return process if process and self.is_ours(process) else None

    def is_ours(self, process: Process) -> bool:
        """Return whether the server's own user runs it. The overflow uid identifies no user, not the server's
        either."""
        return process.real_uid() == self._uid != self._nobody

    def children(self, process: Process) -> list[Process]:
        """Return the processes that one has started and that run."""
        pids = _children(process.directory)
        found = filter(None, map(self.read, self.pids() if pids is None else pids))
        return [child for child in found if child.parent == process.pid]

    def started_ns(self, start: int) -> int:
        """Return when *start* (in ticks after boot) was, in nanoseconds since 1970."""
        return self._boot_seconds() * 1_000_000_000 + start * 1_000_000_000 // self._hz

    def _boot_seconds(self) -> int:
        """Return the boot time. It wanders by a second where the clock is slewed; that is not followed."""
        seconds, read_at = self._boot
        now = time.monotonic()
        if now - read_at > _BTIME_SECONDS:
            fresh = _read_btime(f"{self.root}/stat") or _read_btime("/proc/stat") or 0
            seconds = fresh if abs(fresh - seconds) > 1 else seconds
            self._boot = (seconds, now)
        return seconds


class ProcessStat(NamedTuple):
    """The fields of `/proc/<pid>/stat` that are used."""

    comm: str
    state: str
    start: int
    layout: bytes | None
    forked: bool
    tty: int
    parent: int


def parse_stat(line: bytes) -> ProcessStat | None:
    """Parse a `stat` line, None where it is none. comm may hold `) `: the last parenthesis ends it."""
    opening, closing = line.find(b"("), line.rfind(b")")
    fields = line[closing + 1 :].split()
    if not 0 <= opening < closing or len(fields) < 20 or not fields[19].isdigit():
        return None
    shown = len(fields) >= 49 and fields[23] not in _HIDDEN
    return ProcessStat(
        comm=os.fsdecode(line[opening + 1 : closing]),
        state=fields[0].decode("ascii", "replace"),
        start=int(fields[19]),
        # startcode, endcode, startstack; arg_start, arg_end, env_start, env_end
        layout=b" ".join(fields[23:26] + fields[45:49]) if shown else None,
        forked=fields[6].isdigit() and int(fields[6]) & _FORKED != 0,
        tty=int(fields[4]) if fields[4].isdigit() else 0,
        parent=int(fields[1]) if fields[1].isdigit() else 0,
    )


def without_deleted(target: str) -> str:
    """Return a link's path without the mark of an unlinked file."""
    return target.removesuffix(_DELETED)


def _read(path: str, limit: int) -> bytes | None:
    """Return a file's bytes, up to *limit*; None where it cannot be read."""
    try:
        fd = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        data = os.read(fd, _PAGE)
        while _PAGE <= len(data) < limit and (more := os.read(fd, limit - len(data))):
            data += more
    except OSError:
        return None
    finally:
        os.close(fd)
    return data


def _children(directory: str) -> list[int] | None:
    """Return the pids of a process's children; None where the kernel keeps no list of them."""
    try:
        tasks = os.listdir(f"{directory}/task")
    except OSError:
        return None
    lists = [_read(f"{directory}/task/{task}/children", 1 << 20) for task in tasks]
    if not any(found is not None for found in lists):
        return None
    return [int(pid) for found in lists for pid in (found or b"").split()]


def _read_btime(path: str) -> int | None:
    found = re.search(rb"^btime (\d+)$", _read(path, 1 << 20) or b"", re.MULTILINE)
    return int(found[1]) if found else None


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
