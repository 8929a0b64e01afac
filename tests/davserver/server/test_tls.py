"""HTTPS: the same front end, and the same patience with slow clients, behind a handshake that nobody waits
for."""

import contextlib
import http.client
import os
import socket
import ssl
import struct
import subprocess
import time

import pytest

from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.app import App
from davserver.auth.connection_limits import MAX_EACH
from davserver.auth.password_file import ConfigError
from davserver.auth.peer_credentials import Peers
from davserver.server.http_server import ACCEPT_PAUSE_SECONDS, HttpServer
from davserver.server.tls import TlsAdapter, TlsSocket
from tests.support.waiting import eventually

LONG = bytes(range(256)) * 20_000
GET = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_LONG = GET.replace(b"version", b"long")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)


def make_certificate(directory, name="server"):
    """Make a certificate of localhost that signs itself, and its key; return where they are."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", key, "-out", certificate)  # fmt: skip
    return certificate, key


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def front_end(files):
    root = MemoryDirectory("", [MemoryFile("version", b"0.1\n"), MemoryFile("long", LONG)])
    peers = Peers()
    front_end = HttpServer(App(root), [("127.0.0.1", 0)], peers, tls=TlsAdapter(*map(str, files)))
    front_end.start()
    yield front_end
    front_end.stop()
    peers.close()


@pytest.fixture
def plain(front_end):
    """Opens connections that do not speak TLS yet."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(socket.create_connection(front_end.addresses[0], timeout=20))


@pytest.fixture
def connect(files, plain):
    """Opens connections that speak TLS."""
    context = ssl.create_default_context(cafile=files[0])
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(context.wrap_socket(plain(), server_hostname="localhost"))


def ask(sock, request=GET):
    sock.sendall(request)
    response = http.client.HTTPResponse(sock)
    response.begin()
    return response.read()


def test_curl_that_trusts_the_certificate_is_answered(front_end, files):
    url = f"https://localhost:{front_end.addresses[0][1]}/version"
    said = subprocess.run(
        ["curl", "-sS", "--cacert", files[0], url], capture_output=True, timeout=30, check=False
    )
    assert (said.stdout, said.stderr) == (b"0.1\n", b"")


def test_curl_that_does_not_trust_it_is_told_nothing(front_end):
    url = f"https://localhost:{front_end.addresses[0][1]}/version"
    said = subprocess.run(["curl", "-sS", url], capture_output=True, timeout=30, check=False)
    assert (said.returncode, said.stdout) == (60, b"")


def test_one_connection_serves_many_requests(connect):
    sock = connect()
    assert [ask(sock) for _ in range(3)] == [b"0.1\n"] * 3
    assert ask(sock, GET_LONG) == LONG
    assert ask(sock) == b"0.1\n"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_that_are_safe_are_spoken(files, plain, version):
    context = ssl.create_default_context(cafile=files[0])
    context.minimum_version = context.maximum_version = version
    with context.wrap_socket(plain(), server_hostname="localhost") as sock:
        assert ask(sock, GET_LONG) == LONG


def test_an_old_version_is_refused(files, plain):
    context = ssl.create_default_context(cafile=files[0])
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        context.wrap_socket(plain(), server_hostname="localhost")


def test_who_speaks_http_to_it_is_told_to_speak_https(plain):
    sock = plain()
    sock.sendall(GET)
    assert sock.recv(1000).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "rubbish", [b"\x00" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 70000, b"\x16\x03\x01\x00\x05hello"]
)
def test_rubbish_ends_its_own_connection_only(plain, connect, rubbish):
    sock = plain()
    sock.sendall(rubbish)
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(1000):
            pass
    assert ask(connect()) == b"0.1\n"


def test_silent_clients_delay_nobodys_handshake(plain, connect):
    silent = [plain() for _ in range(64)]
    for sock in silent[::2]:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01")
    for _ in range(3):
        started = time.monotonic()
        assert ask(connect()) == b"0.1\n"
        assert time.monotonic() - started < 2


class Nobodies(Peers):
    """Takes every client for one that cannot be named."""

    def admits(self, _sock):
        return False

    def name_of(self, _sock):
        return None


def test_who_leaves_before_it_is_accepted_holds_up_nobody_and_leaves_its_place(files):
    """With what it said unread, `ssl` raises what looks like a fault of the listener."""
    peers = Nobodies()
    front_end = HttpServer(
        App(MemoryDirectory("", [])), [("127.0.0.1", 0)], peers, tls=TlsAdapter(*map(str, files))
    )
    for number in range(2 * MAX_EACH):
        with socket.create_connection(front_end.addresses[0], timeout=20) as gone:
            gone.sendall(b"\x16" * (number % 2))
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    started = time.monotonic()
    front_end.start()
    context = ssl.create_default_context(cafile=files[0])
    with (
        socket.create_connection(front_end.addresses[0], timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as sock,
    ):
        sock.sendall(GET)
        assert sock.recv(1000).startswith(b"HTTP/1.1 403")
    assert time.monotonic() - started < MAX_EACH * ACCEPT_PAUSE_SECONDS / 2
    front_end.stop()
    peers.close()


def test_a_client_that_never_speaks_tls_is_left(plain, limit):
    limit(handshake_seconds=0.2)
    silent, dribbling = plain(), plain()
    dribbling.sendall(b"\x16\x03")
    assert silent.recv(1) == dribbling.recv(1) == b""


def test_a_request_that_does_not_end_is_a_timeout(connect, limit):
    limit(request_seconds=0.2)
    sock = connect()
    sock.sendall(GET[:10])
    assert sock.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_request_in_many_records_is_one(connect):
    sock = connect()
    for start in range(0, len(GET), 3):
        sock.sendall(GET[start : start + 3])
    assert b"0.1\n" in sock.recv(1000)


def test_readers_that_pause_get_every_byte_and_hold_up_nobody(connect):
    paused = [connect() for _ in range(16)]
    for sock in paused:
        sock.sendall(GET_LONG)
        assert sock.recv(4) == b"HTTP"
    assert ask(connect()) == b"0.1\n"
    for sock in paused:
        received = b""
        while len(received) < len(LONG) or not received.endswith(LONG[-1000:]):
            received += sock.recv(1 << 20)
        assert received.partition(b"\r\n\r\n")[2] == LONG


def test_an_answer_without_a_length_ends_with_a_goodbye(connect):
    """Else the client could not tell it from one that somebody on the way has cut (RFC 9112 section 9.8)."""
    sock = connect()
    sock.suppress_ragged_eofs = False
    sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
    received = b""
    while data := sock.recv(1000):
        received += data
    assert received.endswith(b"version\nlong\n")


def test_what_is_said_behind_the_last_answer_is_read_away(connect, limit):
    limit(linger_seconds=20)
    sock = connect()
    sock.suppress_ragged_eofs = False
    sock.sendall(GET.replace(b"1.1", b"1.0"))
    received = b""
    while data := sock.recv(1000):
        received += data
    assert received.endswith(b"0.1\n")
    for _ in range(3):
        sock.sendall(b"x" * 100_000)
    assert socket.socket.recv(sock, 1) == b""


def test_the_goodbye_waits_for_room(connect, monkeypatch):
    full = []

    def say_goodbye(sock):
        if not full:
            full.append(sock)
            return False
        return say_goodbye_now(sock)

    say_goodbye_now = TlsSocket.say_goodbye
    monkeypatch.setattr(TlsSocket, "say_goodbye", say_goodbye)
    sock = connect()
    sock.suppress_ragged_eofs = False
    sock.sendall(GET.replace(b"1.1", b"1.0"))
    while sock.recv(1000):
        pass
    assert full


def test_what_clients_held_is_free_when_they_have_left(front_end, plain, connect):
    eventually(lambda: not front_end.connections)
    before = len(os.listdir("/proc/self/fd"))
    clients = [plain() for _ in range(20)] + [connect() for _ in range(20)]
    for sock in clients[25:]:
        sock.sendall(GET_LONG)
    eventually(lambda: len(front_end.connections) == 40)
    for sock in clients:
        sock.close()
    eventually(lambda: not front_end.connections and len(os.listdir("/proc/self/fd")) <= before)


def test_stop_ends_handshakes_and_transfers(files):
    peers = Peers()
    root = MemoryDirectory("", [MemoryFile("long", LONG)])
    front_end = HttpServer(App(root), [("127.0.0.1", 0)], peers, tls=TlsAdapter(*map(str, files)))
    front_end.start()
    context = ssl.create_default_context(cafile=files[0])
    with socket.create_connection(front_end.addresses[0], timeout=20) as silent:
        with context.wrap_socket(
            socket.create_connection(front_end.addresses[0], timeout=20), server_hostname="localhost"
        ) as chat_format:
            chat_format.sendall(GET_LONG)
            assert chat_format.recv(4) == b"HTTP"
            started = time.monotonic()
            front_end.stop()
            assert time.monotonic() - started < 3
        assert silent.recv(1) == b""
    peers.close()


# -- what it cannot begin with


def refused(certificate, key):
    with pytest.raises(ConfigError) as caught:
        TlsAdapter(str(certificate), str(key))
    return str(caught.value)


def test_files_that_are_not_there_are_named(files, tmp_path):
    assert (
        refused(tmp_path / "no.crt", files[1]) == f"cannot read {tmp_path}/no.crt: No such file or directory"
    )
    assert (
        refused(files[0], tmp_path / "no.key") == f"cannot read {tmp_path}/no.key: No such file or directory"
    )
    assert refused(files[0], tmp_path) == f"cannot read {tmp_path}: Is a directory"


def test_files_that_hold_something_else_are_named(files, tmp_path):
    (tmp_path / "empty").touch()
    assert refused(tmp_path / "empty", files[1]) == f"{tmp_path}/empty holds no certificate in PEM"
    assert refused(files[0], files[0]) == f"{files[0]} holds no private key in PEM"
    assert refused(files[1], files[1]) == f"{files[1]} holds no certificate in PEM"


def test_a_broken_certificate_is_refused(files, tmp_path):
    broken = tmp_path / "broken.crt"
    broken.write_text(files[0].read_text()[:200])
    assert refused(broken, files[1]).startswith(f"cannot use {broken} with {files[1]}: ")


def test_a_key_that_everybody_can_read_is_refused(files, tmp_path):
    key = tmp_path / "open.key"
    key.write_bytes(files[1].read_bytes())
    key.chmod(0o644)
    assert refused(files[0], key) == f"{key} has mode 0644, and every user can use it: chmod 600 {key}"
    key.chmod(0o640)
    TlsAdapter(str(files[0]), str(key))


def test_the_key_of_another_certificate_is_refused(files, tmp_path):
    _, other = make_certificate(tmp_path, "other")
    assert refused(files[0], other) == f"{other} is not the key of the certificate in {files[0]}"


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked(files, tmp_path):
    locked = tmp_path / "locked.key"
    openssl("pkey", "-in", files[1], "-aes256", "-passout", "pass:secret", "-out", locked)
    assert "needs a passphrase" in refused(files[0], locked)
