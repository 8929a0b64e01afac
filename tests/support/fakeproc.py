"""A process table under a temporary directory, in the shape of proc(5)."""

import os
from pathlib import Path

BTIME = 1_795_000_000
"""When the made-up machine booted: November 2026, in seconds since 1970."""
HZ = 100


class FakeProc:
    """Puts processes and locks below *root*; what is put again under a pid replaces what was there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        (root / "stat").write_text(f"cpu  1 2 3 4\nbtime {BTIME}\nprocesses 9\n")
        (root / "locks").write_text("")
        self._locks: list[str] = []

    def put(
        self,
        pid: int,
        comm: str,
        argv: list[str],
        *,
        start: int = 5000,
        state: str = "S",
        uid: int | None = None,
        environ: dict[str, str] | None = None,
        cwd: str | None = None,
        exe: str | None = None,
        fds: dict[int, str | Path] | None = None,
        layout: int | None = 1,
    ) -> Path:
        """Make a process. *layout* is where its memory lies: another after an execve, None if hidden."""
        directory = self.root / str(pid)
        (directory / "fd").mkdir(parents=True, exist_ok=True)
        (directory / "stat").write_bytes(stat_line(pid, comm, start=start, state=state, layout=layout))
        owner = os.getuid() if uid is None else uid
        (directory / "status").write_text(
            f"Name:\t{comm}\nPid:\t{pid}\nUid:\t{owner}\t{owner}\t{owner}\t{owner}\n"
        )
        (directory / "cmdline").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in argv))
        if environ is not None:
            lines = (os.fsencode(f"{name}={value}") + b"\0" for name, value in environ.items())
            (directory / "environ").write_bytes(b"".join(lines))
        for name, target in (("cwd", cwd), ("exe", exe)):
            if target is not None:
                self.link(pid, name, target)
        for number, target in (fds or {}).items():
            self.open(pid, number, target)
        return directory

    def link(self, pid: int, name: str, target: str) -> None:
        link = self.root / str(pid) / name
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)

    def open(self, pid: int, number: int, target: str | Path, flags: int | None = None) -> None:
        """Let a process have a file open; *flags* as in `fdinfo`, which is not there otherwise."""
        self.link(pid, f"fd/{number}", str(target))
        if flags is not None:
            info = self.root / str(pid) / "fdinfo" / str(number)
            info.parent.mkdir(exist_ok=True)
            info.write_text(f"pos:\t0\nflags:\t0{flags:o}\nmnt_id:\t30\nino:\t1\n")

    def close(self, pid: int, number: int) -> None:
        (self.root / str(pid) / "fd" / str(number)).unlink()

    def refuse(self, pid: int) -> None:
        """Take away what another user namespace may not see: links, environment and layout."""
        directory = self.root / str(pid)
        for name in ("cwd", "exe", "environ"):
            (directory / name).unlink(missing_ok=True)
        for link in (directory / "fd").iterdir():
            link.unlink()
            link.touch()  # listed, but no link to be read

    def contain(self, pid: int, inner: int, namespace: str) -> None:
        """Put a process into a container, where its pid is *inner*."""
        status = self.root / str(pid) / "status"
        status.write_text(f"{status.read_text()}NSpid:\t{pid}\t{inner}\n")
        self.link(pid, "ns/pid", namespace)

    def flock(self, pid: int, path: Path, kind: str = "WRITE", device: str = "fe:00") -> None:
        self._locks.append(f"FLOCK  ADVISORY  {kind} {pid} {device}:{path.stat().st_ino} 0 EOF")
        self._write_locks()

    def unlock(self, pid: int) -> None:
        self._locks = [line for line in self._locks if f" {pid} " not in line]
        self._write_locks()

    def _write_locks(self) -> None:
        lines = (f"{number}: {line}\n" for number, line in enumerate(self._locks, 1))
        (self.root / "locks").write_text("".join(lines))

    def end(self, pid: int) -> None:
        """Let a process end: its directory is gone."""
        (self.root / str(pid)).rename(self.root / f"ended-{pid}-{len(list(self.root.iterdir()))}")


def stat_line(pid: int, comm: str, *, start: int = 5000, state: str = "S", layout: int | None = 1) -> bytes:
    """Return a line of 52 fields."""
    fields = ["0"] * 52
    fields[0], fields[2], fields[21] = str(pid), state, str(start)
    if layout is not None:
        for field in (26, 27, 28, 48, 49, 50, 51):
            fields[field - 1] = str(layout * 1000 + field)
    rest = " ".join(fields[2:]).encode()
    return b"%d (%b) %b\n" % (pid, os.fsencode(comm), rest)


def started_ms(start: int) -> int:
    """Return when a process with this start time began, in milliseconds since 1970."""
    return BTIME * 1000 + start * 1000 // HZ
