"""`make demo`: the made agent is found, talks, and takes its server with it."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.machine import get

pytestmark = pytest.mark.e2e

DEMO = Path(__file__).parent.parent.parent / "demo" / "talk.py"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_made_agent_talks_until_it_is_stopped(number):
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, str(DEMO)]
    command += ["--http", "127.0.0.1:0", "--9p", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            url = demo.stdout.readline().strip()
            chat = f"{url}active/claude/4242/chat/"
            assert re.match(r"Which files", get(f"{chat}00000000-user"))
            assert any("00000001-thinking" in get(chat) for _ in range(300))
        finally:
            demo.send_signal(number)
        assert demo.stdout.read() == ""  # the server, which has the same output, has ended too
        demo.wait(10)
