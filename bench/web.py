"""HTTP as the bench asks for it: one exchange on a connection of its own, a client that stays, and wrk."""

import http.client
import json
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

_DAVFS2 = ("getetag", "getcontentlength", "creationdate", "getlastmodified", "resourcetype")
PROPFIND = (
    '<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:"><D:prop>'
    + "".join(f"<D:{name}/>" for name in _DAVFS2)
    + '<A:executable xmlns:A="http://apache.org/dav/props/"/></D:prop></D:propfind>'
).encode()
"""davfs2's six properties."""
_BUFFER_BYTES = 1 << 18
_LIMIT_SECONDS = 300


class Exchange(NamedTuple):
    """How an exchange went."""

    seconds: float
    first_byte_seconds: float
    nbytes: int
    """Of the whole answer, head and all."""


def exchange(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> Exchange:
    """Ask once and read the answer to its end, without looking into it. Raises OSError if it fails."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}"] if body else []
    request = "\r\n".join([*lines, "", ""]).encode() + body
    buffer = bytearray(_BUFFER_BYTES)
    start = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), _LIMIT_SECONDS) as sock:
        sock.sendall(request)
        total = count = sock.recv_into(buffer)
        first = time.perf_counter() - start
        status, head, last = (
            bytes(buffer[9:12]),
            bytes(buffer[:count]),
            bytes(buffer[max(0, count - 5) : count]),
        )
        while count := sock.recv_into(buffer):
            total += count
            last = bytes(buffer[max(0, count - 5) : count])
    seconds = time.perf_counter() - start
    if status not in (b"200", b"207"):
        raise OSError(f"{method} {path}: {head[:200]!r}")
    if not _complete(head, total, last):
        raise OSError(f"{method} {path}: the answer broke off")
    return Exchange(seconds, first, total)


def _complete(head: bytes, total: int, last: bytes) -> bool:
    """Say whether an answer that begins with *head* had all its *total* bytes."""
    fields, blank, _ = head.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", fields)
    if length:
        return total == len(fields) + len(blank) + int(length[1])
    return b"chunked" not in fields.lower() or last.endswith(b"\r\n")


def propfind(port: int, path: str) -> Exchange:
    """List a collection as davfs2 does."""
    return exchange(port, "PROPFIND", path, PROPFIND, Depth="1")


def get(port: int, path: str, accept: str = "*/*") -> Exchange:
    return exchange(port, "GET", path, Accept=accept)


class Client:
    """A connection that stays."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LIMIT_SECONDS)

    def get(self, path: str, accept: str = "*/*") -> bytes:
        """Return a body. Raises OSError where the status is not 200."""
        self._connection.request("GET", path, headers={"Accept": accept})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise OSError(f"GET {path}: {answer.status} {body[:200]!r}")
        return body

    def after(self, chat: str, last: int) -> list[dict[str, object]]:
        """Return what came after message *last*."""
        return json.loads(self.get(f"{chat}?after={last}", "application/json"))

    def names(self, chat: str) -> list[str]:
        return self.get(chat).decode().split()

    def close(self) -> None:
        self._connection.close()


class Load(NamedTuple):
    """What wrk measured."""

    per_second: float
    p99_ms: float


_SCRIPT = """
local paths, at = {}, 0
for path in io.lines(%r) do paths[#paths + 1] = path end
request = function()
    at = at %% #paths + 1
    return wrk.format("GET", paths[at])
end
"""
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


def write_script(directory: Path, paths: list[str]) -> Path:
    """Write what makes wrk ask for *paths* in turn."""
    (directory / "paths").write_text("\n".join(paths) + "\n")
    script = directory / "paths.lua"
    script.write_text(_SCRIPT % str(directory / "paths"))
    return script


def wrk(port: int, script: Path, connections: int, seconds: int) -> Load:
    """Ask for all of a script's paths over and over. Raises OSError where an answer is no success."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    said = subprocess.run(
        [*command, f"http://127.0.0.1:{port}/"], capture_output=True, text=True, check=True
    ).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise OSError(said)
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s|m)", said).groups()
    return Load(float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1]), float(value) * _UNITS[unit])
