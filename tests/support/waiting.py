"""Waiting for another thread by what is seen, not by a time that must be enough."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 20) -> None:
    """Ask until it holds. Fails where it does not within *seconds*."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(0.005)
