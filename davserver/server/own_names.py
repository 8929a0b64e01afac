"""Which names a server may be called by: those of which it holds every address.

A browser that is sent to a name tries all its addresses in turn, and takes what answers for one site. Where
another user holds one of them on the same port, his page would be the server's own: it could read the tree.
So such a name is refused (421), unless no address of it is the server's at all: then no browser comes by it.
"""

import errno
import socket
from collections.abc import Iterable, Sequence

LOCALHOST = "localhost"
LOOPBACKS = ("127.0.0.1", "::1")
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

Address = tuple[str, int]


def contested_names(names: Iterable[str], held: Sequence[Address]) -> dict[str, list[str]]:
    """Return those of *names*, and of localhost, that others share, with the addresses that are not *held*.

    A name that cannot be resolved is contested by nobody.
    """
    found = {}
    for name in (LOCALHOST, *names):
        addresses = _loopbacks() if name == LOCALHOST else _addresses_of(name)
        for port in {port for _, port in held}:
            missing = [address for address in addresses if not _is_held(address, port, held)]
            if missing and len(missing) < len(addresses):
                found[name] = missing
    return found


def has_address(host: str) -> bool:
    """Return whether this machine has the address *host*."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
            sock.bind((host, 0))
    except OSError as exc:
        return exc.errno not in _NOT_HERE
    return True


def _loopbacks() -> list[str]:
    return [address for address in LOOPBACKS if has_address(address)]


def _addresses_of(name: str) -> list[str]:
    try:
        return sorted({str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})
    except (OSError, UnicodeError):
        return []


def _is_held(address: str, port: int, held: Sequence[Address]) -> bool:
    wildcard = "::" if ":" in address else "0.0.0.0"  # noqa: S104
    # A socket on :: takes IPv4 too.
    return any((host, port) in held for host in (address, wildcard, "::"))
