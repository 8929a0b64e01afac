"""The usual 9P requests, answered from their bytes: walk of one name, getattr, open, read, clunk.

Each function is handed the session and where a whole frame lies. It gives the reply, or None and has then
done nothing: the message is decoded and its handler answers. So each rule and each refusal is written once.
"""

import stat as posix
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from davserver.ninep import dialect as dialects
from davserver.ninep import limits, stat
from davserver.ninep import messages as m
from davserver.ninep.dirlist import Listing
from davserver.ninep.fid import Fid, WalkedNode
from davserver.ninep.wire import CODECS, Buffer

if TYPE_CHECKING:
    from davserver.ninep.session import NinepSession

Quick = Callable[["NinepSession", Buffer, int, int], bytes | None]
"""(session, buffer, start, size): answer the frame of *size* bytes at *start*. It may raise anything:
nothing is done then, and the long way says what is wrong."""

LONGEST = 1024
"""Bytes of a frame that is examined here: less than any msize."""

_TWALK = struct.Struct("<5xHIIH")
_TLOPEN = struct.Struct("<5xHII")
_TGETATTR = struct.Struct("<5xHIQ")
_TREAD = struct.Struct("<5xHIQI")
_TCLUNK = struct.Struct("<5xHI")
_RWALK_NONE = struct.Struct("<IBHH")
_RWALK_ONE = struct.Struct("<IBHHBIQ")
_RLOPEN = struct.Struct("<IBHBIQI")
_RGETATTR = struct.Struct("<IBHQBIQIIIQQQQQQQQQQQQQQQ")
_RREAD = struct.Struct("<IBHI")
_RCLUNK = struct.Struct("<IBH")
_WRITES = m.O_ACCMODE | m.O_TRUNC
_NOT_WALKED = ("", ".", "..")
_DIRECTORY, _FILE = posix.S_IFDIR | stat.DIRECTORY_MODE, posix.S_IFREG | stat.FILE_MODE
_MASK32 = 0xFFFFFFFF
RWALK, RGETATTR, RLOPEN, RREAD, RCLUNK = (
    CODECS[reply].number for reply in (m.Rwalk, m.Rgetattr, m.Rlopen, m.Rread, m.Rclunk)
)


def _walk(session: "NinepSession", buffer: Buffer, start: int, size: int) -> bytes | None:
    """Walk one name, or none, to a new fid."""
    tag, number, newfid, count = _TWALK.unpack_from(buffer, start)
    fids = session.fids
    fid = fids[number]
    if fid.opened is not None or newfid in fids or newfid == m.NOFID or len(fids) >= limits.MAX_FIDS:
        return None
    place = fid.walked
    if count == 0 and size == _TWALK.size:
        fids[newfid] = Fid(place)
        return _RWALK_NONE.pack(_RWALK_NONE.size, RWALK, tag, 0)
    at = start + _TWALK.size
    if count != 1 or size != _TWALK.size + 2 + buffer[at] + (buffer[at + 1] << 8):
        return None
    name = buffer[at + 2 : start + size].decode()
    if name in _NOT_WALKED or "/" in name or "\0" in name:
        return None
    directory: Any = place.node  # a file has no `step`
    member, (path, version, is_dir, _, _) = directory.step(name)
    fids[newfid] = Fid(WalkedNode(member, place))
    kind = stat.QTDIR if is_dir else 0
    return _RWALK_ONE.pack(_RWALK_ONE.size, RWALK, tag, 1, kind, version & _MASK32, path)


def _getattr(session: "NinepSession", buffer: Buffer, start: int, size: int) -> bytes | None:
    if size != _TGETATTR.size:
        return None
    tag, number, _ = _TGETATTR.unpack_from(buffer, start)
    path, version, is_dir, length, mtime_ns = session.fids[number].walked.node.stat()
    kind, mode = (stat.QTDIR, _DIRECTORY) if is_dir else (0, _FILE)
    seconds, nanoseconds = divmod(mtime_ns, 1_000_000_000)
    if seconds < 0:
        return None
    return _RGETATTR.pack(
        _RGETATTR.size, RGETATTR, tag, stat.GETATTR_BASIC, kind, version & _MASK32, path,
        mode, *session.owner[:2], stat.NLINK, 0, length, stat.BLOCK_BYTES, (length + 511) // 512,
        seconds, nanoseconds, seconds, nanoseconds, seconds, nanoseconds, 0, 0, 0, 0,
    )  # fmt: skip


def _lopen(session: "NinepSession", buffer: Buffer, start: int, size: int) -> bytes | None:
    tag, number, flags = _TLOPEN.unpack_from(buffer, start)
    fid = session.fids[number]
    if size != _TLOPEN.size or flags & _WRITES or fid.opened is not None:
        return None
    file: Any = fid.walked.node  # a directory has no `start`
    fid.opened, (path, version, _, _, _) = file.start()
    session.just_opened.append(fid)
    return _RLOPEN.pack(_RLOPEN.size, RLOPEN, tag, 0, version & _MASK32, path, 0)


def _read(session: "NinepSession", buffer: Buffer, start: int, size: int) -> bytes | None:
    tag, number, offset, count = _TREAD.unpack_from(buffer, start)
    opened = session.fids[number].opened
    if size != _TREAD.size or opened is None or isinstance(opened, Listing) or offset > limits.MAX_OFFSET:
        return None
    data = opened.read(offset, min(count, session.msize - _RREAD.size))
    return _RREAD.pack(_RREAD.size + len(data), RREAD, tag, len(data)) + data


def _clunk(session: "NinepSession", buffer: Buffer, start: int, size: int) -> bytes | None:
    if size != _TCLUNK.size:
        return None
    tag, number = _TCLUNK.unpack_from(buffer, start)
    session.fids.pop(number).let_go()
    return _RCLUNK.pack(_RCLUNK.size, RCLUNK, tag)


_SHARED = {m.Twalk: _walk, m.Tread: _read, m.Tclunk: _clunk}
_LINUX = {**_SHARED, m.Tgetattr: _getattr, m.Tlopen: _lopen}
ANSWERS = {
    version: {CODECS[message].number: answer for message, answer in answers.items()}
    for version, answers in {
        dialects.PLAIN.version: _SHARED, dialects.UNIX.version: _SHARED, dialects.LINUX.version: _LINUX,
        dialects.UNKNOWN.version: {},
    }.items()
}  # fmt: skip
"""Each dialect's, by the number of the message."""
