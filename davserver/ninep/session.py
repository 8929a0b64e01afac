"""One connection's conversation: fids, msize, dialect, and an answer to every request. No sockets.

Bytes go in by `receive_data`, replies come out of `next_replies` some at a time: a burst of small Treads can
ask for gigabytes, and so the caller sends these before it asks for the next. Requests are answered in order,
each before the next is examined. That makes Tflush always Rflush (flush(5)): what it names is answered.

Each handler checks in this order: the fid is known, its state allows it, the node works; only then the fid
changes. No answer is remembered: every operation asks the node again, and what has ended is `Gone`.
Sources: section 5 of Plan 9's manual, one page a message; for .L diod's protocol page.
"""

import logging
from collections.abc import Callable
from typing import Any

from agents9core.errors import IsADirectory, NotADirectory, ReadOnly, TreeError
from agents9core.node import Directory
from davserver.ninep import dialect as dialects
from davserver.ninep import fastpath, limits
from davserver.ninep import messages as m
from davserver.ninep import stat as shape
from davserver.ninep.dirlist import Listing
from davserver.ninep.errors import (
    AlreadyOpen,
    BadUseOfFid,
    FidInUse,
    NoAuthentication,
    NotALink,
    NotSupported,
    ProtocolError,
    TooManyFids,
    Unexpected,
    UnknownFid,
    WireError,
)
from davserver.ninep.fid import Fid, WalkedNode
from davserver.ninep.wire import CODECS, HEADER_BYTES, SIZE, Buffer, NinepMessage, encode

OREAD, OEXEC, OTRUNC, ORCLOSE = 0, 3, 0x10, 0x40
"""Mode bits of Topen (open(5)); the low two bits are the access."""

STATFS_TYPE = 0x61673973
"""A type that no tool knows, and not v9fs's own 0x01021997: GNU tail takes that for a local file system,
waits for inotify, and so `tail -f` never sees a file grow. What it does not know it looks at again."""
NAME_BYTES = 255
LOCK_SUCCESS = 0
LOCK_UNLOCKED = 2

logger = logging.getLogger(__name__)


class NinepSession:
    """The server's side of one connection. Used by one thread at a time."""

    def __init__(
        self, root: Directory, owner: shape.Owner, trace: Callable[[str, NinepMessage], None] | None = None
    ) -> None:
        """Serve the tree at *root*, every file *owner*'s; *trace* is told ("->" or "<-", message) of each."""
        self._root = WalkedNode(root, None)
        self._one_request = root.one_request
        self.owner = owner
        self._trace = trace
        self._buffer: Buffer = b""
        self._at = 0
        self.fids: dict[int, Fid] = {}
        """What the client's numbers stand for."""
        self.msize = limits.FIRST_MSIZE
        self.just_opened: list[Fid] = []
        """The files that were opened since `work_ahead`."""
        self._use(dialects.UNKNOWN)

    @property
    def fid_count(self) -> int:
        """How many fids the client holds."""
        return len(self.fids)

    def receive_data(self, data: bytes) -> None:
        """Take what the client sent, in pieces of any size."""
        buffer, at = self._buffer, self._at
        if at == len(buffer):
            self._buffer = data
        else:
            if not isinstance(buffer, bytearray):
                self._buffer = buffer = bytearray(buffer)
            del buffer[:at]
            buffer += data
        self._at = 0

    def next_replies(self, room: int) -> bytes:
        """Answer what has arrived until the replies have *room* bytes; b"" when more bytes are needed.

        One look serves them all: none of them was asked after it. Raises WireError, when what comes before
        it has been answered.
        """
        replies: list[bytes] = []
        buffer, start = self._buffer, self._at
        arrived = len(buffer) - start
        if not arrived:
            return b""
        if HEADER_BYTES <= arrived <= fastpath.LONGEST and SIZE.unpack_from(buffer, start)[0] == arrived:
            alone = self._answer_quickly(buffer, start, arrived)
            if alone is not None:
                return alone
        with self._one_request():
            while room > 0:
                try:
                    reply = self.next_reply()
                except WireError:
                    if not replies:
                        raise
                    break
                if reply is None:
                    break
                replies.append(reply)
                room -= len(reply)
        return b"".join(replies)

    def _answer_quickly(self, buffer: Buffer, start: int, size: int) -> bytes | None:
        """Answer a whole frame by `quick`. None, and nothing is done: it is to be answered the long way."""
        answer = self._quick.get(buffer[start + 4])
        if answer is None:
            return None
        try:
            reply = answer(self, buffer, start, size)
        except Exception:  # noqa: BLE001 - the long way raises it again, and says so
            return None
        if reply is not None:
            self._at = start + size
        return reply

    def next_reply(self) -> bytes | None:
        """Answer the next request: one whole frame, None when more bytes are needed. Raises WireError."""
        buffer, start = self._buffer, self._at
        arrived = len(buffer) - start
        if arrived < 4:
            return None
        (size,) = SIZE.unpack_from(buffer, start)
        if not HEADER_BYTES <= size <= self.msize:
            raise WireError(f"a message of {size} bytes where {HEADER_BYTES} to {self.msize} may be")
        if arrived < size:
            return None
        if size <= fastpath.LONGEST and (reply := self._answer_quickly(buffer, start, size)) is not None:
            return reply
        end = self._at = start + size
        request = self._requests.get(buffer[start + 4])
        try:
            if request is None:
                raise NotSupported(f"message type {buffer[start + 4]}")
            decode, handle = request
            message = decode(buffer, start, end)
            if self._trace:
                self._trace("->", message)
            said = handle(self, message)
            if self._trace:
                self._trace("<-", said)
            return CODECS[type(said)].encode(said)
        except TreeError as exc:
            return self._error(start, exc)
        except Exception as exc:
            logger.exception("a request of type %d", buffer[start + 4])
            return self._error(start, Unexpected(str(exc)))

    def work_ahead(self) -> None:
        """Prepare what was opened, while the client takes the replies that `next_replies` gave."""
        if not self.just_opened:
            return
        fids, self.just_opened = self.just_opened, []
        for fid in fids:
            try:
                fid.prepare()
            except TreeError:
                continue  # as reading it will say
            except Exception:
                logger.exception("a file that was opened is prepared")

    def close(self) -> None:
        """Release everything: the connection has ended, or begins anew."""
        fids = list(self.fids.values())
        self.fids.clear()
        for fid in fids:
            fid.let_go()

    def _error(self, start: int, error: TreeError) -> bytes:
        """Return the reply that says *error* to the frame at *start*."""
        tag = int.from_bytes(self._buffer[start + 5 : start + 7], "little")
        reply = self._dialect.error(tag, error)
        if self._trace:
            self._trace("<-", reply)
        return encode(reply)

    # --- version, auth, attach, flush ---

    def _use(self, dialect: dialects.Dialect) -> None:
        self._dialect = dialect
        self._requests = REQUESTS[dialect.version]
        self._quick = {} if self._trace else fastpath.ANSWERS[dialect.version]

    def _version(self, message: m.Tversion) -> NinepMessage:
        if message.msize < limits.MIN_MSIZE:
            raise ProtocolError(f"msize {message.msize} is less than {limits.MIN_MSIZE}")
        self.close()
        self.msize = min(message.msize, limits.MAX_MSIZE)
        self._use(dialects.negotiate(message.version))
        return m.Rversion(message.tag, self.msize, self._dialect.version)

    def _auth(self, message: m.Tauth | m.TauthU) -> NinepMessage:
        raise NoAuthentication("no authentication is needed")

    def _attach(self, message: m.Tattach | m.TattachU) -> NinepMessage:
        self._check_new(message.fid)
        if message.afid != m.NOFID:
            raise UnknownFid(f"afid {message.afid}")
        place = self._root
        for name in message.aname.split("/"):
            if name not in ("", "."):
                place, _ = place.step(name)
        stat = place.node.stat()
        self.fids[message.fid] = Fid(WalkedNode(place.node, None))
        return m.Rattach(message.tag, shape.qid(stat))

    def _flush(self, message: m.Tflush) -> NinepMessage:
        return m.Rflush(message.tag)

    # --- fids ---

    def _known(self, fid: int) -> Fid:
        try:
            return self.fids[fid]
        except KeyError:
            raise UnknownFid(f"fid {fid}") from None

    def _check_new(self, fid: int) -> None:
        if fid in self.fids or fid == m.NOFID:
            raise FidInUse(f"fid {fid}")
        if len(self.fids) >= limits.MAX_FIDS:
            raise TooManyFids(f"{limits.MAX_FIDS} fids")

    def _walk(self, message: m.Twalk) -> NinepMessage:
        _, number, newfid, names = message
        fid = self._known(number)
        if newfid != number:
            self._check_new(newfid)
        if fid.opened is not None and (newfid == number or not self._dialect.walks_from_open):
            raise BadUseOfFid(f"fid {number} is open")
        place = fid.walked
        qids: list[bytes] = []
        for name in names:
            try:
                place, stat = place.step(name)
            except TreeError:
                if not qids:
                    raise
                return m.Rwalk(message.tag, tuple(qids))
            qids.append(shape.qid(stat))
        if newfid == number:
            fid.walked = place
        else:
            self.fids[newfid] = Fid(place)
        return m.Rwalk(message.tag, tuple(qids))

    def _clunk(self, message: m.Tclunk) -> NinepMessage:
        fid = self._known(message.fid)
        del self.fids[message.fid]
        fid.let_go()
        return m.Rclunk(message.tag)

    def _remove(self, message: m.Tremove) -> NinepMessage:
        """Clunk, as remove(5) says, also though it fails."""
        self._clunk(m.Tclunk(message.tag, message.fid))
        raise ReadOnly("the tree is read-only")

    # --- open and read ---

    def _topen(self, message: m.Topen) -> NinepMessage:
        writes = message.mode & 3 not in (OREAD, OEXEC) or message.mode & (OTRUNC | ORCLOSE)
        return m.Ropen(message.tag, self._open(message.fid, writes=bool(writes)), 0)

    def _tlopen(self, message: m.Tlopen) -> NinepMessage:
        writes = message.flags & (m.O_ACCMODE | m.O_TRUNC)
        return m.Rlopen(message.tag, self._open(message.fid, writes=bool(writes)), 0)

    def _open(self, number: int, *, writes: bool) -> bytes:
        """Open the fid and return its qid. (The iounit of 0 in the reply leaves the size to msize.)"""
        fid = self._known(number)
        if fid.opened is not None:
            raise AlreadyOpen(f"fid {number}")
        if writes:
            raise ReadOnly("the tree is read-only")
        fid.opened, stat = fid.walked.open()
        self.just_opened.append(fid)
        return shape.qid(stat)

    def _read(self, message: m.Tread) -> NinepMessage:
        tag, number, offset, count = message
        fid = self._known(number)
        room = min(count, self.msize - limits.READ_HEADER_BYTES)
        opened = fid.opened
        if isinstance(opened, Listing):
            return m.Rread(tag, self._read_directory(opened, offset, room))
        if opened is None:
            raise BadUseOfFid(f"fid {number} is not open")
        return m.Rread(tag, opened.read(offset, room) if offset <= limits.MAX_OFFSET else b"")

    def _read_directory(self, listing: Listing, offset: int, room: int) -> bytes:
        if not self._dialect.tread_reads_directories:
            raise IsADirectory("directories are read by Treaddir")
        pack = shape.stat_records(self._dialect.stat_record, self.owner)
        return listing.from_offset(offset, room, pack)

    def _readdir(self, message: m.Treaddir) -> NinepMessage:
        tag, number, offset, count = message
        fid = self._known(number)
        room = min(count, self.msize - limits.READ_HEADER_BYTES)
        if not isinstance(fid.walked.node, Directory):
            raise NotADirectory(fid.walked.node.name)
        if not isinstance(fid.opened, Listing):
            raise BadUseOfFid(f"fid {number} is not open")
        return m.Rreaddir(tag, fid.opened.from_cookie(offset, room, shape.dirents))

    # --- stat ---

    def _stat(self, message: m.Tstat) -> NinepMessage:
        place = self._known(message.fid).walked
        name = place.node.name if place.parent else "/"
        record = self._dialect.stat_record(name, place.node.stat(), self.owner)
        return m.Rstat(message.tag, record)

    def _getattr(self, message: m.Tgetattr) -> NinepMessage:
        tag, number, _ = message
        return shape.attributes(tag, self._known(number).walked.node.stat(), self.owner)

    def _statfs(self, message: m.Tstatfs) -> NinepMessage:
        """Say that nothing is free: the tree has no size of its own."""
        self._known(message.fid)
        return m.Rstatfs(message.tag, STATFS_TYPE, shape.BLOCK_BYTES, 0, 0, 0, 0, 0, 0, NAME_BYTES)

    # --- what a tree that is only read can grant ---

    def _wstat(self, message: m.Twstat) -> NinepMessage:
        self._known(message.fid)
        if message.stat != self._dialect.blank_stat:
            raise ReadOnly("the tree is read-only")
        return m.Rwstat(message.tag)

    def _fsync(self, message: m.Tfsync) -> NinepMessage:
        self._known(message.fid)
        return m.Rfsync(message.tag)

    def _lock(self, message: m.Tlock) -> NinepMessage:
        """Grant it: nobody writes, so every lock is as good as shared."""
        self._known(message.fid)
        return m.Rlock(message.tag, LOCK_SUCCESS)

    def _getlock(self, message: m.Tgetlock) -> NinepMessage:
        self._known(message.fid)
        _, _, _, start, length, proc_id, client_id = message
        return m.Rgetlock(message.tag, LOCK_UNLOCKED, start, length, proc_id, client_id)

    # --- what it cannot ---

    def _refuse(self, message: Any) -> NinepMessage:  # noqa: ANN401 - every request that writes
        """Refuse to write. Each of these requests has the fid that it would write through first."""
        self._known(message[1])
        raise ReadOnly("the tree is read-only")

    def _xattrwalk(self, message: m.Txattrwalk) -> NinepMessage:
        """Refuse so that GNU ls asks once and not for every file, which it does after ENODATA."""
        self._known(message.fid)
        raise NotSupported("no extended attributes")

    def _readlink(self, message: m.Treadlink) -> NinepMessage:
        self._known(message.fid)
        raise NotALink("no symbolic links")


HANDLERS: dict[type[Any], Callable[[NinepSession, Any], NinepMessage]] = {
    m.Tversion: NinepSession._version,
    m.Tauth: NinepSession._auth,
    m.TauthU: NinepSession._auth,
    m.Tattach: NinepSession._attach,
    m.TattachU: NinepSession._attach,
    m.Tflush: NinepSession._flush,
    m.Twalk: NinepSession._walk,
    m.Topen: NinepSession._topen,
    m.Tlopen: NinepSession._tlopen,
    m.Tread: NinepSession._read,
    m.Treaddir: NinepSession._readdir,
    m.Tclunk: NinepSession._clunk,
    m.Tremove: NinepSession._remove,
    m.Tstat: NinepSession._stat,
    m.Tgetattr: NinepSession._getattr,
    m.Tstatfs: NinepSession._statfs,
    m.Twstat: NinepSession._wstat,
    m.Tfsync: NinepSession._fsync,
    m.Tlock: NinepSession._lock,
    m.Tgetlock: NinepSession._getlock,
    m.Txattrwalk: NinepSession._xattrwalk,
    m.Treadlink: NinepSession._readlink,
    m.Twrite: NinepSession._refuse,
    m.Tcreate: NinepSession._refuse,
    m.TcreateU: NinepSession._refuse,
    m.Tlcreate: NinepSession._refuse,
    m.Tsymlink: NinepSession._refuse,
    m.Tmknod: NinepSession._refuse,
    m.Tmkdir: NinepSession._refuse,
    m.Tlink: NinepSession._refuse,
    m.Trename: NinepSession._refuse,
    m.Trenameat: NinepSession._refuse,
    m.Tunlinkat: NinepSession._refuse,
    m.Tsetattr: NinepSession._refuse,
    m.Txattrcreate: NinepSession._refuse,
}

REQUESTS = {
    dialect.version: {
        CODECS[request].number: (CODECS[request].decode, HANDLERS[request]) for request in dialect.requests
    }
    for dialect in (*dialects.DIALECTS.values(), dialects.UNKNOWN)
}
"""Each dialect's messages by their number, with how to read and how to answer them."""
