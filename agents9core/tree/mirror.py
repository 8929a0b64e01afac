"""The mirrors: a harness's transcript store, byte for byte, and nothing else of its home.

An allow-list of the store's own directories is all that is shown, and in these what is called as files of a
store are. What looks like a secret is not shown even there: what is known by its name as the keys,
passwords or tokens of a common program. Where a harness has several homes their directories are merged by
name; of two files of one name the first home's counts. A name that is not UTF-8 has its odd bytes as `%XX`.
"""

import fnmatch
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from agents9core.errors import Denied, Gone, NotFound, Unavailable
from agents9core.files.private import SECRET_DIRECTORIES
from agents9core.files.root import Root
from agents9core.files.statx import FileStat
from agents9core.identity import PathNumbers, version_of
from agents9core.node import Directory, File, Node, Reader, Row, Stat

_SECRETS = (
    r"auth\.json|\.env.*|config\..*|settings\..*|.*\.(?:db|sqlite3?)(?:-.*)?",  # of the harnesses
    r"\.?credentials?(?:\..*)?|.*[-_]credentials?\.json|\.git-credentials",
    r"\.?secrets?(?:\.(?:ya?ml|json|toml|ini|env|txt))?|client_secret.*\.json|.*service[-_]account.*\.json",
    r"\.?token(?:\.(?:json|txt))?|(?:.*[-_.])?(?:access|api|auth|oauth|refresh)[-_]?tokens?(?:\.json|\.txt)?",
    r".*\.(?:key|pem|p8|p12|pfx|ppk|jks|keystore|kdbx)",
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?:[._-].*)?(?<!\.pub)",  # ssh-keygen(1)
    r"[._]netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|\.pgpass|\.my\.cnf|\.dockercfg|\.htpasswd",
)
_TYPES = {".jsonl": "application/x-ndjson", ".json": "application/json", ".zst": "application/zstd"}

Parts = tuple[str, ...]


class MirroredStore(NamedTuple):
    """What is mirrored: the directories *allowed* below each of *homes*, by a *name* of its own."""

    name: str
    allowed: tuple[Parts, ...]
    homes: Callable[[], Sequence[str]]
    numbers: PathNumbers
    files: tuple[str, ...] = ("*",)
    """How the files of a store are called, by their paths in it; `*` is also several names."""
    inside: Parts = ()
    """Where in the allowed directories it all lies."""

    def places(self, parts: Parts) -> list[tuple[Root, Parts]]:
        """Return where *parts* lies in each home of now: pinned at the allowed directory that it is in."""
        for path in self.allowed:
            if parts[: len(path)] == path:
                below = (*self.inside, *parts[len(path) :])
                return [(Root(os.path.join(home, *path)), below) for home in self.homes()]
        return []

    def ways(self, parts: Parts) -> list[str]:
        """Return the names by which *parts*, which is above the allowed directories, leads to them."""
        return [path[len(parts)] for path in self.allowed if path[: len(parts)] == parts != path]

    def is_way(self, parts: Parts) -> bool:
        """Whether *parts* is above an allowed directory of some home."""
        return any(path[: len(parts)] == parts and _looks(self.places(path)) for path in self.allowed)


def _looks(places: list[tuple[Root, Parts]]) -> list[FileStat]:
    """Return the stat of each place that is a directory."""
    looks = []
    for root, parts in places:
        try:
            stat = root.stat(parts)
        except (NotFound, Denied):
            continue
        if stat.is_directory:
            looks.append(stat)
    return looks


def _may_be_shown(path: Parts, stat: FileStat, files: tuple[str, ...]) -> bool:
    """Whether it is a directory or a plain file of a store, and by its name no secret."""
    if stat.is_directory:
        return path[-1] not in SECRET_DIRECTORIES
    if not stat.is_regular or _secret().fullmatch(path[-1]):
        return False
    return files == ("*",) or _names(files).fullmatch("/".join(path)) is not None


@cache
def _names(files: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, files)))


@cache
def _secret() -> re.Pattern[str]:
    return re.compile("|".join(_SECRETS), re.IGNORECASE | re.DOTALL)


class _Member(NamedTuple):
    """What stands under a name: the first home's name on disk, and each home's stat."""

    place: tuple[Root, Parts]
    looks: list[FileStat]


class MirrorDirectory(Directory):
    """A directory of a store; its time is its own."""

    def __init__(self, name: str, store: MirroredStore, parts: Parts = ()) -> None:
        self.name = name
        self._store = store
        self._parts = parts

    def stat(self) -> Stat:
        looks = _looks(self._store.places(self._parts))
        if not looks and self._parts and not self._store.is_way(self._parts):
            raise Gone(self.name)
        return self._stat(self._parts, looks)

    def walk(self, name: str) -> Node:
        if name in self._ways():
            return MirrorDirectory(name, self._store, (*self._parts, name))
        found = self._member(name)
        if found is None:
            raise NotFound(name)
        root, parts = found.place
        if found.looks[0].is_directory:
            return MirrorDirectory(name, self._store, (*self._parts, parts[-1]))
        return MirrorFile(name, root, parts, self._store.numbers)

    def members(self) -> Sequence[Row]:
        rows = [Row(name, self.walk(name).stat()) for name in self._ways()]
        for name, (place, looks) in sorted(self._found().items()):
            if looks[0].is_directory:
                rows.append(Row(name, self._stat((*self._parts, place[1][-1]), looks)))
            else:
                rows.append(Row(name, _file_stat(looks[0], self._store.numbers)))
        return rows

    def media_type_of(self, name: str) -> str:
        return _media_type(name)

    def _member(self, name: str) -> _Member | None:
        """Return what the homes have under one name, without a look at any other."""
        found: _Member | None = None
        for root, parts in self._store.places(self._parts):
            for on_disk in _names_on_disk(name):
                try:
                    stat = root.stat((*parts, on_disk))
                except (NotFound, Denied):
                    continue
                if _may_be_shown((*parts, on_disk), stat, self._store.files):
                    found = found or _Member((root, (*parts, on_disk)), [])
                    found.looks.append(stat)
        return found

    def _ways(self) -> list[str]:
        """Return the names that lead on to an allowed directory."""
        ways = dict.fromkeys(self._store.ways(self._parts))
        return [name for name in ways if self._store.is_way((*self._parts, name))]

    def _found(self) -> dict[str, _Member]:
        """Return what the homes have here, by name as shown."""
        found: dict[str, _Member] = {}
        for root, parts in self._store.places(self._parts):
            try:
                entries = root.entries(parts)
            except (NotFound, Denied):  # nothing else: a listing that lacks something would pass for whole
                continue
            for name, stat in entries:
                if _may_be_shown((*parts, name), stat, self._store.files):
                    found.setdefault(shown_name(name), _Member((root, (*parts, name)), [])).looks.append(stat)
        return found

    def _stat(self, parts: Parts, looks: Sequence[FileStat]) -> Stat:
        number = self._store.numbers.block("mirror", self._store.name, parts)
        newest_ns = max((stat.mtime_ns for stat in looks), default=0)
        return Stat(
            number, version_of([(stat.mtime_ns, stat.ctime_ns) for stat in looks]), True, 0, newest_ns
        )


class MirrorFile(File):
    """A file of a store, for as long as it is the same one."""

    def __init__(self, name: str, root: Root, parts: Parts, numbers: PathNumbers) -> None:
        self.name = name
        self.media_type = _media_type(name)
        self._root = root
        self._parts = parts
        self._numbers = numbers
        self._identity = self._stat().identity

    def stat(self) -> Stat:
        return _file_stat(self._same(), self._numbers)

    def open(self) -> Reader:
        return MirrorReader(self, self._same().size)

    def read(self, offset: int, count: int, promised: int) -> bytes:
        """Return bytes of the file. Raises Gone where it is another now, or ends before *promised*."""
        with self._root.opened(self._parts) as (fd, stat):
            if stat.identity != self._identity:
                raise Gone(self.name)
            try:
                data = os.pread(fd, count, offset)
            except OSError as error:
                raise Unavailable(self.name) from error
        if not data and count and offset < promised:
            raise Gone(self.name)
        return data

    def _stat(self) -> FileStat:
        return self._root.stat(self._parts)

    def _same(self) -> FileStat:
        try:
            stat = self._stat()
        except NotFound as error:
            raise Gone(self.name) from error
        if stat.identity != self._identity or not stat.is_regular:
            raise Gone(self.name)
        return stat


class MirrorReader(Reader):
    """Reads through to the file."""

    def __init__(self, file: MirrorFile, promised: int) -> None:
        self._file = file
        self._promised = promised

    def read(self, offset: int, count: int) -> bytes:
        try:
            return self._file.read(offset, count, self._promised)
        except NotFound as error:
            raise Gone(self._file.name) from error


def _file_stat(stat: FileStat, numbers: PathNumbers) -> Stat:
    version = version_of(stat.size, stat.mtime_ns, stat.ctime_ns)
    return Stat(numbers.block("file", stat.identity), version, False, stat.size, stat.mtime_ns)


def _media_type(name: str) -> str:
    return _TYPES.get(os.path.splitext(name)[1], File.media_type)


def _names_on_disk(shown: str) -> list[str]:
    """Return the names that are shown as *shown*; see `shown_name`."""
    names = [shown]
    if "%" in shown:
        odd = os.fsdecode(unquote_to_bytes(shown))
        if odd != shown and shown_name(odd) == shown:
            names.append(odd)
    return names


def shown_name(name: str) -> str:
    """Return a name from disk as the tree shows it: bytes that are not UTF-8 as %XX, and then `%` too."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return quote_from_bytes(os.fsencode(name), safe=" !\"#$&'()*+,:;<=>?@[\\]^`{|}~")
    return name
