"""Who a client is. Needs root for the part with other users, since only root can become one."""

import os
import pwd
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from davserver.auth import peer_credentials as peer
from davserver.auth.peer_credentials import Ends, Peers, UnknownPeer

OTHER_USER = "nobody"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can run a client as another user")


@pytest.fixture
def peers():
    made = Peers()
    yield made
    made.close()


@pytest.fixture
def without_sock_diag(monkeypatch):
    """Siblings on a kernel without the module: every query answers ENOENT."""

    def refuse(self, ends):
        raise UnknownPeer("no such socket")

    monkeypatch.setattr(Peers, "_ask_kernel", refuse)
    made = Peers()
    assert made._tcp_owner is peer._look_in_proc
    yield made
    made.close()


FAMILIES = {
    "ipv4": (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
    "ipv6": (socket.AF_INET6, "::1", "::1"),
    "another loopback address": (socket.AF_INET, "127.0.0.1", "127.9.8.7"),
    "mapped": (socket.AF_INET6, "::", "127.0.0.1"),
}


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES)
def pair(request):
    """A client's socket and the accepted end of its connection."""
    family, host, source = request.param
    with socket.socket(family) as listener:
        if host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, 0))
        listener.listen()
        target = "127.0.0.1" if host == "::" else host
        client = socket.create_connection((target, listener.getsockname()[1]), source_address=(source, 0))
        accepted, _ = listener.accept()
    with client, accepted:
        yield client, accepted


def test_our_own_client_is_admitted(peers, pair):
    assert peers.uid_of(pair[1]) == os.getuid()
    assert peers.admits(pair[1])


def test_the_tables_of_proc_say_the_same(without_sock_diag, pair):
    assert without_sock_diag.uid_of(pair[1]) == os.getuid()
    assert without_sock_diag.admits(pair[1])


def test_sock_diag_is_used_where_the_kernel_has_it(peers):
    assert peers._tcp_owner == peers._ask_kernel


def test_a_client_is_counted_by_its_uid(peers, pair):
    assert peers.name_of(pair[1]) == f"uid {os.getuid()}"


def test_an_end_that_its_process_closed_is_counted_by_no_address(peers, pair):
    client, accepted = pair
    client.close()
    assert peers.name_of(accepted) is None


class From:
    """A socket whose other end is somewhere else."""

    family = socket.AF_INET6

    def __init__(self, host):
        self.host = host

    def getpeername(self):
        return (self.host, 50000, 0, 0)

    def getsockname(self):
        return ("2001:db8::1", 8564, 0, 0)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:127.0.0.9", None),
    ],
)
def test_a_client_of_another_machine_is_counted_by_its_network(peers, host, name):
    assert peers.name_of(From(host)) == name


def test_an_end_that_its_process_closed_is_nobody(peers, pair):
    client, accepted = pair
    client.close()
    assert not peers.admits(accepted)


def test_half_closing_keeps_the_owner(peers, pair):
    client, accepted = pair
    client.shutdown(socket.SHUT_WR)
    assert peers.admits(accepted)


def test_a_reset_connection_is_nobody(peers, pair):
    client, accepted = pair
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert not peers.admits(accepted)


def test_a_unix_socket_says_who_it_is(peers):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peers.admits(theirs)


def test_many_queries_go_over_one_netlink_socket(peers, pair):
    peers.admits(pair[1])
    netlink = peers._netlink
    assert all(peers.admits(pair[1]) for _ in range(100))
    assert peers._netlink is netlink


def test_a_failed_query_begins_anew(peers, pair):
    peers._netlink.close()
    assert not peers.admits(pair[1])
    assert peers.admits(pair[1])


ENDS = Ends(socket.AF_INET, b"\x7f\0\0\1".ljust(16, b"\0"), 1000, b"\x7f\0\0\1".ljust(16, b"\0"), 2000)


def answer(ends=ENDS, uid=7, inode=9, kind=peer.SOCK_DIAG_BY_FAMILY):
    head = struct.pack("=LHHLL BBBB", 88, kind, 0, 1, 0, ends.family, 1, 0, 0)
    return (head + ends.packed()).ljust(80, b"\0") + struct.pack("=LL", uid, inode)


def test_an_answer_names_the_owner():
    assert peer._owner_in(answer(), ENDS) == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"inode": 0},
        {"inode": 0, "uid": 0},
        {"kind": 2},
        {"ends": ENDS._replace(client_port=1001)},
        {"ends": ENDS._replace(server_port=0)},
        {"ends": ENDS._replace(server=bytes(16))},
        {"ends": ENDS._replace(family=socket.AF_INET6)},
    ],
)
def test_an_answer_about_anything_else_is_nobody(wrong):
    with pytest.raises(UnknownPeer):
        peer._owner_in(answer(**wrong), ENDS)


@pytest.mark.parametrize(
    ("uid", "own", "admitted"),
    [
        (1000, 1000, True),
        (0, 1000, True),
        (1001, 1000, False),
        (65534, 1000, False),
        (65534, 65534, False),
        (0, 65534, True),
    ],
)
def test_the_own_user_and_root_are_admitted_and_the_overflow_uid_never(
    peers, pair, monkeypatch, uid, own, admitted
):
    monkeypatch.setattr(peers, "_own", own)
    monkeypatch.setattr(peers, "_overflow", 65534)
    monkeypatch.setattr(peers, "_tcp_owner", lambda _: uid)
    assert peers.admits(pair[1]) is admitted


def test_any_trouble_is_nobody(peers, pair, monkeypatch):
    monkeypatch.setattr(peers, "_tcp_owner", lambda _: 1 / 0)
    assert not peers.admits(pair[1])


# -- other users, for real


def as_other(*command):
    user = pwd.getpwnam(OTHER_USER)
    become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return subprocess.run([*become, *command], capture_output=True, timeout=30, check=False)


@needs_root
@pytest.mark.parametrize("method", ["GET", "PROPFIND", "OPTIONS"])
def test_another_user_is_forbidden(running, client, method):
    port = running[0].addresses[0][1]
    url = f"http://127.0.0.1:{port}/version"
    said = as_other(shutil.which("curl"), "-s", "-X", method, "-w", "%{http_code}", url)
    assert said.stdout.endswith(b"403")
    assert b"0.1" not in said.stdout
    assert client.get("/version").status == 200


@needs_root
@pytest.mark.parametrize("found_by", ["peers", "without_sock_diag"])
def test_another_user_is_known_over_tcp(request, found_by):
    peers = request.getfixturevalue(found_by)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        port = listener.getsockname()[1]
        with subprocess.Popen(
            [
                "setpriv",
                f"--reuid={OTHER_USER}",
                "--clear-groups",
                "bash",
                "-c",
                f"exec 3<>/dev/tcp/127.0.0.1/{port}; read",
            ],
            stdin=subprocess.PIPE,
        ) as client:
            with listener.accept()[0] as accepted:
                assert peers.uid_of(accepted) == pwd.getpwnam(OTHER_USER).pw_uid
                assert not peers.admits(accepted)
            client.communicate(b"\n")


@needs_root
def test_another_user_is_known_over_a_unix_socket(peers):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(20)
        listener.bind("")  # an abstract name, which the kernel chooses
        listener.listen()
        name = listener.getsockname()
        script = f"""
import os, socket
os.setuid(1234)
sock = socket.socket(socket.AF_UNIX)
sock.connect({name!r})
input()
"""
        with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as client:
            with listener.accept()[0] as accepted:
                assert peers.uid_of(accepted) == 1234
                assert not peers.admits(accepted)
            client.communicate(b"\n")


@needs_root
def test_a_server_that_runs_as_another_user_admits_root_and_itself():
    script = """
import os, socket
from davserver.auth.peer_credentials import Peers
Peers().close()  # loads what that user may not read here
os.setuid(4321)
peers = Peers()
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
print(peers.admits(listener.accept()[0]))
own = socket.socket()
own.connect(listener.getsockname())
print(peers.admits(listener.accept()[0]))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment, text=True
    ) as server:
        port = int(server.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)):
            assert server.stdout.read().split() == ["True", "True"]
