"""The addresses that a front end is told to listen on, as they are written on the command line. Pure."""

import ipaddress
import re
from pathlib import Path
from typing import NamedTuple

_HOST_PORT = re.compile(r"(?P<host>\[[^\[\]]+\]|[^:\[\]]+):(?P<port>[0-9]{1,5})")
LOCALHOST = "localhost"
HTTP_DEFAULT = "127.0.0.1:8564"
NINEP_DEFAULT = "127.0.0.1:5640"


class Tcp(NamedTuple):
    """A TCP address; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == LOCALHOST or ipaddress.ip_address(self.host).is_loopback


class Unix(NamedTuple):
    """A socket file."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


def parse_tcp(text: str) -> Tcp:
    """Parse HOST:PORT, the host an address or localhost. Raises ValueError, which says what to write."""
    match = _HOST_PORT.fullmatch(text)
    port = int(match["port"]) if match else 65536
    if match is None or port > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT; write 127.0.0.1:8564, [::1]:8564 or localhost:0")
    host = match["host"].strip("[]")
    if host != LOCALHOST and not _is_address(host):
        raise ValueError(f"{host!r} is no address; write one of this machine's in numbers, or localhost")
    return Tcp(host, port)


def parse_listener(text: str) -> Tcp | Unix:
    """Parse HOST:PORT on the loopback, or unix:PATH. Raises ValueError, which says what to write."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path:
            raise ValueError("unix: needs a path; write unix:/run/user/1000/agents9.sock")
        return Unix(Path(path))
    address = parse_tcp(text)
    if not address.is_loopback:
        raise ValueError(not_private(address))
    return address


def not_private(address: Tcp, otherwise: str = "") -> str:
    """Return why an address that other machines can reach will not do, and what would."""
    host, port = address
    return (
        f"{host} is not a loopback address, and transcripts are private: {otherwise}write 127.0.0.1:{port}, "
        f"and reach it from elsewhere through ssh -L {port}:127.0.0.1:{port}"
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
