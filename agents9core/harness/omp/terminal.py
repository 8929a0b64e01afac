"""What omp notes of its terminals: `terminal-sessions/<terminal>` names the session last opened there.

The note is written at the start, `/new` and `/resume`, and outlives the process. Its lines: the cwd, the
session's file, then perhaps `fresh` (that is not written yet) and `cwdstat <dev> <ino>`.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agents9core.files.root import Root
from agents9core.routes.process import OpenDescriptor, Process

_NOTE_BYTES = 16 << 10
_TTY = r"/dev/((?:pts/|tty|hvc)\w*|console)"
_PTS_MAJORS = range(136, 144)
_CONSOLES = 4
_SERIAL = 64
_VARIABLES = (
    ("TMUX_PANE", "tmux"), ("CMUX_SURFACE_ID", "cmux"), ("KITTY_WINDOW_ID", "kitty"),
    ("WEZTERM_PANE", "wezterm"), ("TERM_SESSION_ID", "apple"), ("WT_SESSION", "wt"),
)  # fmt: skip
"""What names a terminal where standard input is none, in omp's order; zellij's variables go first."""


class Note(NamedTuple):
    """The session that was last opened in a terminal."""

    cwd: str
    file: str
    """An absolute path."""
    fresh: bool
    """Whether the file may not be there yet."""
    written_ns: int


def terminal_of(process: Process, files: Iterable[OpenDescriptor], environ: Mapping[str, str]) -> str | None:
    """Return what omp calls the terminal of a process; None where it has none.

    Where its files may not be looked at, its controlling terminal stands for its standard input.
    """
    targets = {os.path.basename(file.link): file.target for file in files}
    stdin = targets.get("0") or ("" if targets else _controlling(process.tty))
    if found := re.fullmatch(_TTY, stdin, re.ASCII):
        return found[1].replace("/", "-")
    if pane := environ.get("ZELLIJ_PANE_ID"):
        session = re.sub(r"[\\/]", "-", environ.get("ZELLIJ_SESSION_NAME", ""))
        return f"zellij-{session}-{pane}" if session else f"zellij-{pane}"
    named = (f"{prefix}-{environ[variable]}" for variable, prefix in _VARIABLES if environ.get(variable))
    return next(named, None)


def _controlling(number: int) -> str:
    """Return the device of a tty number of `stat`, "" for none. See makedev(3)."""
    major, minor = os.major(number), os.minor(number)
    if major in _PTS_MAJORS:
        return f"/dev/pts/{(major - _PTS_MAJORS[0]) * 256 + minor}"
    if major == _CONSOLES:
        return f"/dev/tty{minor}" if minor < _SERIAL else f"/dev/ttyS{minor - _SERIAL}"
    return ""


def read_note(terminals: Root, terminal: str) -> Note | None:
    """Return what was noted of a terminal; None where that is no note. Raises as Root.open does, OSError."""
    with terminals.opened((terminal,)) as (fd, stat):
        lines = os.fsdecode(os.pread(fd, _NOTE_BYTES, 0)).strip().split("\n")
    if len(lines) < 2 or not lines[0].startswith("/"):
        return None
    return Note(lines[0], os.path.join(lines[0], lines[1]), "fresh" in lines[2:], stat.mtime_ns)
