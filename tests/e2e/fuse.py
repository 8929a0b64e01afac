"""What the tests of mounts share: FUSE, waiting, and a directory that a daemon of another user can reach."""

import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

FUSE = Path("/dev/fuse")


def needs_fuse() -> None:
    """Fail, and say why, on a machine where nothing can be mounted."""
    assert FUSE.exists(), "there is no /dev/fuse here: these tests need a machine (or container) that has it"


@contextmanager
def open_directory():
    """Make a directory whose parents anybody may pass, unlike those of tmp_path."""
    path = Path(tempfile.mkdtemp(prefix="agents9-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def within(seconds: float, holds) -> float:
    """Ask until it holds, and return after how many seconds it did. Fails if it does not in time."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - begun
