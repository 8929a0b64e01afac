"""Run the soak: `python -m tests.soak [SECONDS]`; the status is 1 where anything was wrong."""

import sys
import tempfile
from pathlib import Path

from tests.soak.run import soak


def main() -> int:
    """Soak for ten minutes, or for as long as the command line says."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    with tempfile.TemporaryDirectory(prefix="agents9-soak-") as base:
        report = soak(Path(base), seconds)
    print(report)
    return 1 if report.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
