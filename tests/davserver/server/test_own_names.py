"""Both loopbacks are held; where another program holds one, the name localhost is not the server's."""

import contextlib
import os
import socket
import subprocess
import sys

import pytest

from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.server import own_names
from davserver.server.http_server import HttpServer
from davserver.server.inherited import take_inherited_sockets
from davserver.server.own_names import contested_names
from tests.davserver.conftest import Client


@pytest.fixture
def serve():
    with contextlib.ExitStack() as stack:
        peers = Peers()
        stack.callback(peers.close)

        def start(*addresses, names=()):
            app = App(MemoryDirectory("", [MemoryFile("version", b"0.1\n")]), names)
            server = HttpServer(app, addresses, peers, names=names)
            stack.callback(server.stop)
            server.start()
            return server

        yield start


def ask(address, host, target="/version"):
    with contextlib.closing(Client(address)) as client:
        return client.get(target, Host=host).status


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_loopback_address_is_held_in_both_families(serve, host):
    server = serve((host, 0))
    assert sorted(host for host, _ in server.held) == ["127.0.0.1", "::1"]
    assert len({port for _, port in server.held}) == 1
    assert len(server.addresses) == (2 if host == "localhost" else 1)
    for address in server.held:
        assert ask(address, f"localhost:{address[1]}") == 200


@pytest.mark.parametrize(("ours", "others"), [("127.0.0.1", "::1"), ("::1", "127.0.0.1")])
def test_localhost_is_not_ours_where_another_program_holds_a_loopback(serve, caplog, ours, others):
    family = socket.AF_INET6 if ":" in others else socket.AF_INET
    with socket.create_server((others, 0), family=family) as other:
        port = other.getsockname()[1]
        server = serve((ours, port))
        assert list(server.held) == [(ours, port)]
        assert ask(server.addresses[0], f"localhost:{port}") == 421
        assert ask(server.addresses[0], ours if ours == "127.0.0.1" else "[::1]") == 200
        assert ask(server.addresses[0], ours.strip("[]") if "." in ours else "[::1]",
                   f"http://localhost:{port}/version") == 421  # fmt: skip
    assert f"not answering to the name localhost: another program holds {others}" in caplog.text
    caplog.clear()


def test_localhost_as_the_address_needs_both(serve):
    with (
        socket.create_server(("::1", 0), family=socket.AF_INET6) as other,
        pytest.raises(OSError, match="in use"),
    ):
        serve(("localhost", other.getsockname()[1]))


def test_two_addresses_that_are_both_loopbacks_are_held_once(serve):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = serve(("127.0.0.1", port), ("::1", port))
    assert sorted(server.addresses) == [("127.0.0.1", port), ("::1", port)]


@pytest.mark.parametrize(
    ("resolved", "held", "missing"),
    [
        (["127.0.0.1", "192.0.2.1"], [("127.0.0.1", 80)], ["192.0.2.1"]),
        (["127.0.0.1"], [("127.0.0.1", 80)], None),
        (["192.0.2.1", "192.0.2.2"], [("127.0.0.1", 80), ("::1", 80)], None),
        (["192.0.2.1", "2001:db8::1"], [("::", 80)], None),
        (["192.0.2.1", "127.0.1.1"], [("0.0.0.0", 80)], None),
        (["127.0.0.1", "::1"], [("127.0.0.1", 80), ("::1", 81), ("127.0.0.1", 81)], ["::1"]),
        ([], [("127.0.0.1", 80)], None),
    ],
)
def test_a_name_is_ours_with_all_its_addresses_or_none(monkeypatch, resolved, held, missing):
    monkeypatch.setattr(own_names, "_addresses_of", lambda _: resolved)
    monkeypatch.setattr(own_names, "_loopbacks", list)
    assert contested_names(["agents.example"], held).get("agents.example") == missing


def test_the_script_of_a_service_worker_takes_itself_away(serve):
    server = serve(("127.0.0.1", 0))
    with contextlib.closing(Client(server.addresses[0])) as client:
        reply = client.get("/anything/sw.js", Service_Worker="script")
        assert reply["Content-Type"] == "text/javascript; charset=utf-8"
        assert reply["Clear-Site-Data"] == '"cache", "storage"'
        assert b"registration.unregister()" in reply.body
        assert client.get("/", Accept="text/html")["Clear-Site-Data"] == '"cache", "storage"'
        assert client.get("/version")["Clear-Site-Data"] is None


ACTIVATED = """
import os, sys
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, "-m", "davserver", "serve", *sys.argv[1:]])
"""


def test_sockets_that_systemd_holds_are_used(tmp_path):
    """As systemd does it: the sockets are descriptors 3 and 4, and listen before the server runs."""
    with socket.create_server(("127.0.0.1", 0)) as ipv4:
        port = ipv4.getsockname()[1]
        with socket.create_server(("::1", port), family=socket.AF_INET6) as ipv6:
            waiting = Client(("::1", port))
            waiting.send(b"GET /version HTTP/1.0\r\nHost: localhost\r\n\r\n")
            shell = f'exec 3<&{ipv4.fileno()} 4<&{ipv6.fileno()}; exec "$@"'
            command = ["bash", "-c", shell, "sh", sys.executable, "-c", ACTIVATED, "--9p", "none"]
            command += ["--proc", str(tmp_path), "--http", f"127.0.0.1:{port}"]
            with subprocess.Popen(
                command,
                pass_fds=(ipv4.fileno(), ipv6.fileno()),
                env={**os.environ, "LISTEN_FDS": "2", "PYTHONPATH": os.getcwd()},
                stdout=subprocess.PIPE,
                text=True,
            ) as server:
                try:
                    assert server.stdout.readline() == f"http://127.0.0.1:{port}/\n"
                    assert waiting.reply().status == 200
                    assert ask(("127.0.0.1", port), f"localhost:{port}") == 200
                finally:
                    server.terminate()
                    waiting.close()
            assert server.returncode == 0


def test_sockets_of_another_process_are_not_taken():
    environ = {"LISTEN_PID": "1", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b", "HOME": "/"}
    assert take_inherited_sockets(environ) == []
    assert environ == {"HOME": "/"}
