"""The listeners, over real sockets on loopback."""

import contextlib
import errno
import logging
import os
import socket
import stat
import struct
import threading
import time

import pytest

from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.ninep import messages as m
from davserver.ninep import server as server_module
from davserver.ninep.server import MAX_CONNECTIONS, NinepServer
from davserver.ninep.wire import decode, encode
from tests.support.waiting import eventually

from .conftest import MTIME_NS, OWNER

VERSION = encode(m.Tversion(m.NOTAG, 8192, "9P2000"))
ATTACH = encode(m.Tattach(1, 0, m.NOFID, "glenda", ""))


class Client:
    def __init__(self, sock) -> None:
        self.sock = sock
        sock.settimeout(10)

    def send(self, data):
        self.sock.sendall(data)

    def frame(self):
        size = self._exactly(4)
        return size + self._exactly(int.from_bytes(size, "little") - 4)

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def ended(self):
        """Tell whether the server has closed the connection."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True

    def greet(self, msize=8192):
        self.send(encode(m.Tversion(m.NOTAG, msize, "9P2000")))
        assert decode(m.Rversion, self.frame()).version == "9P2000"
        self.send(ATTACH)
        return decode(m.Rattach, self.frame())


@pytest.fixture
def front_end():
    """Make servers, which are stopped at the end."""
    made = []

    def make(root=None, admit=lambda sock: True):
        root = root or MemoryDirectory("root", [MemoryFile("long", bytes(1_000_000), MTIME_NS)])
        made.append(NinepServer(root, OWNER, admit))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def connect():
    """Open connections, which are closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda address: Client(stack.enter_context(socket.create_connection(address, timeout=10)))


@pytest.fixture
def address(front_end):
    server = front_end()
    bound = server.listen_tcp("127.0.0.1", 0)
    server.start()
    return bound


def test_tcp_gives_the_port_that_was_free(front_end):
    server = front_end()
    host, port = server.listen_tcp("127.0.0.1", 0)
    assert host == "127.0.0.1"
    assert port > 0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.5.5.5", "localhost"])
def test_loopback_may_be_listened_on(front_end, connect, host):
    server = front_end()
    bound = server.listen_tcp(host, 0)
    server.start()
    connect(bound).greet()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_addresses_may_not(front_end, host):
    with pytest.raises(ValueError, match="not a loopback address"):
        front_end().listen_tcp(host, 0)


def test_a_port_in_use_is_an_os_error(front_end):
    port = front_end().listen_tcp("127.0.0.1", 0)[1]
    with pytest.raises(OSError, match="in use"):
        front_end().listen_tcp("127.0.0.1", port)


def test_several_listeners_show_one_tree(front_end, connect, tmp_path):
    server = front_end()
    addresses = [server.listen_tcp("127.0.0.1", 0) for _ in range(2)]
    server.listen_unix(tmp_path / "s")
    server.start()
    qids = [connect(address).greet().qid for address in addresses]
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(tmp_path / "s"))
        qids.append(Client(sock).greet().qid)
    assert len(set(qids)) == 1


def test_frames_may_arrive_split_at_every_byte(address, connect):
    client = connect(address)
    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in VERSION + ATTACH:
        client.send(bytes([byte]))
    assert decode(m.Rversion, client.frame()).msize == 8192
    assert decode(m.Rattach, client.frame()).tag == 1


def test_many_frames_may_arrive_at_once(address, connect):
    client = connect(address)
    client.send(VERSION + ATTACH + b"".join(encode(m.Tflush(tag, 0)) for tag in range(2000)))
    assert decode(m.Rversion, client.frame()).tag == m.NOTAG
    assert decode(m.Rattach, client.frame()).tag == 1
    assert [decode(m.Rflush, client.frame()).tag for _ in range(2000)] == list(range(2000))


def test_two_connections_have_fids_of_their_own(address, connect):
    first, second = connect(address), connect(address)
    first.greet()
    second.greet()
    first.send(encode(m.Tclunk(1, 0)))
    assert decode(m.Rclunk, first.frame())
    second.send(encode(m.Tclunk(1, 0)))
    assert decode(m.Rclunk, second.frame())


def test_what_is_no_9p_is_logged_with_its_peer_and_closed(address, connect, caplog):
    client = connect(address)
    client.send(b"GET / HTTP/1.1\r\n\r\n")
    assert client.ended()
    eventually(lambda: caplog.records)
    assert f"127.0.0.1:{client.sock.getsockname()[1]}: not 9P" in caplog.text
    caplog.clear()
    connect(address).greet()


def test_what_was_asked_before_the_rubbish_is_answered(address, connect, caplog):
    client = connect(address)
    client.send(VERSION + b"\0\0\0\0")
    assert decode(m.Rversion, client.frame())
    assert client.ended()
    eventually(lambda: caplog.records)
    caplog.clear()


def test_one_connection_too_many_is_closed(address, connect, caplog):
    clients = [connect(address) for _ in range(MAX_CONNECTIONS)]
    for client in clients:
        client.greet()
    assert connect(address).ended()
    eventually(lambda: caplog.records)
    assert "no room for another connection" in caplog.text
    caplog.clear()
    clients[0].send(encode(m.Tclunk(1, 0)))
    assert decode(m.Rclunk, clients[0].frame())


def test_room_is_made_when_a_client_leaves(front_end, connect, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 1)
    server = front_end()
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    client = connect(address)
    client.greet()
    client.sock.close()
    eventually(lambda: server.connection_count == 0)
    connect(address).greet()


def test_who_is_not_admitted_is_closed_before_a_byte_is_read(front_end, connect):
    asked = []

    def admit(sock):
        asked.append(sock.getpeername())
        return False

    server = front_end(admit=admit)
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    client = connect(address)
    assert client.ended()
    assert asked == [client.sock.getsockname()]


def test_clients_that_may_not_connect_take_nobodys_place(front_end, connect, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 1)
    ours: set[tuple[str, int]] = set()
    server = front_end(admit=lambda sock: sock.getpeername() in ours)
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    connection_limits = [connect(address) for _ in range(100)]
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        ours.add(sock.getsockname())
        sock.connect(address)
        Client(sock).greet()
        assert all(client.ended() for client in connection_limits)
        assert server.connection_count == 1


def test_without_threads_left_a_client_is_closed_and_the_front_end_goes_on(
    front_end, connect, monkeypatch, caplog
):
    server = front_end()
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    start, refused = threading.Thread.start, []

    def no_more(thread):
        if thread.name.startswith("9p-127") and len(refused) < 3:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", no_more)
    assert all(connect(address).ended() for _ in range(3))
    connect(address).greet()
    assert server.connection_count == 1
    assert "can't start new thread" in caplog.text
    caplog.clear()


def test_admission_that_fails_is_no_admission(front_end, connect, caplog):
    def admit(sock):
        raise OSError(errno.EPERM, "no netlink here")

    server = front_end(admit=admit)
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    assert connect(address).ended()
    eventually(lambda: "no netlink here" in caplog.text)
    caplog.clear()


def test_a_client_that_does_not_read_is_waited_for(front_end, connect):
    """What it asks for is gigabytes; what the server makes of it fits the sockets' buffers and one burst."""
    reads = []

    class Counted(MemoryFile):
        def open(self):
            reader = super().open()
            read = reader.read
            reader.read = lambda offset, count: reads.append(count) or read(offset, count)
            return reader

    server = front_end(MemoryDirectory("root", [Counted("long", bytes(2_000_000))]))
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    client = connect(address)
    client.greet(msize=1 << 20)
    client.send(encode(m.Twalk(1, 0, 1, ("long",))) + encode(m.Topen(1, 1, 0)))
    client.frame(), client.frame()
    client.send(encode(m.Tread(1, 1, 0, 1 << 20)) * 2800)
    time.sleep(0.3)
    after_a_while = len(reads)
    time.sleep(0.2)
    assert len(reads) == after_a_while < 50
    assert len(decode(m.Rread, client.frame()).data) == (1 << 20) - 11
    connect(address).greet()


@pytest.mark.parametrize("state", ["idle", "not reading", "half a frame", "just connected"])
def test_stop_ends_connections_within_a_second(front_end, connect, state):
    server = front_end()
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    client = connect(address)
    if state != "just connected":
        client.greet(msize=1 << 20)
    if state == "half a frame":
        client.send(ATTACH[:9])
    if state == "not reading":
        client.send(encode(m.Twalk(1, 0, 1, ("long",))) + encode(m.Topen(1, 1, 0)))
        client.send(encode(m.Tread(1, 1, 0, 1 << 20)) * 500)
        time.sleep(0.1)
    started = time.monotonic()
    server.stop()
    assert time.monotonic() - started < 1
    eventually(lambda: server.connection_count == 0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)


def test_stop_of_a_server_that_never_started(front_end):
    server = front_end()
    address = server.listen_tcp("127.0.0.1", 0)
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)


def test_stop_may_be_called_again(front_end):
    server = front_end()
    server.listen_tcp("127.0.0.1", 0)
    server.start()
    server.stop()
    server.stop()


def test_readers_are_closed_when_the_client_leaves(front_end, connect):
    closed = threading.Event()

    class Watched(MemoryFile):
        def open(self):
            reader = super().open()
            reader.close = closed.set
            return reader

    server = front_end(MemoryDirectory("root", [Watched("one", b"x")]))
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    client = connect(address)
    client.greet()
    client.send(encode(m.Twalk(1, 0, 1, ("one",))) + encode(m.Topen(1, 1, 0)))
    client.frame(), client.frame()
    client.sock.close()
    assert closed.wait(10)


def test_a_client_that_resets_is_no_warning(front_end, connect):
    server = front_end()
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    client = connect(address)
    client.greet()
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sock.close()
    eventually(lambda: server.connection_count == 0)


def test_a_system_without_descriptors_left_is_said_and_waited_for(front_end, caplog, monkeypatch):
    class Full:
        def accept(self):
            raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(server_module, "FULL_SECONDS", 0.05)
    started = time.monotonic()
    front_end()._accept(Full())
    assert time.monotonic() - started >= 0.05
    assert "Too many open files" in caplog.text
    caplog.clear()


def test_a_client_that_left_before_it_was_accepted_is_nothing(front_end):
    class Left:
        def accept(self):
            raise ConnectionAbortedError(errno.ECONNABORTED, "Software caused connection abort")

    front_end()._accept(Left())


# --- unix sockets ---


def test_a_socket_file_is_its_owners_alone(front_end, tmp_path):
    front_end().listen_unix(tmp_path / "s")
    mode = (tmp_path / "s").stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_a_socket_file_goes_with_its_server(front_end, tmp_path):
    server = front_end()
    server.listen_unix(tmp_path / "s")
    server.start()
    server.stop()
    assert not (tmp_path / "s").exists()


def test_a_stale_socket_file_is_replaced(front_end, tmp_path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))
    server = front_end()
    server.listen_unix(tmp_path / "s")
    server.start()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(tmp_path / "s"))
        Client(sock).greet()


def test_a_live_socket_file_is_refused(front_end, tmp_path):
    first = front_end()
    first.listen_unix(tmp_path / "s")
    first.start()
    with pytest.raises(OSError, match="another server listens here") as caught:
        front_end().listen_unix(tmp_path / "s")
    assert caught.value.errno == errno.EADDRINUSE
    assert str(tmp_path / "s") in str(caught.value)


def test_a_socket_file_whose_server_hangs_is_refused(front_end, tmp_path):
    with contextlib.ExitStack() as stack:
        hanging = stack.enter_context(socket.socket(socket.AF_UNIX))
        hanging.bind(str(tmp_path / "s"))
        hanging.listen(0)
        stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(tmp_path / "s"))
        with pytest.raises(OSError, match="another server listens here"):
            front_end().listen_unix(tmp_path / "s")


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_directory_where_others_may_write_is_refused(front_end, tmp_path, mode):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(PermissionError, match="put it into one of your own, of mode 0700"):
        front_end().listen_unix(tmp_path / "open" / "s")
    assert not (tmp_path / "open" / "s").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(front_end, tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o755)
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(PermissionError, match="its directory is another user's"):
        front_end().listen_unix(tmp_path / "theirs" / "s")
    assert not (tmp_path / "theirs" / "s").exists()


def test_a_file_that_is_no_socket_is_left_alone(front_end, tmp_path):
    (tmp_path / "s").write_text("mine")
    with pytest.raises(FileExistsError):
        front_end().listen_unix(tmp_path / "s")
    assert (tmp_path / "s").read_text() == "mine"


def test_a_path_that_is_too_long_is_an_os_error(front_end, tmp_path):
    with pytest.raises(OSError, match="too long"):
        front_end().listen_unix(tmp_path / ("s" * 120))


def test_another_servers_socket_file_is_not_removed(front_end, tmp_path):
    server = front_end()
    server.listen_unix(tmp_path / "s")
    os.rename(tmp_path / "s", tmp_path / "moved")
    other = front_end()
    other.listen_unix(tmp_path / "s")
    server.stop()
    assert (tmp_path / "s").exists()


def test_a_socket_file_that_is_gone_already_does_not_trouble_stop(front_end, tmp_path):
    server = front_end()
    server.listen_unix(tmp_path / "s")
    (tmp_path / "s").unlink()
    server.stop()


# --- trace ---


def test_the_trace_shows_every_message_both_ways(front_end, connect, caplog):
    caplog.set_level(logging.DEBUG, "davserver.ninep.trace")
    server = front_end()
    address = server.listen_tcp("127.0.0.1", 0)
    server.start()
    client = connect(address)
    client.greet()
    peer = f"127.0.0.1:{client.sock.getsockname()[1]}"
    lines = [record.getMessage() for record in caplog.records if record.name == "davserver.ninep.trace"]
    assert lines[:2] == [
        f"{peer} -> Tversion tag=65535 msize=8192 version='9P2000'",
        f"{peer} <- Rversion tag=65535 msize=8192 version='9P2000'",
    ]
    assert len(lines) == 4


# Congestion


def test_loopback_is_not_probed_for_room(front_end, connect):
    asked = []

    def admit(sock):
        asked.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"))
        return True

    server = front_end(admit=admit)
    bound = server.listen_tcp("127.0.0.1", 0)
    server.start()
    connect(bound).greet()
    assert asked == [b"reno"]
