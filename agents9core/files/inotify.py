"""inotify(7), which Python has no module for: whether an open file was written, moved or replaced.

A watch is put on `/proc/self/fd/N` of a file that was opened from its pinned root, so no path is walked a
second time. A file that is replaced by renaming another over it shows as ATTRIB only while somebody still
holds it open. File systems whose files change elsewhere (FUSE, 9P, NFS) show nothing.
"""

import ctypes
import os
import struct
from typing import NamedTuple

MODIFY = 0x002
ATTRIB = 0x004
DELETE_SELF = 0x400
MOVE_SELF = 0x800
OVERFLOW = 0x4000
IGNORED = 0x8000

_ALL = MODIFY | ATTRIB | DELETE_SELF | MOVE_SELF
_EVENT = struct.Struct("=iIII")
_READ_BYTES = 64 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


class Event(NamedTuple):
    """Something that happened to a file."""

    watch: int
    """Its number; -1 with OVERFLOW: some were lost."""
    mask: int


class Inotify:
    """One instance. Any thread may add and remove; one reads."""

    def __init__(self) -> None:
        """Raises OSError; a user may have 128 of them, and shares these with its other programs."""
        self._fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def fileno(self) -> int:
        """Return the descriptor, to wait on."""
        return self._fd

    def add(self, fd: int) -> int:
        """Watch an open file, which may be closed then; return the number. The same file has the same one.

        Raises OSError.
        """
        return _checked(_libc.inotify_add_watch(self._fd, f"/proc/self/fd/{fd}".encode(), _ALL))

    def remove(self, watch: int) -> None:
        """End a watch; one that has ended by itself is no error."""
        _libc.inotify_rm_watch(self._fd, watch)

    def read(self) -> list[Event]:
        """Return what has happened since the last time, without waiting."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return []
        events, at = [], 0
        while at < len(data):
            watch, mask, _, name_bytes = _EVENT.unpack_from(data, at)
            events.append(Event(watch, mask))
            at += _EVENT.size + name_bytes
        return events

    def close(self) -> None:
        """End it with all its watches."""
        os.close(self._fd)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
