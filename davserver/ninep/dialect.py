"""The three dialects, and how one is agreed on (version(5)).

A dialect is a row of what differs: which requests it has, how it says an error, how it shows a stat. The
handlers in `session` ask the row and never the name. Pure: tables and one function.
"""

import errno
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from agents9core.errors import TreeError
from davserver.ninep import messages as m
from davserver.ninep import stat
from davserver.ninep.errors import ProtocolError
from davserver.ninep.wire import NinepMessage

ENAMES = {
    errno.ENOENT: "file does not exist",
    errno.EACCES: "permission denied",
    errno.EROFS: "read only file system",
    errno.ENOTDIR: "not a directory",
    errno.EISDIR: "Is a directory",
    errno.ESTALE: "file has been removed",
    errno.EFBIG: "file too big",
    errno.EIO: "i/o error",
}
"""What plain 9P2000 says for each error of the tree: phrases that Linux's net/9p/error.c and plan9port know.
Linux has none for ESTALE; it reads this one as EIDRM."""


def ename(error: TreeError) -> str:
    """Return the phrase that stands for *error*."""
    if isinstance(error, ProtocolError):
        return error.ename
    return ENAMES.get(error.errno, ENAMES[errno.EIO])


def _rerror(tag: int, error: TreeError) -> NinepMessage:
    return m.Rerror(tag, ename(error))


def _rerror_u(tag: int, error: TreeError) -> NinepMessage:
    return m.RerrorU(tag, ename(error), error.errno)


def _rlerror(tag: int, error: TreeError) -> NinepMessage:
    return m.Rlerror(tag, error.errno)


class Dialect(NamedTuple):
    """What one version of the protocol has that another has not."""

    version: str
    requests: tuple[type[Any], ...]
    """The messages that a client may send."""
    error: Callable[[int, TreeError], NinepMessage]
    """(tag, error): the reply that says so."""
    stat_record: stat.StatRecord
    """What Tstat and the Tread of a directory give."""
    blank_stat: bytes
    """The Twstat that asks for no change."""
    walks_from_open: bool
    """Whether a fid that is open may be walked from. walk(5) forbids it; diod's clients rely on it in .L."""
    tread_reads_directories: bool
    """Whether Tread gives a directory's stat records. In .L that is Treaddir's."""


_SHARED = (m.Tversion, m.Tflush, m.Twalk, m.Tread, m.Twrite, m.Tclunk, m.Tremove)
_STATS = (m.Topen, m.Tstat, m.Twstat)
_LINUX = (
    *(m.Tstatfs, m.Tlopen, m.Tlcreate, m.Tsymlink, m.Tmknod, m.Trename, m.Treadlink, m.Tgetattr, m.Tsetattr),
    *(m.Txattrwalk, m.Txattrcreate, m.Treaddir, m.Tfsync, m.Tlock, m.Tgetlock),
    *(m.Tlink, m.Tmkdir, m.Trenameat, m.Tunlinkat),
)

PLAIN = Dialect(
    version="9P2000",
    requests=(*_SHARED, m.Tauth, m.Tattach, *_STATS, m.Tcreate),
    error=_rerror,
    stat_record=stat.stat_record,
    blank_stat=stat.BLANK_STAT,
    walks_from_open=False,
    tread_reads_directories=True,
)
UNIX = PLAIN._replace(
    version="9P2000.u",
    requests=(*_SHARED, m.TauthU, m.TattachU, *_STATS, m.TcreateU),
    error=_rerror_u,
    stat_record=stat.stat_record_u,
    blank_stat=stat.BLANK_STAT_U,
)
LINUX = UNIX._replace(
    version="9P2000.L",
    requests=(*_SHARED, m.TauthU, m.TattachU, *_LINUX),
    error=_rlerror,
    walks_from_open=True,
    tread_reads_directories=False,
)
UNKNOWN = PLAIN._replace(version="unknown", requests=(m.Tversion,))
"""Before a version is agreed on, and after none was: only Tversion is understood."""

DIALECTS = {dialect.version: dialect for dialect in (PLAIN, UNIX, LINUX)}

_NUMBERED = re.compile(r"9P([0-9]{4,9})(\..*)?", re.DOTALL)


def negotiate(version: str) -> Dialect:
    """Return the dialect to answer a Tversion with.

    A suffix that is not known is dropped, and a later version than 9P2000 is answered with it; both as
    version(5) says. What is no 9P, or earlier, is UNKNOWN.
    """
    if version in DIALECTS:
        return DIALECTS[version]
    numbered = _NUMBERED.fullmatch(version)
    return PLAIN if numbered and int(numbered[1]) >= 2000 else UNKNOWN
