"""A `Stat` as 9P shows it: qid, stat record, directory entry, attributes.

Source: stat(5), and `Rgetattr` of 9P2000.L. Files are 0400, directories 0500, and all belong to the server's
user, whatever they are on disk.
"""

import stat as posix
import struct
from collections.abc import Callable
from functools import lru_cache
from operator import add
from typing import NamedTuple

from agents9core.node import ROW_COLUMNS, Columns, Stat
from davserver.ninep.messages import Rgetattr

FILE_MODE = 0o400
DIRECTORY_MODE = 0o500
QTDIR = 0x80
DMDIR = 0x80000000
DT_DIR = 4
DT_REG = 8
GETATTR_BASIC = 0x7FF
"""All fields up to blocks: what v9fs asks, and its fast path when all are there."""
NLINK = 1
"""1 for directories too: tools then look at what is in one instead of counting on its link count."""
BLOCK_BYTES = 4096
NONE32 = 0xFFFFFFFF
"""No number: what a .u stat says where there is no muid."""

_NOT_KNOWN = (0, 0, 0, 0)
"""btime_sec, btime_nsec, gen and data_version, which GETATTR_BASIC leaves out."""
_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
_QID = struct.Struct("<BIQ")
_STAT = struct.Struct("<HHIBIQIIIQ")
_LENGTH = struct.Struct("<H")
_NUMBERS = struct.Struct("<III")
_DIRENT = struct.Struct("<BIQQBH")


class Owner(NamedTuple):
    """Whom every file belongs to: the user that the server runs as."""

    uid: int
    gid: int
    user: str
    group: str


StatRecord = Callable[[str, Stat, Owner], bytes]
"""(name, stat, owner): a stat record of one dialect."""


def qid(stat: Stat) -> bytes:
    """Return type[1] version[4] path[8]."""
    return _QID.pack(QTDIR if stat.is_dir else 0, stat.version & _MASK32, stat.path)


def _string(text: str) -> bytes:
    raw = text.encode()
    return _LENGTH.pack(len(raw)) + raw


def _seconds32(mtime_ns: int) -> int:
    """Return whole seconds since 1970, cut to what 32 bits hold."""
    return min(max(mtime_ns // 1_000_000_000, 0), _MASK32)


def stat_record(name: str, stat: Stat, owner: Owner) -> bytes:
    """Return size[2] type[2] dev[4] qid[13] mode[4] atime[4] mtime[4] length[8], name, uid, gid, muid [s]."""
    return _record(name, stat, _owners(owner))


def stat_record_u(name: str, stat: Stat, owner: Owner) -> bytes:
    """Return a stat record with .u's extension[s] n_uid[4] n_gid[4] n_muid[4] after it."""
    return _record(name, stat, _owners_u(owner))


@lru_cache(maxsize=2)
def _owners(owner: Owner) -> bytes:
    return _string(owner.user) + _string(owner.group) + _string(owner.user)


@lru_cache(maxsize=2)
def _owners_u(owner: Owner) -> bytes:
    return _owners(owner) + _string("") + _NUMBERS.pack(owner.uid, owner.gid, NONE32)


def _record(name: str, stat: Stat, tail: bytes) -> bytes:
    raw = name.encode()
    seconds = _seconds32(stat.mtime_ns)
    kind, mode = (QTDIR, DMDIR | DIRECTORY_MODE) if stat.is_dir else (0, FILE_MODE)
    size = _STAT.size + len(raw) + len(tail)  # without its own two bytes, with those that count the name
    version = stat.version & _MASK32
    fixed = _STAT.pack(size, 0, 0, kind, version, stat.path, mode, seconds, seconds, stat.length)
    return b"".join((fixed, _LENGTH.pack(len(raw)), raw, tail))


def blank_stat(tail: bytes = b"") -> bytes:
    """Return the stat that asks for no change, which stat(5) makes a sync; *tail* is .u's."""
    size = _STAT.size - 2 + 4 * _LENGTH.size + len(tail)
    qid_and_mode = (0xFF, _MASK32, _MASK64, _MASK32)
    fixed = _STAT.pack(size, 0xFFFF, _MASK32, *qid_and_mode, _MASK32, _MASK32, _MASK64)
    return fixed + 4 * _string("") + tail


BLANK_STAT = blank_stat()
BLANK_STAT_U = blank_stat(_string("") + _NUMBERS.pack(NONE32, NONE32, NONE32))


def dirents(rows: Columns, first: int) -> list[bytes]:
    """Return qid[13] offset[8] type[1] name[s] of each; an offset is where the entry after it begins.

    *first*: the number of the first row.
    """
    names = [name.encode() for name in rows.names]
    fixed = map(
        _DIRENT.pack,
        [QTDIR if is_dir else 0 for is_dir in rows.are_dirs],
        [version & _MASK32 for version in rows.versions],
        rows.paths,
        range(first + 1, first + 1 + len(names)),
        [DT_DIR if is_dir else DT_REG for is_dir in rows.are_dirs],
        map(len, names),
    )
    return list(map(add, fixed, names))


@lru_cache(maxsize=4)
def stat_records(record: StatRecord, owner: Owner) -> Callable[[Columns, int], list[bytes]]:
    """Return what packs rows as the stat records that *record* makes: the same function for the same two."""

    def pack(rows: Columns, _first: int) -> list[bytes]:
        return [record(name, Stat(*values), owner) for name, *values in zip(*rows[:ROW_COLUMNS], strict=True)]

    return pack


def attributes(tag: int, stat: Stat, owner: Owner) -> Rgetattr:
    """Return the reply to a Tgetattr: all basic fields, whatever it asked; times before 1970 are negative."""
    mode = posix.S_IFDIR | DIRECTORY_MODE if stat.is_dir else posix.S_IFREG | FILE_MODE
    seconds, nanoseconds = divmod(stat.mtime_ns, 1_000_000_000)
    seconds &= _MASK64
    length = stat.length
    identity = (tag, GETATTR_BASIC, qid(stat), mode, owner.uid, owner.gid, NLINK, 0)
    size = (length, BLOCK_BYTES, (length + 511) // 512)
    times = (seconds, nanoseconds, seconds, nanoseconds, seconds, nanoseconds)
    return Rgetattr._make(identity + size + times + _NOT_KNOWN)
