"""The lock route: which process holds a lock on which file. Source: proc_locks(5).

`/proc/locks` stays readable where a process's open files are not: in a user namespace, or for a process that
is not dumpable. codex and dsh use it.
"""

import os
import re
from collections.abc import Iterable

_FLOCK = rb"\d+: FLOCK +\w+ +WRITE +(\d+) [0-9a-f]+:[0-9a-f]+:(\d+) "
_CHUNK = 1 << 16

Locks = dict[int, frozenset[int]]
"""pid to the inodes that it holds an exclusive flock on."""


def parse_locks(lines: Iterable[bytes]) -> Locks:
    """Return who holds what. Waiters (`->`), readers, POSIX locks and what is no lock are left out."""
    held: dict[int, set[int]] = {}
    for line in lines:
        if found := re.match(_FLOCK, line):
            held.setdefault(int(found[1]), set()).add(int(found[2]))
    return {pid: frozenset(inodes) for pid, inodes in held.items()}


def read_locks(root: str = "/proc") -> Locks:
    """Read the lock table below *root*; empty where it cannot be read."""
    try:
        fd = os.open(f"{root}/locks", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        data = bytearray()
        while chunk := os.read(fd, _CHUNK):
            data += chunk
    except OSError:
        return {}
    finally:
        os.close(fd)
    return parse_locks(bytes(data).splitlines())
