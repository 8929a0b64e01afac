"""HTTP for other machines: with a password and TLS only. The machine's other address is one in a network
namespace of the server's own, where a client that comes from it is nobody that is known by its uid."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from davserver.auth.passwords import Cost, Hash
from tests.davserver.server.test_tls import make_certificate
from tests.e2e.machine import Machine

pytestmark = pytest.mark.e2e

ADDRESS = "192.0.2.7"
INSIDE = f"ip link set lo up && ip address add {ADDRESS}/32 dev lo && exec"
PATH = "/active/claude/601/chat/00000000-user"


class Elsewhere:
    """Files of a machine, and a server of it that other machines reach."""

    def __init__(self, base) -> None:
        self.machine = Machine(base)
        self.certificate, self.key = make_certificate(base)
        self.passwords = base / "passwords"
        self.passwords.write_text(f"me:{Hash.of(b'secret', Cost(2, 1, 1))}\n")
        self.passwords.chmod(0o600)

    def command(self, *arguments):
        serve = (
            f"{sys.executable} -m davserver serve --proc {self.machine.proc} --http {ADDRESS}:8564 --9p none"
        )
        return ["unshare", "--net", "sh", "-c", f"{INSIDE} {serve} {' '.join(map(str, arguments))}"]

    @contextmanager
    def served(self):
        safe = ["--password-file", self.passwords, "--tls-cert", self.certificate, "--tls-key", self.key]
        command = self.command(*safe, "--http", "127.0.0.1:8565", "--allow-host", "agents.example")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout.readline() == f"https://{ADDRESS}:8564/\n"
                assert process.stdout.readline() == "https://127.0.0.1:8565/\n"
                yield lambda *options: self.curl(process.pid, *options)
            finally:
                process.terminate()
                assert process.wait(10) == 0

    def curl(self, pid, *options):
        """Run curl where the server is; return the answer and then the status."""
        return subprocess.run(
            ["nsenter", f"--target={pid}", "--net", "curl", "-sS", "--cacert", self.certificate,
             "-w", "%{http_code}", *options],
            capture_output=True, text=True, timeout=60, check=False,
        ).stdout  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path):
    return Elsewhere(tmp_path)


@pytest.mark.parametrize("lacking", ["--password-file", "--tls-cert"])
def test_without_a_password_and_tls_it_does_not_start_and_says_why(elsewhere, lacking):
    given = {
        "--password-file": ["--password-file", elsewhere.passwords],
        "--tls-cert": ["--tls-cert", elsewhere.certificate, "--tls-key", elsewhere.key],
    }
    del given[lacking]
    arguments = next(iter(given.values()))
    done = subprocess.run(
        elsewhere.command(*arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"agents9: {ADDRESS} is not a loopback address, and transcripts are private: "
    )


def test_a_password_lets_in_and_nothing_else_does(elsewhere):
    with elsewhere.served() as curl:
        there = ["--connect-to", f"localhost:8564:{ADDRESS}:8564", f"https://localhost:8564{PATH}"]
        assert curl("-o", "/dev/null", *there) == "401"
        assert curl("-o", "/dev/null", "-u", "me:secret", *there) == "200"
        assert curl("-u", "me:secret", *there) == "one\n200"
        named = ["-k", "--resolve", f"*:8564:{ADDRESS}", "-u", "me:secret", "-o", "/dev/null"]
        assert curl(*named, f"https://agents.example:8564{PATH}") == "200"
        assert curl(*named, f"https://other.example:8564{PATH}") == "421"
        assert curl("-o", "/dev/null", "-u", "me:guess", *there) == "401"


def test_over_loopback_the_user_is_still_known(elsewhere):
    with elsewhere.served() as curl:
        assert curl(f"https://localhost:8565{PATH}") == "one\n200"
