"""The log, on the standard error: at most so many lines a minute from one place.

What is logged may be caused by anybody who can connect, and a server runs for weeks: without a limit another
user could fill the disk. A log that cannot be written, or that nobody reads any more (a pager, a terminal
that is stopped), stops nothing: what does not fit is lost.
"""

import logging
import select
import time
from collections.abc import Callable
from typing import TextIO

LINES = 20
SECONDS = 60.0


class RateLimitFilter(logging.Filter):
    """Lets LINES records of one place in the code pass in SECONDS, and says later how many it kept back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._places: dict[tuple[str, int], _LogSite] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether *record* is logged. What is logged for DEBUG was asked for: all of it is."""
        if record.levelno < logging.INFO:
            return True
        place = self._places.setdefault((record.pathname, record.lineno), _LogSite())
        now = self._clock()
        if now - place.since >= SECONDS:
            if place.count > LINES:
                record.msg = f"{record.getMessage()} (and {place.count - LINES} more before, not shown)"
                record.args = None
            place.since, place.count = now, 0
        place.count += 1
        return place.count <= LINES


class _LogSite:
    since = float("-inf")
    count = 0


class NonBlockingHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream that takes something now, and else writes nothing: a writer might wait for ever."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*, if it can be written at once."""
        poll = select.poll()
        poll.register(self.stream, select.POLLOUT)
        if poll.poll(0):
            super().emit(record)


def log_to_stderr() -> None:
    """Log what is of INFO or more, sparingly. Called once."""
    handler = NonBlockingHandler()
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(format="agents9: %(message)s", level=logging.INFO, handlers=[handler])
