"""The one error family of the tree.

Each class carries the Linux error number that both front ends translate by one table of their own
(`davserver.ninep.dialect.ENAMES`, `davserver.http.response.STATUS`). Anything else that a node raises is
a bug.
"""

import errno
from typing import ClassVar


class TreeError(Exception):
    """A node could not do what was asked; *errno* says why, the text says what."""

    errno: ClassVar[int] = errno.EIO


class NotFound(TreeError):
    """There is no such name here."""

    errno = errno.ENOENT


class NotADirectory(TreeError):
    """The name was walked through, but it is a file."""

    errno = errno.ENOTDIR


class IsADirectory(TreeError):
    """The directory was opened as a file."""

    errno = errno.EISDIR


class ReadOnly(TreeError):
    """The tree is never written."""

    errno = errno.EROFS


class Denied(TreeError):
    """The file exists, but this server may not read it."""

    errno = errno.EACCES


class Gone(TreeError):
    """What the handle stood for has ended or is another thing now; never another's bytes."""

    errno = errno.ESTALE


class Malformed(TreeError):
    """The bytes on disk are not what their place says they are."""

    errno = errno.EIO


class TooLarge(TreeError):
    """The listing has more members than an index holds."""

    errno = errno.EFBIG


class Unavailable(TreeError):
    """The system cannot serve it now: no descriptors left, an I/O error of the disk."""

    errno = errno.EIO


class Unreadable(TreeError):
    """The file is of a format that is not known here."""

    errno = errno.EIO
