"""The bench runs and prints its rows; what they say is no matter of a test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_bench(*arguments: str) -> str:
    """Return what the bench prints."""
    command = [sys.executable, "-m", "bench", "--quick", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True, timeout=100
    )
    return done.stdout


def test_a_group_of_rows_is_printed():
    said = run_bench("--only", "index")
    for row in ("cold index, codex", "cold index, claude", "first listing, HTTP", "a second look"):
        assert row in said


def test_the_table_is_written(tmp_path):
    results = tmp_path / "results.md"
    run_bench("--only", "latency", "--results", str(results))
    text = results.read_text()
    assert "| row | ours | spread | baseline |" in text
    assert "all seen over 9P, p99" in text
    assert "Small inputs: of no weight" in text
