"""A chat as one Markdown file: each message under a heading of its own.

    ## 00000413-bash · 2026-11-29T15:40:02Z

    ```
    Bash
    {"command":"make test"}
    ```

Calls and results stand in a fence that is longer than any run of backticks within. In other messages a line
that begins as such a heading does gets a backslash before it, so that nobody's words forge a speaker. How
long a message's section is follows from its size and one `mark`; nothing is rendered to know it. Pure.
"""

import re
from bisect import bisect_right
from datetime import UTC, datetime

PROSE = frozenset({"user", "assistant", "thinking", "system", "agent"})
"""The kinds whose text stands as it is; all others are fenced."""
LOOKAHEAD = 12
"""Bytes by which a line is known to begin as a heading does."""

_FORGED = re.compile(rb"(?<=\n)## (?=[0-9]{8}-)")
_FORGED_FIRST = re.compile("## [0-9]{8}-")
_FORGED_LATER = re.compile("\n## [0-9]{8}-")
"""It begins with what it is searched for by; with a `^` it takes ten times as long."""
_TICKS = re.compile("`{4,}")
_RUNS = re.compile(rb"`+")
_SECOND_NS = 1_000_000_000


def opening(id_: int, kind: str, time_ns: int, mark: int) -> bytes:
    """Return what stands before a message's text."""
    moment = datetime.fromtimestamp(time_ns // _SECOND_NS, UTC)
    heading = f"## {id_:08d}-{kind} · {moment:%Y-%m-%dT%H:%M:%SZ}\n\n".encode()
    return heading if kind in PROSE else heading + b"`" * mark + b"\n"


def closing(kind: str, mark: int) -> bytes:
    """Return what stands after a message's text."""
    return b"\n" if kind in PROSE else b"`" * mark + b"\n\n"


_OPENING_BYTES = len(opening(0, "", 0, 0)) - 1


def frame(kind: str) -> int:
    """Return how many bytes the section of a message has besides its text, and for its `section_mark`."""
    return _OPENING_BYTES + len(kind) + (1 if kind in PROSE else 3)


def section_mark(is_prose: bool, marks: int) -> tuple[int, int]:
    """Return what a section's size depends on besides, and by how many bytes.

    That is, of prose, the headings to be escaped; else the fence's length. *marks*: those headings, or the
    longest run of backticks (`render.Extent`).
    """
    if is_prose:
        return marks, marks
    fence = max(3, marks + 1)
    return fence, 2 * fence


def forged_in(text: str) -> int:
    """Return how many lines of *text* begin as a heading does."""
    if "## " not in text:
        return 0
    return (_FORGED_FIRST.match(text) is not None) + len(_FORGED_LATER.findall(text))


def ticks_in(text: str) -> int:
    """Return the longest run of backticks, of three and more; 0 where there is none."""
    at = text.find("```")
    if at < 0:
        return 0
    return max(map(len, _TICKS.findall(text, at))) if text.find("````", at) >= 0 else 3


def escaped(data: bytes, at_line: bool = True, next_bytes: bytes = b"") -> bytes:
    """Return *data* with a backslash before each line that begins as a heading does.

    *at_line*: whether it begins a line; *next_bytes*: what comes after it, LOOKAHEAD bytes at least.
    """
    if b"#" not in data:
        return data
    before = b"\n" if at_line else b"x"
    ahead = next_bytes[: LOOKAHEAD - 1]  # too short for a heading of its own
    shown = _FORGED.sub(rb"\\\g<0>", before + data + ahead)
    return shown[1 : len(shown) - len(ahead)]


class Marks:
    """Counts, over a text that comes in pieces, what its section's size depends on."""

    def __init__(self) -> None:
        self.forged: list[int] = []
        """Of each piece that was fed: the headings that begin in it."""
        self.ticks = 0
        self._starts: list[int] = []
        self._size = 0
        self._tail = b"\n"
        self._run = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        self.forged.append(0)
        self._starts.append(self._size)
        joined = self._tail + data
        for found in _FORGED.finditer(joined):
            begins = self._size - len(self._tail) + found.start()
            self.forged[bisect_right(self._starts, begins) - 1] += 1
        self._size += len(data)
        self._tail = joined[-LOOKAHEAD:]
        self._count_ticks(data)

    def _count_ticks(self, data: bytes) -> None:
        """Find the longest run; one may go on from piece to piece."""
        for run in _RUNS.finditer(data):
            self._run = len(run[0]) + (self._run if run.start() == 0 else 0)
            if self._run >= 3:
                self.ticks = max(self.ticks, self._run)
        if data and not data.endswith(b"`"):
            self._run = 0
