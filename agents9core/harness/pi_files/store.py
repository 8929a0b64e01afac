"""omp's store: where a process keeps its sessions, how their directories are called, what a file begins with.

A session is `<sessions>/<directory of the cwd>/<time>_<id>.jsonl`; its subagents' transcripts lie in the
directory of the same name without `.jsonl`, theirs in turn below it. See docs/FORMATS.md.
"""

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agents9core.caches import LRU
from agents9core.chat.timestamps import time_ns
from agents9core.errors import TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.files.root import Root
from agents9core.files.statx import FileStat

SUFFIX = ".jsonl"
STORES = (("agent", "sessions"), ("sessions",))
"""Where the sessions of a home lie: in its `agent`, or in itself where a variable names it."""
ADVISOR = "__advisor"
"""What the names of the transcripts of advisors begin with, who are no subagents."""
TOP = Root("/")
"""For what a process writes outside its store, because its command line asks for it."""
_HEAD_BYTES = 64 << 10
_RACY_NS = 20_000_000
"""A stat so soon after a change may have missed another change of the same time."""
DEEPEST = 8
"""Levels of subagents that omp itself looks through."""
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")
_ID = "[0-9A-Za-z][0-9A-Za-z._-]{0,127}"
_PROFILE = "[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9_-])?"


class OmpStore(NamedTuple):
    """Where a process keeps its sessions, and which session each terminal was last in."""

    sessions: Root
    terminals: Root


class OmpTranscript(NamedTuple):
    """A file of a store, or one below `/` that a process's command line names."""

    root: Root
    path: tuple[str, ...]

    @property
    def full_path(self) -> str:
        """Its path from the top; two transcripts of one path are one."""
        return os.path.join(os.path.realpath(self.root.path), *self.path)

    @property
    def name_id(self) -> str | None:
        """The session id in its name."""
        id = self.path[-1].removesuffix(SUFFIX).rpartition("_")[2]
        return id if re.fullmatch(_ID, id) else None


class OmpHead(NamedTuple):
    """What the first two lines of a transcript hold."""

    id: str | None = None
    cwd: str | None = None
    title: str | None = None
    has_header: bool = False
    started_ns: int = 0
    """0: not stated."""


def store_of(environ: Mapping[str, str], profile: str | None, home: str, cwd: str | None) -> OmpStore:
    """Return where a process keeps its sessions, by its environment and the profile of its command line.

    *home*: `~/.omp`, or what was given in its place. XDG directories count once they have an `omp`.
    """
    profile = _profile(environ, profile)
    if own := _own(environ, profile, cwd):
        return OmpStore(Root(os.path.join(own, "sessions")), Root(os.path.join(own, "terminal-sessions")))
    below = ("profiles", profile) if profile else ()
    agent = os.path.join(_moved(environ, home), *below, "agent")
    data = _xdg(environ.get("XDG_DATA_HOME"), below) or agent
    state = _xdg(environ.get("XDG_STATE_HOME"), below) or agent
    return OmpStore(Root(os.path.join(data, "sessions")), Root(os.path.join(state, "terminal-sessions")))


def homes_of(environ: Mapping[str, str], profile: str | None, home: str, cwd: str | None) -> tuple[str, ...]:
    """Return the directories that a process keeps its files in, that of its sessions first; see `store_of`.

    A home has them in `agent`; a directory that a variable names has them itself.
    """
    profile = _profile(environ, profile)
    if own := _own(environ, profile, cwd):
        return (own,)
    below = ("profiles", profile) if profile else ()
    data = _xdg(environ.get("XDG_DATA_HOME"), below)
    main = os.path.join(_moved(environ, home), *below)
    return (data, main) if data else (main,)


def _moved(environ: Mapping[str, str], home: str) -> str:
    moved = environ.get("PI_CONFIG_DIR")
    return os.path.normpath(f"{user_home(environ)}/{moved}") if moved else home


def _own(environ: Mapping[str, str], profile: str | None, cwd: str | None) -> str | None:
    """Return the agent directory that a process was given, which no profile uses."""
    own = environ.get("PI_CODING_AGENT_DIR") if profile is None else None
    own = os.path.join(cwd or "", own) if own else ""
    return own if own.startswith("/") else None


def _profile(environ: Mapping[str, str], told: str | None) -> str | None:
    name = told or environ.get("OMP_PROFILE", environ.get("PI_PROFILE")) or ""
    name = name.strip()
    return name if name != "default" and re.fullmatch(_PROFILE, name) else None


def _xdg(base: str | None, below: tuple[str, ...]) -> str | None:
    if not base or not base.startswith("/"):
        return None
    path = os.path.join(base, "omp", *below)
    return path if os.path.isdir(path) else None


def user_home(environ: Mapping[str, str]) -> str:
    """Return the home directory of a process's user: its own word for it, else ours."""
    home = environ.get("HOME") or ""
    return home if home.startswith("/") else os.path.expanduser("~")


def directory_names(cwd: str, home: str, temporary: str) -> tuple[str, ...]:
    """Return what the directory of a cwd may be called: as it is today, and as it was before. Pure.

    Lossy: `/a-b` and `/a/b` are called alike, so a file's header must name the cwd.
    """
    absolute = f"--{dashed(cwd.lstrip('/'))}--"
    for base, prefix in ((home, ""), (temporary, "-tmp")):
        inside = _below(cwd, base)
        if inside is not None:
            return (f"{prefix}-{dashed(inside)}" if inside or not prefix else prefix, absolute)
    return (absolute,)


def of_directory(
    store: OmpStore, cwd: str | None, environ: Mapping[str, str]
) -> Iterator[tuple[OmpTranscript, int]]:
    """Yield what lies in the directories that a cwd may have, with the time when each was written."""
    if cwd is None:
        return
    temporary = next((environ[name] for name in _TEMPORARY if environ.get(name)), "/tmp")  # noqa: S108
    for name in directory_names(cwd, os.path.realpath(user_home(environ)), os.path.realpath(temporary)):
        try:
            entries = store.sessions.entries((name,))
        except (TreeError, OSError):
            continue
        for file, stat in entries:
            if stat.is_regular and file.endswith(SUFFIX):
                yield OmpTranscript(store.sessions, (name, file)), stat.mtime_ns


def _below(path: str, base: str) -> str | None:
    """Return *path* relative to *base*, "" for itself; None where it lies elsewhere."""
    base = base.rstrip("/")
    if path == base:
        return ""
    inside = path.removeprefix(f"{base}/")
    return None if inside == path or inside.startswith("..") else inside


def dashed(path: str) -> str:
    """Return a path as it stands in the name of a directory."""
    return re.sub(r"[/\\:]", "-", path)


def stored_transcripts(home: str, id: str = "") -> dict[str, OmpTranscript]:
    """Return the sessions in the stores of a home by the ids in their names, the newest of each.

    *id*: of the one that is searched for; "": all.
    """
    found: dict[str, OmpTranscript] = {}
    for store in STORES:
        root = Root(os.path.join(home, *store))
        for directory in root.names():
            for name in root.names((directory,)):
                transcript = OmpTranscript(root, (directory, name))
                if not name.endswith(f"{id}{SUFFIX}") or name.startswith((".", ADVISOR)):
                    continue
                its = transcript.name_id
                if its and id in ("", its) and name >= found.get(its, transcript).path[-1]:
                    found[its] = transcript
    return found


def locate(store: OmpStore, path: str) -> OmpTranscript | None:
    """Return the transcript at an absolute path; None where that does not lie inside the store."""
    for base in (store.sessions.path, os.path.realpath(store.sessions.path)):
        if path.startswith(f"{base}/") and path.endswith(SUFFIX):
            parts = tuple(path.removeprefix(f"{base}/").split("/"))
            return OmpTranscript(store.sessions, parts) if {"", ".", ".."}.isdisjoint(parts) else None
    return None


def main_of(transcript: OmpTranscript) -> OmpTranscript:
    """Return the transcript that a subagent's hangs below; a session's own is its own."""
    root, path = transcript
    found = transcript
    for level in range(1, min(DEEPEST, len(path) - 1) + 1):
        above = (*path[: -level - 1], path[-level - 1] + SUFFIX)
        if is_file(root, above):
            found = OmpTranscript(root, above)
    return found


def is_file(root: Root, path: tuple[str, ...]) -> bool:
    """Return whether a plain file lies there."""
    try:
        return root.stat(path).is_regular
    except (TreeError, OSError):
        return False


class OmpHeadCache:
    """What transcripts begin with. Of a file that has not changed nothing is read again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRU[OmpTranscript, tuple[FileStat, OmpHead]] = LRU()

    def read(self, transcript: OmpTranscript) -> tuple[FileStat, OmpHead]:
        """Return the stat of a transcript and its first lines. Raises as Root.open does, and OSError."""
        with transcript.root.opened(transcript.path) as (fd, stat):
            with self._lock:
                known = self._known.get(transcript)
            if known and known[0] == stat:
                return known
            checked_ns = time.time_ns()
            head = parse_head(os.pread(fd, _HEAD_BYTES, 0))
        if checked_ns - max(stat.mtime_ns, stat.ctime_ns) > _RACY_NS:
            with self._lock:
                self._known[transcript] = (stat, head)
        return stat, head


def parse_head(data: bytes) -> OmpHead:
    """Read the title slot and the header; before 17 there was no slot and the header came first. Pure.

    The slot is rewritten in place, the title in the header is not: an empty slot is no title.
    """
    lines = [parse_object(line) or {} for line in data.split(b"\n", 2)[:2]]
    header = next((line for line in lines if line.get("type") == "session"), {})
    titled = lines[0]
    id = text_of(header, "id")
    return OmpHead(
        id=id if id and re.fullmatch(_ID, id) else None,
        cwd=text_of(header, "cwd"),
        title=text_of(titled, "title") if titled.get("type") in ("title", "session") else None,
        has_header=bool(header),
        started_ns=time_ns(text_of(header, "timestamp") or "") or 0,
    )
