"""`agents9 ps` over a made-up process table."""

import json

import pytest

from davserver.__main__ import main
from tests.support.fakeproc import FakeProc
from tests.support.fakestore import claude_record


@pytest.fixture
def ps(tmp_path, capsys):
    """Two claudes, one of which waits; what the command prints."""
    proc, user = FakeProc(tmp_path / "proc"), tmp_path / "u"
    for pid, more in (
        (601, {"status": "waiting", "waitingFor": "permission prompt"}),
        (602, {"status": "busy"}),
    ):
        proc.put(pid, "claude", ["claude"], start=pid, cwd="/srv/demo", environ={"HOME": str(user)})
        claude_record(user / ".claude", pid, sessionId=f"s{pid}", procStart=str(pid), **more)

    def ps(*arguments):
        assert main(["ps", "--proc", str(proc.root), *arguments]) == 0
        return capsys.readouterr().out

    return ps


def test_what_an_agent_waits_for_has_a_column(ps):
    header, waits, works = (line.split("  ") for line in ps().splitlines())
    assert [cell.strip() for cell in header if cell.strip()] == [
        "PID", "HARNESS", "SESSION", "VIA", "STATUS", "WAITINGFOR", "CWD", "TITLE",
    ]  # fmt: skip
    assert [cell.strip() for cell in waits if cell.strip()][4:] == [
        "waiting", "permission prompt", "/srv/demo", "-",
    ]  # fmt: skip
    assert [cell.strip() for cell in works if cell.strip()][4:] == ["busy", "-", "/srv/demo", "-"]


def test_as_json_a_fact_that_does_not_apply_is_absent(ps):
    waits, works = json.loads(ps("--json"))
    assert (waits["pid"], waits["waitingfor"]) == (601, "permission prompt")
    assert "waitingfor" not in works
