"""Claude Code: which processes are one, and the session that its registry gives for a pid.

`<home>/sessions/<pid>.json` names the session; the transcript is `<home>/projects/<any>/<session>.jsonl`.
The registry outlives its process, so a record counts only for the process that wrote it. Beside it lie
`<pid>.<hex>.key` files, credentials: never opened. Seen in 2.0.76 (no registry) to 2.1.332; docs/FORMATS.md.
"""

import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from agents9core.errors import Denied, TreeError
from agents9core.harness import node
from agents9core.harness.claude_agents import Subagents
from agents9core.harness.claude_kept import SESSION_ID, Head, Heads, is_session, kept
from agents9core.process import Process, ProcessTable
from agents9core.remembered import Lately, Remembered
from agents9core.session import Session, Source
from agents9core.store import NOT_THERE, Root, parse_object, read_at, text_of

_NODE = ("node", "nodejs")
_PACKAGE = "@anthropic-ai/claude-code/"
_INSTALLED = ("/claude/versions/", "/ccd-cli/")
_NEVER = r"rg|bfs|ugrep|(?:ba|da|z|fi|k)?sh|(?:python|pypy|perl|ruby|lua|php)[0-9.]*"
"""What the binary runs itself as, under another argv[0], and what runs a script named `claude`."""
_NO_SESSION = frozenset((
    "mcp", "update", "upgrade", "daemon", "install", "doctor", "plugin", "plugins", "setup-token",
    "--version", "-v", "--help", "-h", "--chrome-native-host", "--ripgrep",
))  # fmt: skip
"""What a command line begins with that starts no session."""
_SWITCHES = frozenset((
    "--debug", "-d", "--mcp-debug", "--verbose", "--bare", "--ide", "--strict-mcp-config",
    "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions",
))  # fmt: skip
"""Options without a value of their own, which may stand before that."""
_VALUED = frozenset((
    "--model", "--fallback-model", "--settings", "--setting-sources", "--permission-mode", "--system-prompt",
    "--append-system-prompt", "--agents", "--session-id", "--output-format", "--input-format",
))  # fmt: skip
"""Options with one value."""
_STATUS = ("idle", "busy", "waiting")
_RECORD_BYTES = 4 << 20
_RECORD_TRIES = 5
_RECORD_PAUSE_SECONDS = 0.002
"""The record is rewritten in place: between write and ftruncate an old tail stands behind the new text."""
_LATEST_MS = 8_640_000_000_000_000
"""The last time that a JavaScript Date can be; ECMA-262 21.4.1.1."""
_HEAD_BYTES = 256 << 10
PLACE_SECONDS = 1.0
"""How long a transcript's place serves: a larger file may come in another directory that is there."""


def owns(process: Process) -> bool:
    """Say whether a process is a Claude Code session, not a helper of one.

    comm is `claude`, or the version that is installed (2.1.332), or `node`.
    """
    argv = process.argv()
    if not argv:
        return False
    name, arguments = os.path.basename(argv[0]), argv[1:]
    if re.fullmatch(_NEVER, name):
        return False
    named = "claude" in (process.comm, name)
    if name in _NODE:
        script = node.script(arguments)
        named |= _PACKAGE in "".join(arguments[script : script + 1])
        arguments = arguments[script + 1 :]
    else:
        named = named or _is_installed(argv[0]) or _is_installed(process.exe())
    return (
        named
        and _first_word(arguments) not in _NO_SESSION
        and not re.fullmatch(_NEVER, os.path.basename(process.exe() or ""))
    )


def _first_word(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is no option, or the first option that is not known."""
    rest = iter(arguments)
    for argument in rest:
        if argument in _VALUED:
            next(rest, None)
        elif argument not in _SWITCHES:
            return argument
    return None


def _is_installed(path: str | None) -> bool:
    return path is not None and any(place in f"/{path}" for place in _INSTALLED)


class _Place(NamedTuple):
    """Where a session's transcript was found."""

    path: tuple[str, str]
    has_messages: bool
    projects_mtime_ns: int
    looked: float

    def serves(self, projects_mtime_ns: int) -> bool:
        """Whether it need not be looked for again."""
        recent = time.monotonic() - self.looked < PLACE_SECONDS
        return recent and self.has_messages and self.projects_mtime_ns == projects_mtime_ns


class Claude:
    """Finds the sessions of claude processes."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._machine = _machine_id()
        self._lock = threading.Lock()
        self._places: Remembered[tuple[str, str], _Place] = Remembered()
        self._heads = Heads()
        self._kept: Lately[tuple[str, str], tuple[str, str]] = Lately()
        self.subagents = Subagents().of

    def resolve(self, process: Process, home: str, _peers: object = None) -> Session | None:
        """Return the session of a process; None where it is no person's: a spare or a parked process."""
        record, mtime_ns, seen = _read_record(home, process.pid)
        if record is not None:
            seen = self._disbelieved(record, process) or ""
        if record is None or seen:
            return Session(via="none", steps=(f"registry: {seen}",))
        if record.get("spare") or record.get("parkedJobId"):
            return None
        return self._session(record, mtime_ns, home)

    def kept(self, home: str) -> dict[str, Source]:
        """Return the sessions below `projects` by id; of one that was moved, what has more in it."""
        root = Root(os.path.join(home, "projects"))
        places = {id: _best(root, paths) for id, paths in kept(root).items()}
        found = {id: place for id, place in places.items() if place is not None}
        self._kept.put({(root.path, id): place for id, place in found.items()})
        return {id: Source(root, place) for id, place in found.items()}

    def kept_session(self, home: str, id: str) -> Session | None:
        """Return a session by its id, whoever is in it."""
        root = Root(os.path.join(home, "projects"))
        if not is_session(id):
            return None
        place = self._kept.find((root.path, id), partial(_size, root), partial(self._transcript, root, id))
        if place is None:
            return None
        source = Source(root, place)
        try:
            head = self._heads.read(source)
        except Denied:
            head = Head()
        except NOT_THERE:
            return None
        return Session("kept", id=id, cwd=head.cwd, sources=(source,), started_ns=head.started_ns)

    def _session(self, record: dict[str, object], mtime_ns: int, home: str) -> Session:
        named = text_of(record, "sessionId") or ""
        id = named if SESSION_ID.fullmatch(named) else None
        root = Root(os.path.join(home, "projects"))
        place, seen = self._sought(root, id) if id else (None, ())
        status = text_of(record, "status")
        waiting = status == "waiting"
        return Session(
            via="registry" if id else "none",
            id=id,
            cwd=text_of(record, "cwd"),
            sources=(Source(root, place),) if place else (),
            name=text_of(record, "name"),
            status=status if status in _STATUS else None,
            waitingfor=text_of(record, "waitingFor") if waiting else None,
            version=text_of(record, "version"),
            record_mtime_ns=mtime_ns,
            steps=(
                f"registry: session {id or 'not named'}",
                *seen,
            ),
        )

    def _disbelieved(self, record: dict[str, object], process: Process) -> str | None:
        """Say why a record is not this process's; None where it is."""
        if other := self._another_domain(record.get("pidDomain"), process):
            return other
        start = record.get("procStart")
        if start is not None:
            return None if start == str(process.start) else f"written by a process started at {start!r:.40}"
        started_ms = record.get("startedAt")
        if type(started_ms) not in (int, float) or not 0 <= started_ms <= _LATEST_MS:  # type: ignore[operator]
            return "says neither procStart nor startedAt"
        if started_ms * 1_000_000 < self._table.started_ns(process.start):  # type: ignore[operator]
            return "written before the process started"
        return None

    def _another_domain(self, domain: object, process: Process) -> str | None:
        """Compare `linux:<machine id>:<pid namespace>` where both sides are known."""
        if not isinstance(domain, str):
            return None
        system, _, rest = domain.partition(":")
        machine, _, namespace = rest.partition(":")
        if system != "linux":
            return "written on another system"
        if machine and self._machine and machine != self._machine:
            return "written on another machine"
        ours = process.pid_namespace() if namespace else None
        return "written in another pid namespace" if ours and ours != namespace else None

    def _sought(self, root: Root, id: str) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
        """Return where the session's transcript lies, or why that is not known."""
        try:
            place = self._transcript(root, id)
        except TreeError as error:
            return None, (f"transcript: {root.path}: {type(error).__name__}",)
        if place is None:
            return None, (f"transcript: no {id}.jsonl in a directory of {root.path} yet",)
        return place, ()

    def _transcript(self, root: Root, id: str) -> tuple[str, str] | None:
        """Return where the session's transcript lies below `projects`; None while there is none.

        A place without messages may be the stub of a session that was moved: it is looked for again.
        """
        try:
            mtime_ns = root.look().mtime_ns
        except NOT_THERE:
            return None
        key = (root.path, id)
        with self._lock:
            known = self._places.get(key)
        if known and known.serves(mtime_ns) and _size(root, known.path):
            return known.path
        looked = time.monotonic()
        found = _search(root, f"{id}.jsonl")
        if found is None:
            return None
        with self._lock:
            self._places[key] = _Place(found.path, found.has_messages, mtime_ns, looked)
        return found.path


class _Hit(NamedTuple):
    has_messages: bool
    size: int
    mtime_ns: int
    path: tuple[str, str]


def _search(root: Root, name: str) -> _Hit | None:
    return _fullest(root, ((project, name) for project in root.holding(name)))


def _fullest(root: Root, paths: Iterable[tuple[str, str]]) -> _Hit | None:
    return max(filter(None, (_look(root, path) for path in paths)), default=None)


def _best(root: Root, paths: list[tuple[str, str]]) -> tuple[str, str] | None:
    """Return where a session lies that may lie at *paths*. Of one path it is not asked what is there."""
    if len(paths) == 1:
        return paths[0]
    hit = _fullest(root, paths)
    return hit.path if hit else None


def _look(root: Root, path: tuple[str, str]) -> _Hit | None:
    try:
        with root.opened(path) as (fd, stat):
            return _Hit(_has_messages(read_at(fd, path, _HEAD_BYTES)), stat.size, stat.mtime_ns, path)
    except Denied:
        return _Hit(has_messages=False, size=0, mtime_ns=0, path=path)
    except NOT_THERE:
        return None


def _size(root: Root, path: tuple[str, ...]) -> int:
    try:
        stat = root.look(path)
    except (TreeError, OSError):
        return 0
    return stat.size if stat.is_regular else 0


class _Line(msgspec.Struct):
    type: str = ""


_LINE = msgspec.json.Decoder(_Line)
_SAYS_MESSAGE = re.compile(rb'"type":\s*"(?:user|assistant)"')


def _has_messages(head: bytes) -> bool:
    return any(_is_message(line) for line in head.split(b"\n"))


def _is_message(line: bytes) -> bool:
    if not _SAYS_MESSAGE.search(line):
        return False
    try:
        return _LINE.decode(line).type in ("user", "assistant")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return True  # cut at the window's end, or damaged: its words must do


def _read_record(home: str, pid: int) -> tuple[dict[str, object] | None, int, str]:
    """Return a registry record and its mtime, or None, 0 and why."""
    root, path = Root(os.path.join(home, "sessions")), (f"{pid}.json",)
    for _ in range(_RECORD_TRIES):
        try:
            with root.opened(path) as (fd, stat):
                record = parse_object(os.pread(fd, _RECORD_BYTES, 0))
        except (TreeError, OSError) as error:
            return None, 0, f"{os.path.join(root.path, *path)}: {type(error).__name__}"
        if record is not None:
            return record, stat.mtime_ns, ""
        time.sleep(_RECORD_PAUSE_SECONDS)
    return None, 0, f"{os.path.join(root.path, *path)}: no JSON object"


def _machine_id() -> str | None:
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read(256).strip() or None
        except (OSError, ValueError):
            continue
    return None
