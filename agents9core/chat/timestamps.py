"""Timestamps of transcripts (ISO 8601, RFC 3339) in nanoseconds since 1970. Pure."""

import re
from datetime import UTC, datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_USUAL = re.compile("(?:19[7-9][0-9]|20[0-9]{2})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z")


_MAX_MINUTES = 1000


_minutes: dict[str, int] = {}


_seconds: dict[str, int] = {}


_milliseconds: dict[str, int] = {}
"""The parts of usual times that were read: the same minutes, seconds and milliseconds come again. Usual are
those of which every other in the same minute can be told too."""


def time_ns(stamp: str) -> int | None:
    """Return an ISO 8601 time in nanoseconds since 1970; without a zone it is UTC.

    None where it is unreadable, or beyond the 64 bits that hold it (years 1678 to 2262).
    """
    try:
        return _minutes[stamp[:17]] + _seconds[stamp[17:20]] + _milliseconds[stamp[20:]]
    except KeyError:
        return _parsed_ns(stamp)


def _parsed_ns(stamp: str) -> int | None:
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    nanoseconds = (since.days * 86400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    if not -(1 << 63) <= nanoseconds < 1 << 63:
        return None
    if _USUAL.fullmatch(stamp):
        _remember(stamp, nanoseconds)
    return nanoseconds


def _remember(stamp: str, nanoseconds: int) -> None:
    if len(_minutes) >= _MAX_MINUTES:
        _minutes.clear()
    second, millisecond = int(stamp[17:19]) * 1_000_000_000, int(stamp[20:23]) * 1_000_000
    _minutes[stamp[:17]] = nanoseconds - second - millisecond
    _seconds[stamp[17:20]] = second
    _milliseconds[stamp[20:]] = millisecond
