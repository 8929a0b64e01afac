"""A start loads what serving needs and no more: most of its time is imports."""

import os
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parent.parent
NOT_NEEDED = frozenset((
    "asyncio", "bz2", "cheroot", "ctypes.util", "dataclasses", "defusedxml", "email", "encodings.idna",
    "hashlib", "hmac", "html", "http.client", "importlib.metadata", "lzma", "secrets", "shutil",
    "ssl", "subprocess", "tempfile", "unicodedata", "wsgidav", "xml", "zlib", "zstandard",
))  # fmt: skip
SERVED = """
import signal, sys
from davserver.__main__ import main
signal.sigwait = lambda _signals: None
assert main(["serve", "--proc", sys.argv[1], "--http", "127.0.0.1:0", "--9p", "127.0.0.1:0"]) == 0
print(*sys.modules)
"""


def test_a_server_starts_without_what_only_some_requests_need(tmp_path):
    command = [sys.executable, "-S", "-c", SERVED, str(tmp_path)]  # -S: what .pth files load is not ours
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environ, cwd=TOP, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"davserver.server.http_server", "davserver.ninep.server", "msgspec"} <= loaded
    assert loaded & NOT_NEEDED == set()
