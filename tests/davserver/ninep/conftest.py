"""A 9P client with no sockets between: it asks, and reads replies as its dialect lays them out."""

import errno
import struct
from typing import NamedTuple

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from davserver.ninep import messages as m
from davserver.ninep.dialect import DIALECTS
from davserver.ninep.session import NinepSession
from davserver.ninep.stat import Owner
from davserver.ninep.wire import CODECS, decode, encode

OWNER = Owner(1000, 100, "glenda", "sys")
MTIME_NS = 1_764_430_802_123_456_789

REPLIES = {
    "9P2000": (m.Rerror, m.Ropen, m.Rstat, m.Rwstat),
    "9P2000.u": (m.RerrorU, m.Ropen, m.Rstat, m.Rwstat),
    "9P2000.L": (m.Rlerror, m.Rlopen, m.Rgetattr, m.Rstatfs, m.Rreaddir, m.Rfsync, m.Rlock, m.Rgetlock),
}
SHARED_REPLIES = (m.Rversion, m.Rattach, m.Rwalk, m.Rread, m.Rclunk, m.Rflush)

V9FS_ERRNO = {
    "file does not exist": errno.ENOENT,
    "illegal path element": errno.ENOENT,
    "permission denied": errno.EACCES,
    "read only file system": errno.EROFS,
    "not a directory": errno.ENOTDIR,
    "Is a directory": errno.EISDIR,
    "file has been removed": errno.EIDRM,
    "file too big": errno.EFBIG,
    "i/o error": errno.EIO,
    "protocol botch": errno.EPROTO,
    "fid unknown or out of range": errno.EBADF,
    "fid already in use": errno.EBADF,
    "bad use of fid": errno.EBADF,
    "file already open for I/O": errno.ETXTBSY,
    "Too many open files in system": errno.ENFILE,
    "bad offset in directory read": errno.ESPIPE,
    "Operation not supported": errno.EOPNOTSUPP,
    "Invalid argument": errno.EINVAL,
}
"""What Linux makes of the phrases (net/9p/error.c)."""


class Refused(Exception):
    """The server answered with an error; *errno* is what Linux's client makes of it."""

    def __init__(self, reply) -> None:
        super().__init__(str(reply))
        self.reply = reply
        self.errno = V9FS_ERRNO[reply.ename] if isinstance(reply, m.Rerror) else reply[-1]


class Record(NamedTuple):
    """A stat record, read by the manual."""

    size: int
    qid: bytes
    mode: int
    atime: int
    mtime: int
    length: int
    strings: tuple[str, ...]
    numbers: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.strings[0]


class Dirent(NamedTuple):
    """A .L directory entry."""

    qid: bytes
    cookie: int
    type: int
    name: str


def _text(data, at):
    (length,) = struct.unpack_from("<H", data, at)
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length


def records(data, *, numbers):
    """Read stat records one after the other; *numbers* where .u's fields follow."""
    found = []
    while data:
        size, kind, dev, qid, mode, atime, mtime, length = struct.unpack_from("<HHI13sIIIQ", data)
        assert (kind, dev) == (0, 0)
        at, strings = 41, []
        for _ in range(5 if numbers else 4):
            text, at = _text(data, at)
            strings.append(text)
        tail = struct.unpack_from("<III", data, at) if numbers else ()
        assert at + 4 * len(tail) == size + 2
        found.append(Record(size, qid, mode, atime, mtime, length, tuple(strings), tail))
        data = data[size + 2 :]
    return found


def dirents(data):
    """Read .L entries one after the other."""
    found, at = [], 0
    while at < len(data):
        qid, cookie, kind = struct.unpack_from("<13sQB", data, at)
        name, at = _text(data, at + 22)
        found.append(Dirent(qid, cookie, kind, name))
    return found


def check(reply):
    if isinstance(reply, m.Rerror | m.RerrorU | m.Rlerror):
        raise Refused(reply)
    return reply


class Talk:
    """A client that has agreed on a version and attached fid 0."""

    def __init__(self, root, version, msize=65536) -> None:
        self.version = version
        self.linux = version == "9P2000.L"
        self.session = NinepSession(root, OWNER)
        classes = (*SHARED_REPLIES, *REPLIES[version])
        self._replies = {CODECS[cls].number: cls for cls in classes}
        self.asked = self.call(m.Tversion(m.NOTAG, msize, version))
        self.msize = self.asked.msize
        self.attach(0)

    def read_reply(self):
        frame = self.session.next_reply()
        return None if frame is None else decode(self._replies[frame[4]], frame)

    def ask_raw(self, frame):
        self.session.receive_data(frame)
        reply = self.read_reply()
        assert self.session.next_reply() is None
        return reply

    def ask(self, message):
        reply = self.ask_raw(encode(message))
        assert reply.tag == message.tag
        return reply

    def call(self, message):
        """Ask, and raise Refused where the answer is an error."""
        return check(self.ask(message))

    def refusal(self, message):
        """Ask what is refused, and return the number that Linux sees."""
        return self.refusal_raw(encode(message))

    def refusal_raw(self, frame):
        with pytest.raises(Refused) as caught:
            check(self.ask_raw(frame))
        return caught.value.errno

    def attach_message(self, fid, afid=m.NOFID, uname="nobody", aname="", n_uname=m.NOFID):
        if self.version == "9P2000":
            return m.Tattach(1, fid, afid, uname, aname)
        return m.TattachU(1, fid, afid, uname, aname, n_uname)

    def attach(self, fid):
        return self.call(self.attach_message(fid))

    def walk(self, fid, newfid, *names):
        return self.call(m.Twalk(1, fid, newfid, names))

    def open_message(self, fid):
        return m.Tlopen(1, fid, 0o100000) if self.linux else m.Topen(1, fid, 0)

    def open(self, fid):
        return self.call(self.open_message(fid))

    def reach(self, fid, *names):
        """Walk from the root to *names* and open what is there."""
        self.walk(0, fid, *names)
        return self.open(fid)

    def read(self, fid, offset=0, count=65536):
        return self.call(m.Tread(1, fid, offset, count)).data

    def clunk(self, fid):
        return self.call(m.Tclunk(1, fid))

    def stat_message(self, fid):
        return m.Tgetattr(1, fid, 0x7FF) if self.linux else m.Tstat(1, fid)

    def stat(self, fid):
        reply = self.call(self.stat_message(fid))
        return reply if self.linux else self.records(reply.stat)[0]

    def records(self, data):
        return records(data, numbers=self.version == "9P2000.u")

    def list_message(self, fid, position, count):
        return m.Treaddir(1, fid, position, count) if self.linux else m.Tread(1, fid, position, count)

    def list_some(self, fid, position, count):
        """Read a directory once: the entries, and the position of the next read."""
        data = self.call(self.list_message(fid, position, count)).data
        assert len(data) <= count
        if self.linux:
            entries = dirents(data)
            return entries, entries[-1].cookie if entries else position
        return self.records(data), position + len(data)

    def list_all(self, fid, count=65536):
        names, position = [], 0
        while True:
            entries, position = self.list_some(fid, position, count)
            if not entries:
                return names
            names += [entry.name for entry in entries]


@pytest.fixture
def chat():
    chat = MemoryChat()
    for number in range(40):
        chat.say("user" if number % 2 else "assistant", b"message %d\n" % number, MTIME_NS + number * 10**9)
    return chat


@pytest.fixture
def version_file():
    return MemoryFile("version", b"agents9\n", MTIME_NS)


@pytest.fixture
def root(chat, version_file):
    long = MemoryFile("long", bytes(range(256)) * 1200, MTIME_NS)
    deep = MemoryDirectory("sub", [MemoryDirectory("deep", [MemoryFile("ü", b"umlaut\n", MTIME_NS)])])
    return MemoryDirectory("root", [version_file, long, MemoryFile("empty"), chat, deep])


@pytest.fixture(params=list(DIALECTS))
def talk(request, root):
    """A conversation in each dialect."""
    return Talk(root, request.param)


@pytest.fixture
def plain(root):
    return Talk(root, "9P2000")


@pytest.fixture
def unix(root):
    return Talk(root, "9P2000.u")


@pytest.fixture
def linux(root):
    return Talk(root, "9P2000.L")


@pytest.fixture(params=["9P2000", "9P2000.u"])
def stats(request, root):
    """A conversation in each dialect that has Tstat and reads directories by Tread."""
    return Talk(root, request.param)


@pytest.fixture
def new_talk(root):
    """Make a conversation: (version, msize)."""
    return lambda version="9P2000.L", msize=65536: Talk(root, version, msize)
