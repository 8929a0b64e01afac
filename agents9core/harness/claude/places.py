"""Where a session's transcript lies: `<home>/projects/<directory>/<session>.jsonl`.

A session may have several: it was gone on with elsewhere, or moved into a worktree, and what stays behind may
be a stub. The one in the directory that is named after the process's cwd is being written, where it holds
messages; else the newest that does. Sizes say nothing.
"""

import re
import threading
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from agents9core.caches import LRU
from agents9core.errors import Denied, TreeError
from agents9core.files.root import NOT_THERE, Root, read_at
from agents9core.files.statx import FileStat

Place = tuple[str, str]
"""The directory below `projects`, and the file's name."""
_HEAD_BYTES = 256 << 10
_LONGEST_NAME = 200
"""What is longer is cut, and a hash of the path is added."""
LOOK_SECONDS = 0.04
"""How long one look at the times of all directories serves."""
_SETTLED_NS = 20_000_000
"""A directory that moved so lately may move again without another time."""


class _Hit(NamedTuple):
    has_messages: bool
    mtime_ns: int
    path: Place


class _ClaudePlacesLook(NamedTuple):
    """What the directories were like. None: they may have moved since."""

    began: float
    state: int | None


class Places:
    """Finds transcripts below `projects` directories. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looks: LRU[str, _ClaudePlacesLook] = LRU()
        self._known: LRU[tuple[str, str], tuple[int, tuple[Place, ...]]] = LRU(1 << 14)
        self._spoken: LRU[tuple[str, Place], object] = LRU(1 << 14)
        """Files that hold messages, by what they are: they do so for good."""

    def of(self, root: Root, id: str, cwds: Iterable[str] = ()) -> Place | None:
        """Return where a session lies that is gone on with in one of *cwds*, the likeliest first.

        None while it lies nowhere. Raises Unavailable.
        """
        names = (name for cwd in cwds for name in self._named_after(root, cwd))
        for place in ((name, f"{id}.jsonl") for name in names):
            hit = self._look_at(root, place)
            if hit and hit.has_messages:
                return place
        return self.newest(root, self._all(root, id))

    def newest(self, root: Root, places: tuple[Place, ...]) -> Place | None:
        """Return the place that was written last, of those with messages first."""
        hits = [hit for place in places if (hit := self._look_at(root, place))]
        return max(hits).path if hits else None

    def put(self, root: Root, found: Mapping[str, Iterable[Place]]) -> None:
        """Remember where all sessions were just found."""
        state = self._state(root)
        if state is not None:
            with self._lock:
                for id, places in found.items():
                    self._known[root.path, id] = (state, tuple(places))

    def _all(self, root: Root, id: str) -> tuple[Place, ...]:
        """Return every place of a session; searched again when a directory has moved."""
        state = self._state(root)
        with self._lock:
            known = self._known.get((root.path, id))
        if known is not None and known[0] == state:
            return known[1]
        name = f"{id}.jsonl"
        places = tuple((project, name) for project in root.directories_with(name))
        if state is not None:
            with self._lock:
                self._known[root.path, id] = (state, places)
        return places

    def _state(self, root: Root) -> int | None:
        """Return what changes when a file is made, or goes, in a directory of the store."""
        now = time.monotonic()
        with self._lock:
            look = self._looks.get(root.path)
        if look is None or now - look.began > LOOK_SECONDS:
            look = _ClaudePlacesLook(now, _directories(root))
            with self._lock:
                self._looks[root.path] = look
        return look.state

    def _look_at(self, root: Root, place: Place) -> _Hit | None:
        try:
            stat = root.stat(place)
            if not stat.is_regular:
                return None
            return _Hit(self._has_messages(root, place, stat), stat.mtime_ns, place)
        except Denied:
            return _Hit(has_messages=False, mtime_ns=0, path=place)
        except NOT_THERE:
            return None

    def _has_messages(self, root: Root, place: Place, stat: FileStat) -> bool:
        with self._lock:
            if self._spoken.get((root.path, place)) == stat.identity:
                return True
        with root.opened(place) as (fd, _):
            found = has_messages(read_at(fd, place, _HEAD_BYTES))
        if found:
            with self._lock:
                self._spoken[root.path, place] = stat.identity
        return found

    def _named_after(self, root: Root, cwd: str) -> list[str]:
        """Return the directories of a store that may be named after a cwd."""
        name = directory_name(cwd)
        if len(name) <= _LONGEST_NAME:
            return [name]
        begins = f"{name[:_LONGEST_NAME]}-"
        return sorted(found for found in root.names() if found.startswith(begins))


def directory_name(cwd: str) -> str:
    """Return what a cwd's directory is called: JavaScript sees UTF-16, so one emoji is two characters."""
    units = cwd.encode("utf-16-le", "surrogatepass")
    characters = (chr(units[at] | units[at + 1] << 8) for at in range(0, len(units), 2))
    return "".join(one if re.fullmatch("[A-Za-z0-9]", one) else "-" for one in characters)


def _directories(root: Root) -> int | None:
    try:
        found = sorted((name, stat.mtime_ns) for name, stat in root.entries())
    except (TreeError, OSError):
        return None
    settled = all(mtime_ns < time.time_ns() - _SETTLED_NS for _, mtime_ns in found)
    return hash(tuple(found)) if settled else None


class _Line(msgspec.Struct):
    type: str = ""


_LINE = msgspec.json.Decoder(_Line)
_SAYS_MESSAGE = re.compile(rb'"type":\s*"(?:user|assistant)"')


def has_messages(head: bytes) -> bool:
    """Return whether what a transcript begins with holds messages, or what looks like one that is cut."""
    return any(_is_message(line) for line in head.split(b"\n"))


def _is_message(line: bytes) -> bool:
    if not _SAYS_MESSAGE.search(line):
        return False
    try:
        return _LINE.decode(line).type in ("user", "assistant")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return True  # cut at the window's end, or damaged: its words must do
