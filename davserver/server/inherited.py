"""Sockets that systemd holds for the server (socket activation): nobody else can take their ports meanwhile.

Source: sd_listen_fds(3).
"""

import os
import socket
from collections.abc import MutableMapping

FIRST_FD = 3


def take_inherited_sockets(environ: MutableMapping[str, str] = os.environ) -> list[socket.socket]:
    """Return the listening TCP sockets that were passed to this process, and forget that they were."""
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    found = []
    for fd in range(FIRST_FD, FIRST_FD + int(count)):
        os.set_inheritable(fd, False)
        sock = socket.socket(fileno=fd)
        if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
            found.append(sock)
    return found
