"""Run the rows and print them; a whole run writes bench/RESULTS.md.

python -m bench [--quick] [--only NAME]... [--runs N] [--results FILE]
python -m bench --profile
"""

import argparse
import importlib
import subprocess
import sys
import tempfile
import traceback
from http.client import HTTPException
from pathlib import Path
from types import ModuleType

from bench import peers, profiles
from bench.inputs import FULL, QUICK, Inputs
from bench.setting import Bench
from bench.table import Table

GROUPS = ("index", "scan", "memory", "latency", "listing", "get", "front_end", "ninep", "mount", "growth")
RUNS = 5
RESULTS = Path(__file__).parent / "RESULTS.md"


def main() -> int:
    """Measure what the command line asks for; return the exit status: 1 where a group of rows broke off."""
    options = _options()
    groups = [_group(name) for name in options.only or GROUPS]
    peers.install({program for group in groups for program in group.NEEDS})
    runs = options.runs or (1 if options.quick else RUNS)
    with tempfile.TemporaryDirectory(prefix="agents9-bench-") as name:
        bench = Bench(Path(name), Inputs(Path(name), QUICK if options.quick else FULL), Table(), runs)
        if options.profile:
            profiles.show(bench)
            return 0
        failed = [group for group in groups if not _measured(group, bench)]
    results = options.results or (None if options.quick or options.only else RESULTS)
    if results:
        note = "**Small inputs: of no weight.**" if options.quick else ""
        results.write_text(bench.table.markdown(peers.versions(), runs, note), encoding="utf-8")
    return 1 if failed else 0


def _measured(group: ModuleType, bench: Bench) -> bool:
    """Measure a group of rows; where that breaks off, say so, for the other groups have their worth."""
    bench.table.title(group.TITLE)
    try:
        group.measure(bench)
    except (OSError, ValueError, AssertionError, subprocess.SubprocessError, HTTPException) as error:
        traceback.print_exc()
        bench.table.leave_out(f"the rest of {group.TITLE}", f"{type(error).__name__}: {str(error)[:200]}")
        return False
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure agents9 beside its peers.")
    parser.add_argument("--quick", action="store_true", help="each row once, on small inputs")
    parser.add_argument("--only", action="append", choices=GROUPS, help="this group of rows; may be repeated")
    parser.add_argument("--runs", type=int, help=f"samples a row (default {RUNS}, or 1 with --quick)")
    parser.add_argument(
        "--results", type=Path, help="where to write the table (default, of a whole run: RESULTS.md)"
    )
    parser.add_argument("--profile", action="store_true", help="show where the time goes instead")
    return parser.parse_args()


def _group(name: str) -> ModuleType:
    return importlib.import_module(f"bench.rows.{name}")


if __name__ == "__main__":
    sys.exit(main())
