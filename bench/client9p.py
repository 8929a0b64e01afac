"""A 9P2000.L client that does nothing but ask. Frames are made before the clock starts."""

import socket
import struct
import time
from collections.abc import Iterator

NOFID = 0xFFFFFFFF
_TVERSION, _TATTACH, _TLOPEN, _TGETATTR, _TREADDIR, _TWALK, _TREAD, _TCLUNK = (
    100,
    104,
    12,
    24,
    40,
    110,
    116,
    120,
)
_RLERROR = 7
_HEADER = struct.Struct("<IBH")
_DIRENT_FIXED = 24
"""qid[13] offset[8] type[1] and the two bytes of name[s] that say how long it is."""
_IOHDRSZ = 24
_WHOLE_BYTES = 32 << 10
"""More than any message has, and less than diod's msize."""
_LIMIT_SECONDS = 300
_ENOENT = 2


class Client:
    """One connection, attached as fid 0."""

    def __init__(self, port: int, aname: str = "", msize: int = 1 << 17) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), _LIMIT_SECONDS)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 21)
        version = self.ask(frame(_TVERSION, struct.pack("<I", msize) + string("9P2000.L"), 0xFFFF))
        self.msize = struct.unpack_from("<I", version)[0]
        attach = struct.pack("<II", 0, NOFID) + string("root") + string(aname) + struct.pack("<I", 0)
        self.ask(frame(_TATTACH, attach))

    def ask(self, request: bytes) -> memoryview:
        """Send one message and return the body of its answer. Raises OSError for an Rlerror."""
        self.sock.sendall(request)
        view = memoryview(self._buffer)
        got = 0
        while got < 7 or got < _HEADER.unpack_from(view)[0]:
            count = self.sock.recv_into(view[got:])
            if not count:
                raise ConnectionError("the server hung up")
            got += count
        size, kind, _ = _HEADER.unpack_from(view)
        if kind == _RLERROR:
            raise OSError(struct.unpack_from("<I", view, 7)[0], "Rlerror")
        return view[7:size]

    def walk(self, newfid: int, path: str, fid: int = 0) -> None:
        self.ask(walk(fid, newfid, path))

    def has(self, fid: int, name: str) -> bool:
        """Say whether there is *name* in the directory *fid*."""
        try:
            self.walk(NOFID - 1, name, fid)
        except OSError as error:
            if error.errno == _ENOENT:
                return False
            raise
        self.clunk(NOFID - 1)
        return True

    def clunk(self, fid: int) -> None:
        self.ask(clunk(fid))

    def open(self, fid: int) -> None:
        self.ask(lopen(fid))

    def read(self, fid: int, offset: int, count: int) -> int:
        """Return how many bytes came."""
        return struct.unpack_from("<I", self.ask(read(fid, offset, count)))[0]

    def names(self, fid: int) -> int:
        """Read a directory through, and return how many entries it has but for the dots."""
        self.walk(1000, "", fid)
        self.open(1000)
        names = offset = 0
        while True:
            body = self.ask(readdir(1000, offset, self.msize - _IOHDRSZ))
            at, end = 4, len(body)
            if at == end:
                break
            while at < end:
                last = at
                length = body[at + 22] | body[at + 23] << 8
                at += _DIRENT_FIXED + length
                names += length > 2
            offset = struct.unpack_from("<Q", body, last + 13)[0]
        self.clunk(1000)
        return names

    def read_through(self, path: str, limit: int) -> int:
        """Read a file from its beginning, one message after the other; return how many bytes it had."""
        self.walk(1001, path)
        self.open(1001)
        count, offset = self.msize - _IOHDRSZ, 0
        while offset < limit and (got := self.read(1001, offset, count)):
            offset += got
        self.clunk(1001)
        return offset

    def close(self) -> None:
        self.sock.close()


def frame(kind: int, body: bytes, tag: int = 1) -> bytes:
    return _HEADER.pack(7 + len(body), kind, tag) + body


def string(text: str) -> bytes:
    return struct.pack("<H", len(text.encode())) + text.encode()


def walk(fid: int, newfid: int, path: str, tag: int = 1) -> bytes:
    names = path.split("/") if path else []
    return frame(_TWALK, struct.pack("<IIH", fid, newfid, len(names)) + b"".join(map(string, names)), tag)


def clunk(fid: int, tag: int = 1) -> bytes:
    return frame(_TCLUNK, struct.pack("<I", fid), tag)


def lopen(fid: int, tag: int = 1) -> bytes:
    return frame(_TLOPEN, struct.pack("<II", fid, 0), tag)


def read(fid: int, offset: int, count: int, tag: int = 1) -> bytes:
    return frame(_TREAD, struct.pack("<IQI", fid, offset, count), tag)


def readdir(fid: int, offset: int, count: int) -> bytes:
    return frame(_TREADDIR, struct.pack("<IQI", fid, offset, count))


def getattr_(fid: int, tag: int = 1) -> bytes:
    return frame(_TGETATTR, struct.pack("<IQ", fid, 0x7FF), tag)


def look(directory: int, name: str, lane: int) -> list[bytes]:
    """Return walk, getattr and clunk of one name."""
    fid = 10 + lane
    return [walk(directory, fid, name, lane), getattr_(fid, lane), clunk(fid, lane)]


def fetch(directory: int, name: str, lane: int) -> list[bytes]:
    """Return walk, open, read and clunk of one name."""
    fid = 10 + lane
    chat_format = read(fid, 0, _WHOLE_BYTES, lane)
    return [walk(directory, fid, name, lane), lopen(fid, lane), chat_format, clunk(fid, lane)]


def names_per_second(client: Client, conversation, directory: int, names: list[str], depth: int) -> float:
    """Return how many names a second are gone through, *depth* of them at once, each a message at a time."""
    lanes = [
        [message for name in names[lane::depth] for message in conversation(directory, name, lane)]
        for lane in range(depth)
    ]
    start = time.perf_counter()
    _converse(client.sock, [iter(lane) for lane in lanes])
    return len(names) / (time.perf_counter() - start)


def _converse(sock: socket.socket, lanes: list[Iterator[bytes]]) -> None:
    """Send the next message of a lane when the answer to its last one has come; a tag is a lane."""
    sending = [message for lane in lanes if (message := next(lane, None))]
    waiting, rest = len(sending), b""
    sock.sendall(b"".join(sending))
    while waiting:
        data = sock.recv(1 << 18)
        if not data:
            raise ConnectionError("the server hung up")
        rest, at, sending = rest + data if rest else data, 0, []
        while len(rest) - at >= 7:
            size, kind, tag = _HEADER.unpack_from(rest, at)
            if len(rest) - at < size:
                break
            if kind == _RLERROR:
                raise OSError(struct.unpack_from("<I", rest, at + 7)[0], "Rlerror")
            at += size
            waiting -= 1
            if message := next(lanes[tag], None):
                sending.append(message)
        rest = rest[at:]
        waiting += len(sending)
        if sending:
            sock.sendall(b"".join(sending))
