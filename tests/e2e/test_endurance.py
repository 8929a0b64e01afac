"""The server as it runs for weeks: full disks, disks that go, signals, stopped clients, swarms of agents."""

import contextlib
import fcntl
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from davserver.ninep import messages as m
from davserver.ninep.wire import encode
from tests.e2e.machine import Machine, claude_line, get, served

pytestmark = pytest.mark.e2e

MESSAGE = "/active/claude/601/chat/00000000-user"
TRANSCRIPT = "/active/claude/601/transcript"
LONG = 8 << 20
"""More than the kernel takes for a client that reads nothing."""


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "machine")


def grow(machine, size=LONG):
    """Let the claude's transcript be long; return it."""
    machine.says("user", "x" * size)
    return machine.transcript.read_bytes()


def within(seconds, holds):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def status(url):
    return get(url, "-o", os.devnull, "-w", "%{http_code}")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextlib.contextmanager
def command(machine, web, *arguments, **options):
    """Run a server on a known port until the block ends; it need not say anything."""
    process = subprocess.Popen(
        [sys.executable, "-m", "davserver", "serve", "--proc", machine.proc,
         "--http", f"127.0.0.1:{web}", *arguments],
        **options,
    )  # fmt: skip
    with process:
        try:
            within(30, lambda: is_up(web))
            within(30, lambda: all(is_up(port) for port in ninep_ports(arguments)))
            yield process
        finally:
            process.kill()


def ninep_ports(arguments):
    return [int(text.rpartition(":")[2]) for text in arguments if text.startswith("127.0.0.1:")]


def is_up(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


# -- a disk that is full


def test_a_log_on_a_full_disk_stops_nothing(machine):
    web, ninep = free_port(), free_port()
    with (
        open("/dev/full", "wb") as full,
        command(
            machine, web, "--9p", f"127.0.0.1:{ninep}", "--trace-9p", stdout=full, stderr=full
        ) as process,
    ):
        for _ in range(30):
            with socket.create_connection(("127.0.0.1", ninep)) as rubbish:
                rubbish.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert rubbish.recv(100) == b""
        assert get(f"http://127.0.0.1:{web}{MESSAGE}") == "one\n"
        with socket.create_connection(("127.0.0.1", ninep)) as client:
            client.sendall(encode(m.Tversion(m.NOTAG, 8192, "9P2000.L")))
            assert b"9P2000.L" in client.recv(100)
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def test_a_log_that_nobody_reads_stops_nothing(machine):
    """As where a pager, or a terminal that is stopped, has it."""
    web, ninep = free_port(), free_port()
    unread, log = os.pipe()
    fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 4096)
    traced = ["--9p", f"127.0.0.1:{ninep}", "--trace-9p"]
    with command(machine, web, *traced, stdout=subprocess.DEVNULL, stderr=log) as process:
        with socket.create_connection(("127.0.0.1", ninep), timeout=20) as client:
            for _ in range(200):
                client.sendall(encode(m.Tversion(m.NOTAG, 8192, "9P2000.L")))
                assert b"9P2000.L" in client.recv(100)
        assert get(f"http://127.0.0.1:{web}{MESSAGE}") == "one\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    os.close(log)
    with open(unread, "rb") as said:
        assert said.read().startswith(b"agents9: ")


# -- a file system that goes away


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_a_file_system_that_goes_away_costs_only_what_was_on_it(machine):
    home = machine.home / ".claude"
    home.rename(kept := machine.home / "kept")
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", home], check=True, timeout=30)
    try:
        subprocess.run(["cp", "-a", f"{kept}/.", home], check=True, timeout=30)
        with served(machine) as server:
            assert get(server.url + MESSAGE) == "one\n"
            subprocess.run(["umount", "-l", home], check=True, timeout=30)
            within(20, lambda: status(server.url + MESSAGE) == "404")
            assert status(server.url + TRANSCRIPT) == "404"
            assert get(f"{server.url}/active/claude/") == "601/\n"
            assert status(f"{server.url}/claude/projects/-srv-demo/{machine.transcript.name}") == "404"
            assert get(f"{server.url}/active/codex/611/chat/00000000-user") == "hi\n"
            home.rmdir()
            kept.rename(home)
            within(20, lambda: status(server.url + MESSAGE) == "200")
            assert get(server.url + MESSAGE) == "one\n"
    finally:
        subprocess.run(["umount", "-l", home], capture_output=True, timeout=30, check=False)


# -- signals


def stalled_get(port):
    """Ask for what is long, and read no more than that it has begun."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    sock.sendall(f"GET {TRANSCRIPT} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert sock.recv(4) == b"HTTP"
    return sock


def stalled_9p(port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    names = tuple(TRANSCRIPT.strip("/").split("/"))
    sock.sendall(
        encode(m.Tversion(m.NOTAG, 1 << 20, "9P2000"))
        + encode(m.Tattach(1, 0, m.NOFID, "", ""))
        + encode(m.Twalk(1, 0, 1, names))
        + encode(m.Topen(1, 1, 0))
        + b"".join(encode(m.Tread(1, 1, 0, 1 << 20)) for _ in range(64))
    )
    assert sock.recv(4)
    return sock


def test_sigterm_with_50_open_transfers_ends_within_3_seconds(machine):
    grow(machine)
    with served(machine) as server, contextlib.ExitStack() as stack:
        for number in range(50):
            stall, port = (stalled_get, server.http) if number % 5 else (stalled_9p, server.ninep)
            stack.enter_context(stall(port))
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        assert time.monotonic() - begun < 3


def test_sigkill_leaves_nothing_that_stops_the_next_start(machine, tmp_path):
    web, path = free_port(), tmp_path / "run" / "9p.sock"
    path.parent.mkdir(mode=0o700)
    listeners = ["--9p", f"unix:{path}", "--9p", f"127.0.0.1:{free_port()}"]
    grow(machine)
    with contextlib.ExitStack() as stack:
        with command(machine, web, *listeners, stdout=subprocess.PIPE) as process:
            stack.enter_context(stalled_get(web))
            assert get(f"http://127.0.0.1:{web}{MESSAGE}") == "one\n"
            process.kill()
            assert process.wait(20) == -signal.SIGKILL
        assert path.is_socket()
        with command(machine, web, *listeners, stdout=subprocess.PIPE) as process:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(encode(m.Tversion(m.NOTAG, 8192, "9P2000.L")))
                assert b"9P2000.L" in client.recv(100)
            process.terminate()
            assert process.wait(20) == 0


def test_clients_that_are_suspended_hold_up_nobody_and_get_every_byte(machine, tmp_path):
    whole = grow(machine)
    with served(machine) as server, contextlib.ExitStack() as stack:
        clients = []
        for number in range(20):
            out = stack.enter_context((tmp_path / f"out{number}").open("wb"))
            if number % 2:
                client = ["curl", "-sS", "--limit-rate", "50M", server.url + TRANSCRIPT]
            else:
                client = ["diodcat", "-s", f"127.0.0.1:{server.ninep}", "-a", "/", TRANSCRIPT[1:]]
            process = stack.enter_context(subprocess.Popen(client, stdout=out))
            process.send_signal(signal.SIGSTOP)
            clients.append(process)
        assert get(server.url + MESSAGE) == "one\n"
        with socket.create_connection(("127.0.0.1", server.ninep), timeout=20) as other:
            other.sendall(encode(m.Tversion(m.NOTAG, 8192, "9P2000.L")))
            assert b"9P2000.L" in other.recv(100)
        for process in clients:
            process.send_signal(signal.SIGCONT)
        assert [process.wait(60) for process in clients] == [0] * len(clients)
        assert all((tmp_path / f"out{number}").read_bytes() == whole for number in range(20))


# -- agents that swarm


def test_a_thousand_agents_that_start_and_end_leave_nothing(machine):
    """A process that lives for a few milliseconds is there, or it is not; nobody else notices."""
    with (
        served(machine) as server,
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)) as connection,
    ):
        fetch = partial(fetched, connection)
        assert fetch(MESSAGE) == "one\n"
        swarm = threading.Thread(target=come_and_go, args=(machine, 1000))
        swarm.start()
        seen = set()
        while swarm.is_alive():
            names = fetch("/active/claude/").split()
            assert "601/" in names
            seen.update(names)
            assert fetch(MESSAGE) == "one\n"
        swarm.join()
        assert len(seen) > 5
        assert all(re.fullmatch(r"601/|1\d{3}/", name) for name in seen)
        within(20, lambda: fetch("/active/claude/") == "601/\n")
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 64


def fetched(connection, path):
    connection.request("GET", path)
    reply = connection.getresponse()
    assert reply.status == 200
    return reply.read().decode()


def come_and_go(machine, count):
    """Let agents start and end; every tenth of them says something."""
    for pid in range(1000, 1000 + count):
        if pid % 10 == 0:
            session = f"0d0f6c1e-1111-4222-8333-{pid:012d}"
            machine.register(pid, session)
            path = machine.transcript.with_name(f"{session}.jsonl")
            path.write_text(claude_line("user", f"I am {pid}"))
        machine.start(pid, "claude")
        time.sleep(0.002)
        machine.end(pid)
