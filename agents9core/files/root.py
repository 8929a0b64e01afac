"""Files of a harness's store, opened from a pinned root one component at a time; see openat(2).

`O_NOFOLLOW` at every step keeps a symlink from leading outside, `O_NONBLOCK` keeps a fifo from blocking, and
nothing is read before fstat shows a regular file. A root that is itself a symlink is followed once, at the
root, unless it leads to a directory that is no store (`private`).
"""

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from agents9core.errors import Denied, Gone, Malformed, NotFound, TreeError, Unavailable
from agents9core.files.private import may_be_store
from agents9core.files.statx import FileStat, statx

_ROOT = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_REFUSED: dict[int | None, type[TreeError]] = {
    errno.ENOENT: NotFound,
    errno.ENOTDIR: NotFound,
    errno.ELOOP: NotFound,
    errno.ENAMETOOLONG: NotFound,
    errno.EACCES: Denied,
    errno.EPERM: Denied,
    errno.ESTALE: Gone,
}
_MOST_REFUSED = 1000
_SAID_REFUSED: set[str] = set()
"""The directories that the log has said may not be read."""

log = logging.getLogger(__name__)

NOT_THERE = (NotFound, Denied, Gone, Malformed)
"""A file that cannot be served. All other errors are failures of the system, and not of the file."""


class Descriptor:
    """An open file, for as long as somebody holds this: then it is closed."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.fd)


class Root(NamedTuple):
    """A directory that files are opened below; it need not exist yet."""

    path: str

    def open(self, parts: tuple[str, ...]) -> int:
        """Open a regular file for reading. Raises NotFound, Denied or Malformed (it is no plain file)."""
        fd = self._open(parts, _FILE)
        try:
            if not _stat(fd, parts).is_regular:
                raise Malformed(f"{'/'.join(parts)} is not a regular file")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def open_with_stat(self, parts: tuple[str, ...], look_only: bool = False) -> tuple[Descriptor, FileStat]:
        """Open a regular file and return its stat too, as `open` does. *look_only*: it cannot be read."""
        held = Descriptor(self._open(parts, _LOOK if look_only else _FILE))
        stat = _stat(held.fd, parts)
        if not stat.is_regular:
            raise Malformed(f"{'/'.join(parts)} is not a regular file")
        return held, stat

    @contextmanager
    def opened(self, parts: tuple[str, ...]) -> Iterator[tuple[int, FileStat]]:
        """Open a regular file and return its stat too, as `open` does, until the end of the block."""
        held, stat = self.open_with_stat(parts)
        yield held.fd, stat

    def read(self, parts: tuple[str, ...], limit: int) -> bytes:
        """Return a small file's bytes, up to *limit*. Raises as `open` does."""
        with self.opened(parts) as (fd, _):
            return read_at(fd, parts, limit)

    def stat(self, parts: tuple[str, ...] = ()) -> FileStat:
        """Return the stat of what is there, of any kind, without opening it. Raises NotFound or Denied."""
        fd = self._open(parts, _LOOK)
        try:
            return _stat(fd, parts)
        finally:
            os.close(fd)

    def names(self, parts: tuple[str, ...] = ()) -> list[str]:
        """Return the names in a directory, unordered; empty where there is none that may be read.

        Names that are not UTF-8 come with surrogates (PEP 383). Raises Unavailable.
        """
        try:
            fd = self._open(parts, _LIST)
            try:
                return _listed(fd, parts)
            finally:
                os.close(fd)
        except Denied:
            _say_refused(os.path.join(self.path, *parts))
            return []
        except NOT_THERE:
            return []

    def directories_with(self, name: str) -> list[str]:
        """Return the directories right below that have a member of this name, whatever it is.

        One stat a directory, for stores of thousands; what is opened afterwards is opened as ever. Raises
        Unavailable.
        """
        try:
            fd = self._open((), _LIST)
            try:
                return [above for above in _listed(fd, ()) if _is_there(f"{above}/{name}", fd)]
            finally:
                os.close(fd)
        except NOT_THERE:
            return []

    def entries(self, parts: tuple[str, ...] = ()) -> list[tuple[str, FileStat]]:
        """Return the names in a directory, each with its stat; what vanished meanwhile is left out.

        Raises NotFound or Denied.
        """
        fd = self._open(parts, _LIST)
        try:
            found = []
            for name in _listed(fd, parts):
                with suppress(OSError):
                    found.append((name, statx(fd, name)))
            return found
        finally:
            os.close(fd)

    def _pin(self) -> int:
        """Open the directory itself. Raises OSError, also where it is one that is no store."""
        fd = os.open(self.path, _ROOT)
        if self.path != "/" and not may_be_store(os.readlink(f"/proc/self/fd/{fd}")):
            os.close(fd)
            raise PermissionError(errno.EACCES, "it is no store", self.path)
        return fd

    def _open(self, parts: tuple[str, ...], flags: int) -> int:
        if not all(map(_is_plain, parts)):
            raise NotFound("/".join(parts))
        try:
            fd = self._pin()
            for step, part in enumerate(parts or (".",), 1):
                parent = fd
                try:
                    fd = os.open(part, flags if step >= len(parts) else _STEP, dir_fd=parent)
                finally:
                    os.close(parent)
        except OSError as error:
            raise _refusal(error, parts) from error
        except ValueError as error:  # a NUL, or a surrogate that no file name can hold
            raise NotFound("/".join(parts)) from error
        return fd


def read_at(fd: int, parts: tuple[str, ...], count: int, at: int = 0) -> bytes:
    """Return bytes of the open file that lies at *parts*. Raises as opening it does."""
    try:
        return os.pread(fd, count, at)
    except OSError as error:
        raise _refusal(error, parts) from error


def _stat(fd: int, parts: tuple[str, ...]) -> FileStat:
    try:
        return statx(fd)
    except OSError as error:
        raise _refusal(error, parts) from error


def _listed(fd: int, parts: tuple[str, ...]) -> list[str]:
    try:
        return os.listdir(fd)
    except OSError as error:
        raise _refusal(error, parts) from error


def _refusal(error: OSError, parts: tuple[str, ...]) -> TreeError:
    """Return the tree's error for an error of the system."""
    return _REFUSED.get(error.errno, Unavailable)("/".join(parts))


def _say_refused(path: str) -> None:
    """Say in the log that a directory may not be read, once: it looks empty."""
    if path not in _SAID_REFUSED and len(_SAID_REFUSED) < _MOST_REFUSED:
        _SAID_REFUSED.add(path)
        log.warning("%r may not be read: what is in it is not shown", path)


def _is_there(path: str, dir_fd: int) -> bool:
    try:
        os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except (OSError, ValueError):
        return False
    return True


def _is_plain(part: str) -> bool:
    return part not in ("", ".", "..") and "/" not in part and "\0" not in part
