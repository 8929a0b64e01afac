"""A 9P proxy between a unix socket and a port, which counts the messages that a client sends."""

import socket
import threading
from collections import Counter
from pathlib import Path


class Proxy:
    """Counts by the number of the message (Twalk is 110). A thread a direction a connection."""

    def __init__(self, listen: Path, port: int) -> None:
        self.counts: Counter[int] = Counter()
        self._port = port
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(listen))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        rest = b""
        while data := client.recv(1 << 18):
            server.sendall(data)
            rest += data
            while len(rest) >= 5 and len(rest) >= (size := int.from_bytes(rest[:4], "little")):
                self.counts[rest[4]] += 1
                rest = rest[size:]
        server.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 18):
            target.sendall(data)
    except OSError:
        return  # the client hung up first
