"""What a 9P client can do wrong.

A `WireError` is no 9P at all: nothing after it can be trusted, so the connection closes. A `ProtocolError`
is a request that broke a rule: it gets an error reply, and the connection goes on. Its *ename* is a phrase
that Linux's net/9p/error.c turns back into a number, so that plain 9P2000 clients see the right one.
"""

import errno
from typing import ClassVar

from agents9core.errors import TreeError


class WireError(Exception):
    """The bytes are not 9P."""


class ProtocolError(TreeError):
    """The request is malformed: a short or overlong body, a bad string, a rule of intro(5) broken."""

    errno: ClassVar[int] = errno.EPROTO
    ename: ClassVar[str] = "protocol botch"


class IllegalName(ProtocolError):
    """A path element that cannot name anything: empty, `.`, not UTF-8, with a NUL or a `/`.

    To a shell it is a file that does not exist, hence ENOENT and not EPROTO.
    """

    errno = errno.ENOENT
    ename = "illegal path element"


class UnknownFid(ProtocolError):
    """The fid was never made, or is clunked."""

    errno = errno.EBADF
    ename = "fid unknown or out of range"


class FidInUse(ProtocolError):
    """The new fid stands for something already."""

    errno = errno.EBADF
    ename = "fid already in use"


class BadUseOfFid(ProtocolError):
    """The fid is open and may not be, or is not open and must be."""

    errno = errno.EBADF
    ename = "bad use of fid"


class AlreadyOpen(ProtocolError):
    """The fid was opened before."""

    errno = errno.ETXTBSY
    ename = "file already open for I/O"


class TooManyFids(ProtocolError):
    """The connection holds as many fids as one may."""

    errno = errno.ENFILE
    ename = "Too many open files in system"


class BadOffset(ProtocolError):
    """A directory is read from 0 or from where the last read ended."""

    errno = errno.ESPIPE
    ename = "bad offset in directory read"


class NoRoom(ProtocolError):
    """A read of a directory has no room for the next entry; no bytes would say that it has ended."""

    errno = errno.EINVAL
    ename = "Invalid argument"


class NotSupported(ProtocolError):
    """The dialect, or this tree, has no such operation."""

    errno = errno.EOPNOTSUPP
    ename = "Operation not supported"


class NoAuthentication(ProtocolError):
    """Who may connect was settled before the first byte, so there is nothing to authenticate.

    There is no such thing as an authentication file, and ENOENT is how a server of .L says so: diod's
    clients take every other number for a failure.
    """

    errno = errno.ENOENT
    ename = "file does not exist"


class NotALink(ProtocolError):
    """The tree has no symbolic links to read."""

    errno = errno.EINVAL
    ename = "Invalid argument"


class Unexpected(TreeError):
    """A node raised what its contract does not allow: a bug, logged with its traceback, and EIO."""
