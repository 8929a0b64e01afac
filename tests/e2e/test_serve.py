"""The command as a user runs it: both front ends over a made machine, and what it says to bad input."""

import os
import socket
import subprocess
import sys

import pytest

from tests.e2e.machine import SESSION, STAMP, THREAD, Machine, claude_line, get, served

pytestmark = pytest.mark.e2e


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def run(*arguments, **environ):
    return subprocess.run(
        [sys.executable, "-m", "davserver", *arguments],
        capture_output=True, text=True, timeout=30, env={**os.environ, **environ},
    )  # fmt: skip


def chat(server, agent="claude/601"):
    return get(f"{server.url}/active/{agent}/chat/").split()


def test_both_agents_are_listed(machine):
    with served(machine) as server:
        assert get(f"{server.url}/active/claude/") == "601/\n"
        assert get(f"{server.url}/active/codex/") == "611/\n"


def test_a_message_is_there_once_its_line_is_written(machine):
    with served(machine) as server:
        assert chat(server) == ["00000000-user"]
        machine.says("assistant", [{"type": "text", "text": "two"}], 2)
        assert chat(server) == ["00000000-user", "00000001-assistant"]
        assert get(f"{server.url}/active/claude/601/chat/00000001-assistant") == "two\n"


def test_a_torn_line_waits_for_its_end(machine):
    line = claude_line("assistant", [{"type": "text", "text": "two"}])
    with served(machine) as server, machine.transcript.open("a") as out:
        out.write(line[:20])
        out.flush()
        assert chat(server) == ["00000000-user"]
        out.write(line[20:])
        out.flush()
        assert chat(server) == ["00000000-user", "00000001-assistant"]


def test_clear_turns_the_chat_over(machine):
    other = SESSION.replace("0d0f", "0d0e")
    with served(machine) as server:
        assert get(f"{server.url}/active/claude/601/chat/00000000-user") == "one\n"
        machine.transcript = machine.transcript.with_name(f"{other}.jsonl")
        machine.says("user", "afresh")
        machine.register(601, other)
        eventually(lambda: get(f"{server.url}/active/claude/601/chat/00000000-user") == "afresh\n")
        assert get(f"{server.url}/active/claude/601/session") == other + "\n"


def test_codex_is_read_from_the_file_that_it_holds_open(machine):
    with served(machine) as server:
        entry = f"{server.url}/active/codex/611"
        assert get(f"{entry}/via") == "fd\n"
        assert get(f"{entry}/session") == THREAD + "\n"
        assert get(f"{entry}/chat/00000000-user") == "hi\n"


def test_an_agent_that_ends_is_gone(machine):
    with served(machine) as server:
        assert chat(server) == ["00000000-user"]
        machine.end(601)
        eventually(lambda: get(f"{server.url}/active/claude/") == "")
        assert status(f"{server.url}/active/claude/601/chat/00000000-user") == "404"


NOT_THERE = """
/active/claude/602/
/active/claude/0601/
/active/claude/601/title
/active/claude/601/via/
/active/claude/601/chat/%2e%2e/via
/active/claude/601/chat/0-user
/active/claude/601/chat/00000000
/active/claude/601/chat/000000000-user
/active/claude/601/chat/00000000-assistant
/active/claude/601/chat/00000001-user
/active/cloud/
/nope
"""


@pytest.mark.parametrize("path", NOT_THERE.split())
def test_what_is_not_there_is_404(machine, path):
    with served(machine) as server:
        assert status(server.url + path, "--path-as-is") == "404"


def test_a_transcript_that_is_no_file_costs_itself_only(machine):
    with served(machine) as server:
        machine.transcript.unlink()
        os.mkfifo(machine.transcript)
        assert status(f"{server.url}/active/claude/601/chat/00000000-user") == "404"
        assert "codex" in get(f"{server.url}/active/")
        assert get(f"{server.url}/active/codex/611/chat/00000000-user") == "hi\n"


def test_a_transcript_that_leads_elsewhere_is_not_followed(machine, tmp_path):
    secret = tmp_path / "secret.jsonl"
    secret.write_text(claude_line("user", "secret"))
    machine.transcript.unlink()
    machine.transcript.symlink_to(secret)
    with served(machine) as server:
        agent = f"{server.url}/active/claude/601"
        for path in ("chat/00000000-user", "chat.md", "transcript"):
            assert status(f"{agent}/{path}") == "404"
        machine.transcript.unlink()
        secret.rename(machine.transcript)
        eventually(lambda: status(f"{agent}/chat/00000000-user") == "200")
        assert get(f"{agent}/chat/00000000-user") == "secret\n"  # the same as a plain file is served


def test_ps_lists_the_agents(machine):
    listed = run("ps", "--proc", str(machine.proc)).stdout.splitlines()
    assert [line.split()[:5] for line in listed] == [
        ["PID", "HARNESS", "SESSION", "VIA", "STATUS"],
        ["601", "claude", SESSION, "registry", "idle"],
        ["611", "codex", THREAD, "fd", "-"],
    ]


def test_ps_prints_json(machine):
    assert '"session": "' + THREAD + '"' in run("ps", "--json", "--proc", str(machine.proc)).stdout


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["serve", "--http", "8564"], "write 127.0.0.1:8564"),
        (["serve", "--http", "0.0.0.0:8564"], "not a loopback address"),
        (["serve", "--http", "[::]:8564"], "give --password-file, --tls-cert and --tls-key too"),
        (["serve", "--http", "host.example:8564"], "is no address"),
        (["serve", "--tls-cert", "/nowhere"], "go together"),
        (["serve", "--tls-key", "/nowhere"], "go together"),
        (["serve", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "cannot read /nowhere"),
        (["serve", "--http", "127.0.0.1:99999"], "is not HOST:PORT"),
        (["serve", "--9p", "unix:"], "needs a path"),
        (["serve", "--9p", "192.0.2.1:5640"], "not a loopback address"),
        (["serve", "--root", "claude"], "is not NAME=PATH"),
        (["serve", "--root", "vim=/tmp"], "one of claude, codex"),
        (["serve", "--proc", "/nowhere"], "is not a directory"),
        (["serve", "--http", "none", "--9p", "none"], "give one of them an address"),
        (["serve", "--colour"], "unrecognized arguments"),
        ([], "required"),
    ],
)
def test_a_bad_command_line_says_what_to_write(arguments, hint):
    done = run(*arguments)
    assert (done.returncode, hint in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("flag", ["--http", "--9p"])
def test_a_port_in_use_is_named(machine, flag):
    other = {"--http": "--9p", "--9p": "--http"}[flag]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("serve", flag, address, other, "none", "--proc", str(machine.proc))
    assert (done.returncode, done.stderr) == (
        1,
        f"agents9: cannot listen on {address}: Address already in use\n",
    )


def test_a_socket_file_with_too_long_a_name_is_refused(machine, tmp_path):
    path = tmp_path / ("x" * 120)
    done = run("serve", "--http", "none", "--9p", f"unix:{path}", "--proc", str(machine.proc))
    assert (done.returncode, "too long" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize(("output", "said"), [("/dev/full", "cannot write"), (None, "")])
def test_ps_ends_quietly_where_nobody_reads_it(machine, output, said):
    command = [sys.executable, "-m", "davserver", "ps", "--proc", str(machine.proc)]
    if output is None:
        end, out = os.pipe()
        os.close(end)
    else:
        out = os.open(output, os.O_WRONLY)
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=30)
    os.close(out)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert said in done.stderr


def test_a_root_that_is_not_there_is_said_once_and_is_empty(machine, tmp_path):
    missing = tmp_path / "missing"
    said = f"agents9: claude: there is no directory {missing}\n"
    with served(machine, "--root", f"claude={missing}", said=said) as server:
        assert [get(f"{server.url}/active/claude/") for _ in range(3)] == ["", "", ""]


def test_without_agents_it_says_how_to_see_one(machine):
    machine.end(601)
    machine.end(611)
    with served(machine) as server:
        assert "make demo" in server.process.stdout.readline()


def test_the_socket_file_is_the_users_alone_and_goes_with_the_server(machine, tmp_path):
    path = tmp_path / "9p.sock"
    with served(machine, "--9p", f"unix:{path}"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_times_are_those_of_the_records(machine):
    machine.says("assistant", [{"type": "text", "text": "two"}], 7)
    with served(machine) as server:
        listing = get(f"{server.url}/active/claude/601/chat/", "-H", "Accept: application/json")
    assert f'"mtime":"{STAMP.format(7)}"' in listing


def status(url, *options):
    return get(url, "-o", os.devnull, "-w", "%{http_code}", *options)


def eventually(holds, tries=100):
    """Ask again until it holds: an answer may be a tenth of a second old."""
    assert any(holds() for _ in range(tries))
