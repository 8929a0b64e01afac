"""A 9P2000.L client that does nothing but ask: walk, getattr and clunk of names, pipelined."""

import socket
import struct
import time

NOFID = 0xFFFFFFFF


class Client:
    """One connection, attached as fid 0."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.ask(100, struct.pack("<I", 1 << 20) + string("9P2000.L"))
        self.ask(104, struct.pack("<II", 0, NOFID) + string("bench") + string("") + struct.pack("<I", 0))

    def walk(self, fid: int, newfid: int, *names: str) -> bytes:
        """Return a Twalk."""
        return frame(110, struct.pack("<IIH", fid, newfid, len(names)) + b"".join(map(string, names)))

    def look(self, fid: int, newfid: int, name: str) -> bytes:
        """Return walk, getattr and clunk of one name."""
        getattr_ = frame(24, struct.pack("<IQ", newfid, 0x7FF))
        return self.walk(fid, newfid, name) + getattr_ + frame(120, struct.pack("<I", newfid))

    def ask(self, kind: int, body: bytes) -> bytes:
        """Send one message and return its answer."""
        self.sock.sendall(frame(kind, body))
        return self.answer()

    def answer(self) -> bytes:
        """Return the next answer, from its type on. Raises OSError for an Rlerror."""
        while len(self.buffer) < 4 or len(self.buffer) < struct.unpack_from("<I", self.buffer)[0]:
            data = self.sock.recv(1 << 16)
            if not data:
                raise ConnectionError("the server hung up")
            self.buffer += data
        size = struct.unpack_from("<I", self.buffer)[0]
        message = bytes(self.buffer[4:size])
        del self.buffer[:size]
        if message[0] == 7:
            raise OSError(struct.unpack_from("<I", message, 3)[0], "Rlerror")
        return message


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack("<IBH", 7 + len(body), kind, 1) + body


def string(text: str) -> bytes:
    return struct.pack("<H", len(text)) + text.encode()


def looks_per_second(port: int, path: list[str], names: list[str], depth: int) -> float:
    """Return how many names a second are walked to, looked at and clunked, *depth* at once."""
    client = Client(port)
    client.sock.sendall(client.walk(0, 1, *path))
    client.answer()
    start = time.perf_counter()
    waiting = 0
    for number, name in enumerate(names):
        client.sock.sendall(client.look(1, 10 + number % depth, name))
        waiting += 3
        while waiting > 3 * (depth - 1):
            client.answer()
            waiting -= 1
    while waiting:
        client.answer()
        waiting -= 1
    client.sock.close()
    return len(names) / (time.perf_counter() - start)
