"""The log, on the standard error: at most so many lines a minute from one place.

What is logged may be caused by anybody who can connect, and a server runs for weeks: without a limit another
user could fill the disk. A log that cannot be written stops nothing.
"""

import logging
import time
from collections.abc import Callable

LINES = 20
SECONDS = 60.0


class Sparing(logging.Filter):
    """Lets LINES records of one place in the code pass in SECONDS, and says later how many it kept back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._places: dict[tuple[str, int], _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether *record* is logged. What is logged for DEBUG was asked for: all of it is."""
        if record.levelno < logging.INFO:
            return True
        place = self._places.setdefault((record.pathname, record.lineno), _Place())
        now = self._clock()
        if now - place.since >= SECONDS:
            if place.count > LINES:
                record.msg = f"{record.getMessage()} (and {place.count - LINES} more before, not shown)"
                record.args = None
            place.since, place.count = now, 0
        place.count += 1
        return place.count <= LINES


class _Place:
    since = float("-inf")
    count = 0


def log_to_stderr() -> None:
    """Log what is of INFO or more, sparingly. Called once."""
    handler = logging.StreamHandler()
    handler.addFilter(Sparing())
    logging.basicConfig(format="agents9: %(message)s", level=logging.INFO, handlers=[handler])
