"""A server that an ordinary user runs, and what another user of the machine gets of it: nothing.

Needs root, to be both. The uids are nobody's; the tree is that of a made machine.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from davserver.auth.passwords import Cost, Hash
from davserver.ninep import messages as m
from davserver.ninep.wire import encode
from tests.e2e.fuse import open_directory
from tests.e2e.machine import SESSION, Machine

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can run a server and clients as other users"),
]

TOP = Path(__file__).parents[2]
OWNER, OTHER = 54_321, 54_322
MESSAGE = "/active/claude/601/chat/00000000-user"
AS_USER = "import os; os.setgroups([]); os.setgid({0}); os.setuid({0})\n"
SERVE = (
    # These are out of that user's reach later.
    "import sys, encodings.ascii, encodings.idna, encodings.latin_1, encodings.utf_16_le, locale\n"
    "import agents9core.files.database, davserver.auth.password_file, davserver.commands.serve\n"
    "from davserver.__main__ import main\n" + AS_USER.format(OWNER) + "sys.exit(main(sys.argv[1:]))"
)
ATTACH = b"".join(
    [encode(m.Tversion(m.NOTAG, 8192, "9P2000.L")), encode(m.TattachU(1, 0, m.NOFID, "root", "", 0))]
)
TRY_9P = """
sock = socket.socket({family})
sock.settimeout(20)
try:
    sock.connect({address!r})
    sock.sendall({data!r})
    print(sock.recv(1000))
except PermissionError:
    print("not permitted")
except ConnectionError:
    print(b"")
"""


class TwoUsers:
    """The files of one user, the server that it runs, and what clients of each are told."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.machine = Machine(base / "machine")
        self.socket = base / "run" / "9p.sock"
        self.socket.parent.mkdir()
        self.socket.parent.chmod(0o700)
        (base / "passwords").write_text(f"me:{Hash.of(b'secret', Cost(2, 1, 1))}\n")
        (base / "passwords").chmod(0o600)
        self._start_another_users_claude()
        for pid in (601, 611):
            (self.machine.proc / str(pid) / "status").write_text(f"Uid:\t{OWNER}\t{OWNER}\n")
        for path in [base, *base.rglob("*")]:
            os.chown(path, OWNER, OWNER, follow_symlinks=False)

    def _start_another_users_claude(self) -> None:
        """One of the other user, which says that it is in the session of the first."""
        self.machine.start(701, "claude")
        self.machine.register(701, SESSION)
        (self.machine.proc / "701" / "status").write_text(f"Uid:\t{OTHER}\t{OTHER}\n")

    def start(self, *arguments: str, http: str = "127.0.0.1:0") -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, "serve", "--proc", str(self.machine.proc), "--http", http,
             "--9p", "127.0.0.1:0", "--9p", f"unix:{self.socket}", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(TOP), "HOME": str(self.machine.home)},
        )  # fmt: skip
        lines = [process.stdout.readline().strip() for _ in range(3)]
        if not all(lines):
            raise AssertionError(process.communicate()[1])
        self.url, self.ninep = lines[0].rstrip("/"), int(lines[1].rpartition(":")[2])
        return process

    def run(self, uid, program, *arguments):
        """Run a client as a user; return its status, and all that it said."""
        path = shutil.which(program)
        assert path, f"{program} is not installed; run tests/e2e/install-clients"
        done = subprocess.run(
            [path, *arguments], user=uid, group=uid, extra_groups=[], cwd="/", env={"HOME": str(self.base)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout

    def curl(self, uid, target, *options):
        return self.run(uid, "curl", "-s", "-w", "%{http_code}", *options, self.url + target)[1]

    def attach(self, uid, family, address):
        """Return what the 9P front end answers to a user's attach."""
        asks = TRY_9P.format(family=family, address=address, data=ATTACH)
        script = "import socket\n" + AS_USER.format(uid) + asks
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        return done.stdout.strip()


@pytest.fixture(scope="module")
def users():
    with open_directory() as base:
        made = TwoUsers(base)
        with made.start() as process:
            yield made
            process.terminate()
            said = process.stderr.read()
        assert process.returncode == 0
        assert set(re.sub(r":\d+:", ":N:", said).splitlines()) <= {
            "agents9: 127.0.0.1:N: refused",
            f"agents9: unix:{made.socket}: refused",
        }


@pytest.mark.parametrize("uid", [OWNER, 0])
def test_the_user_and_root_are_served_at_every_front_end(users, uid):
    assert users.curl(uid, MESSAGE) == "one\n200"
    assert users.run(uid, "rclone", "cat", f":webdav:{MESSAGE}", "--webdav-url", users.url)[1].endswith(
        "one\n"
    )
    assert "active" in users.run(uid, "diodls", "-a", "/", "-s", f"127.0.0.1:{users.ninep}")[1]
    for family, address in (
        ("socket.AF_INET", ("127.0.0.1", users.ninep)),
        ("socket.AF_UNIX", str(users.socket)),
    ):
        assert "9P2000.L" in users.attach(uid, family, address)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PROPFIND", "PUT", "BREW"])
@pytest.mark.parametrize("target", ["/", MESSAGE, "/claude/", "/nothing"])
def test_another_users_request_is_forbidden_whatever_it_asks(users, method, target):
    option = ["-I"] if method == "HEAD" else ["-X", method]
    said = users.curl(OTHER, target, *option, "-H", "Depth: 1")
    assert said.endswith("403")
    assert "one\n" not in said
    assert "active" not in said


def test_another_users_clients_get_nothing(users):
    for client in (
        (
            "rclone",
            "lsf",
            ":webdav:/",
            "--webdav-url",
            users.url,
            "--retries",
            "1",
            "--low-level-retries",
            "1",
        ),
        ("diodls", "-a", "/", "-s", f"127.0.0.1:{users.ninep}"),
        ("diodcat", "-a", "/", "-s", f"127.0.0.1:{users.ninep}", MESSAGE[1:]),
    ):
        status, said = users.run(OTHER, *client)
        assert status != 0
        assert "one\n" not in said
        assert "active/" not in said
    status, said = users.run(OTHER, "curl", "-sS", f"http://127.0.0.1:{users.ninep}/")
    assert status != 0


def test_another_users_attach_is_not_answered(users):
    assert users.attach(OTHER, "socket.AF_INET", ("127.0.0.1", users.ninep)) == "b''"


def test_the_socket_file_is_out_of_another_users_reach(users):
    assert users.socket.parent.stat().st_mode & 0o777 == 0o700
    assert users.socket.stat().st_mode & 0o777 == 0o600
    assert users.attach(OTHER, "socket.AF_UNIX", str(users.socket)) == "not permitted"


def test_who_comes_to_the_socket_file_all_the_same_is_not_answered(users):
    users.socket.parent.chmod(0o755)
    users.socket.chmod(0o666)
    try:
        assert users.attach(OTHER, "socket.AF_UNIX", str(users.socket)) == "b''"
    finally:
        users.socket.chmod(0o600)
        users.socket.parent.chmod(0o700)


def test_another_users_agent_is_none(users):
    assert users.curl(OWNER, "/active/claude/") == "601/\n200"
    assert users.curl(OWNER, "/active/claude/701/").endswith("404")


def test_another_user_with_a_password_is_served_over_http_only(users):
    with open_directory() as base:
        made = TwoUsers(base)
        with made.start("--password-file", str(base / "passwords")) as process:
            assert made.curl(OTHER, MESSAGE).endswith("401")
            assert made.curl(OTHER, MESSAGE, "-u", "me:secret") == "one\n200"
            assert made.curl(OTHER, MESSAGE, "-u", "me:guess").endswith("401")
            until = time.monotonic() + 30
            while (reply := made.curl(OTHER, MESSAGE, "-u", "me:secret")).endswith("429"):
                assert time.monotonic() < until
                time.sleep(0.1)
            assert reply == "one\n200"
            assert made.attach(OTHER, "socket.AF_INET", ("127.0.0.1", made.ninep)) == "b''"
            process.terminate()
            process.communicate()
