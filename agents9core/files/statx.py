"""statx(2), which Python 3.11 lacks: identity, size and the times of a file in one call.

Field offsets: linux/stat.h, struct statx.
"""

import ctypes
import os
import stat as modes
import struct
from operator import attrgetter
from typing import NamedTuple

_statx = ctypes.CDLL(None, use_errno=True).statx
_statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
_Buffer = ctypes.c_char * 256
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_EMPTY_PATH = 0x1000
_BASIC_AND_BTIME = 0xFFF
_BTIME = 0x800
moves = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_nlink")
"""Of an `os.stat_result` what a FileStat has from MOVES on: any change of a file moves one of them."""
MOVES = 4
_LAYOUT = struct.Struct("<I I Q I I I H 2x Q Q Q Q q I 4x q I 4x q I 4x q I 4x I I I I")


class FileStat(NamedTuple):
    """The stat of a file. Times in nanoseconds since 1970 UTC."""

    dev: int
    ino: int
    mode: int
    btime_ns: int | None
    """Birth; None where the file system keeps none."""
    size: int
    mtime_ns: int
    ctime_ns: int
    links: int
    """How many names it has; 0: it was removed, or another file has taken its place."""

    @property
    def is_regular(self) -> bool:
        """Whether it is a plain file, so that reading can neither block nor lead elsewhere."""
        return modes.S_ISREG(self.mode)

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return modes.S_ISDIR(self.mode)

    @property
    def identity(self) -> tuple[int, int, int | None]:
        """What stays the same while it is the same file."""
        return (self.dev, self.ino, self.btime_ns)


def statx(fd: int, name: str = "") -> FileStat:
    """Look at an open descriptor, or at what *name* in an open directory is: a symlink is a symlink.

    Raises OSError.
    """
    buffer = _Buffer()
    flags = _AT_SYMLINK_NOFOLLOW if name else _AT_EMPTY_PATH
    if _statx(fd, os.fsencode(name), flags, _BASIC_AND_BTIME, buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    (mask, _, _, links, _, _, mode, ino, size, _, _, _, _, born, born_ns, changed, changed_ns,
     modified, modified_ns, _, _, major, minor) = _LAYOUT.unpack_from(buffer)  # fmt: skip
    return FileStat(
        dev=os.makedev(major, minor),
        ino=ino,
        mode=mode,
        btime_ns=born * 1_000_000_000 + born_ns if mask & _BTIME else None,
        size=size,
        mtime_ns=modified * 1_000_000_000 + modified_ns,
        ctime_ns=changed * 1_000_000_000 + changed_ns,
        links=links,
    )
