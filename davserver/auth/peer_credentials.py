"""Who is at the other end: the uid of a client on this machine.

A unix socket says it itself (SO_PEERCRED, unix(7)). For TCP over loopback the kernel is asked for the owner
of the *client's* socket: by sock_diag (linux/inet_diag.h, sock_diag(7); about 20 µs, unprivileged), or, only
where a try at the start finds no sock_diag, by reading /proc/net/tcp (some milliseconds).

Whatever cannot be known is nobody: a socket whose process has closed it (it shows uid 0 and inode 0), the
overflow uid that stands for every user outside this user namespace, any error.
"""

import contextlib
import ipaddress
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

logger = logging.getLogger(__name__)

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
ANY_STATE = 0xFFFFFFFF
ANSWER_BYTES = 4096

_REQUEST = struct.Struct("=LHHLL BBBxL")  # nlmsghdr; family, protocol, extensions, states
_ENDS = struct.Struct(">HH16s16s")  # inet_diag_sockid: ports and addresses, in network order
_ANY_INTERFACE_AND_COOKIE = bytes(4) + b"\xff" * 8
_ANSWER = struct.Struct("=LHHLL BBxx")  # nlmsghdr; family, state
_ANSWER_ENDS_AT, _ANSWER_OWNER_AT = 20, 80
_OWNER = struct.Struct("=LL")  # uid, inode

IPV6_NETWORK_BITS = 64
"""What one customer of a network has at least (RFC 6177), and every host of it takes addresses from."""

_PROC_TABLES = {socket.AF_INET: "/proc/net/tcp", socket.AF_INET6: "/proc/net/tcp6"}


class Ends(NamedTuple):
    """A TCP connection as its client sees it."""

    family: int
    client: bytes
    client_port: int
    server: bytes
    server_port: int

    def packed(self) -> bytes:
        """Return the ports and addresses as sock_diag lays them out."""
        return _ENDS.pack(self.client_port, self.server_port, self.client, self.server)


class UnknownPeer(Exception):
    """Nobody can be named as the owner of the socket."""


class Peers:
    """Answers whether a client is the server's own user or root. Used from several threads."""

    def __init__(self) -> None:
        self._own = os.getuid()
        self._overflow = _overflow_uid()
        self._lock = threading.Lock()
        self._netlink: socket.socket | None = None
        self._tcp_owner: Callable[[Ends], int] = self._ask_kernel
        if not self._knows_own_loopback():
            logger.info("the kernel has no sock_diag; clients are looked up in /proc/net/tcp")
            self._tcp_owner = _look_in_proc

    def admits(self, sock: socket.socket) -> bool:
        """Return whether the client at the other end of *sock* may read."""
        try:
            uid = self.uid_of(sock)
        except Exception:  # noqa: BLE001 - whatever goes wrong here, nobody gets in by it
            return False
        return uid != self._overflow and uid in (self._own, 0)

    def uid_of(self, sock: socket.socket) -> int:
        """Return the uid of the client at the other end. Raises Unknown, OSError, ValueError."""
        if sock.family == socket.AF_UNIX:
            size = struct.calcsize("=iII")
            _, uid, _ = struct.unpack("=iII", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
            return int(uid)
        return self._tcp_owner(_ends_of(sock))

    def name_of(self, sock: socket.socket) -> str | None:
        """Return what a client is counted by: its uid, or the network that it comes from.

        None is nobody: who comes over loopback, where whoever likes takes one of 16 million addresses, and
        cannot be named.
        """
        try:
            return f"uid {self.uid_of(sock)}"
        except (UnknownPeer, OSError, ValueError):
            return _network_of(sock)

    def close(self) -> None:
        """Release the netlink socket."""
        with self._lock:
            self._drop_netlink()

    def _knows_own_loopback(self) -> bool:
        try:
            with (
                socket.create_server(("127.0.0.1", 0)) as listener,
                socket.socket() as client,
            ):
                client.connect(listener.getsockname())
                with listener.accept()[0] as accepted:
                    return self.uid_of(accepted) == self._own
        except (UnknownPeer, OSError):
            return False

    def _ask_kernel(self, ends: Ends) -> int:
        """Ask sock_diag. One query at a time goes over the one netlink socket."""
        with self._lock:
            try:
                answer = self._exchange(ends)
            except BaseException:
                self._drop_netlink()  # a late answer must never meet the next question
                raise
        return _owner_in(answer, ends)

    def _exchange(self, ends: Ends) -> bytes:
        if self._netlink is None:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_SOCK_DIAG)
        request = _REQUEST.pack(
            _REQUEST.size + _ENDS.size + len(_ANY_INTERFACE_AND_COOKIE),
            SOCK_DIAG_BY_FAMILY,
            NLM_F_REQUEST,
            1,
            0,
            ends.family,
            socket.IPPROTO_TCP,
            0,
            ANY_STATE,
        )
        self._netlink.send(request + ends.packed() + _ANY_INTERFACE_AND_COOKIE)
        return self._netlink.recv(ANSWER_BYTES, socket.MSG_DONTWAIT)  # it is there when send returns

    def _drop_netlink(self) -> None:
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None


def _owner_in(answer: bytes, ends: Ends) -> int:
    """Return the uid that an answer of sock_diag names, if it is about *ends* and anybody's."""
    _, kind, _, _, _, family, _ = _ANSWER.unpack_from(answer)
    if kind != SOCK_DIAG_BY_FAMILY or family != ends.family:
        raise UnknownPeer("no such socket")
    named = answer[_ANSWER_ENDS_AT : _ANSWER_ENDS_AT + _ENDS.size]
    if named != ends.packed():
        raise UnknownPeer("the answer is about another socket")
    uid, inode = _OWNER.unpack_from(answer, _ANSWER_OWNER_AT)
    return _owner(uid, inode)


def _owner(uid: int, inode: int) -> int:
    if inode == 0:
        raise UnknownPeer("its process has closed it")
    return uid


def _look_in_proc(ends: Ends) -> int:
    """Find the owner of the client's end in /proc/net/tcp or tcp6 (proc(5))."""
    client = _proc_address(ends.family, ends.client, ends.client_port)
    server = _proc_address(ends.family, ends.server, ends.server_port)
    with open(_PROC_TABLES[socket.AddressFamily(ends.family)]) as table:
        for line in table:
            fields = line.split()
            if fields[1:3] == [client, server]:
                return _owner(int(fields[7]), int(fields[9]))
    raise UnknownPeer("no such socket")


def _proc_address(family: int, packed: bytes, port: int) -> str:
    """Return an address as those tables print it: 32-bit words as this machine reads them."""
    words = packed[:4] if family == socket.AF_INET else packed
    return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=L", words)) + f":{port:04X}"


def _ends_of(sock: socket.socket) -> Ends:
    """Return both ends of an accepted connection over loopback. Raises Unknown for any other."""
    host, port, *_ = sock.getpeername()
    own_host, own_port, *_ = sock.getsockname()
    client, server = _address(host), _address(own_host)
    if not client.is_loopback or client.version != server.version:
        raise UnknownPeer("it does not come over loopback")
    family = socket.AF_INET if client.version == 4 else socket.AF_INET6
    return Ends(family, client.packed.ljust(16, b"\0"), port, server.packed.ljust(16, b"\0"), own_port)


def _network_of(sock: socket.socket) -> str | None:
    """Return the address of another machine, of IPv6 its network; None for this one's and for none."""
    try:
        address = _address(sock.getpeername()[0])
    except (OSError, ValueError):
        return None
    if address.is_loopback:
        return None
    if address.version == 4:
        return str(address)
    return str(ipaddress.IPv6Network((address.packed, IPV6_NETWORK_BITS), strict=False))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address; one of IPv4 mapped into IPv6 is a socket of IPv4 at the client's end."""
    address = ipaddress.ip_address(host)
    return getattr(address, "ipv4_mapped", None) or address


def _overflow_uid() -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    return 65534
