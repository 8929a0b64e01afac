"""Times as HTTP and as listings write them.

HTTP dates are RFC 9110 section 5.6.7: one form is written (IMF-fixdate), three are read. Listings write
ISO 8601 in UTC with milliseconds. What is written of a minute is kept: rows of a listing come in order.
"""

import re
import time
from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import lru_cache

_LAST_SECOND = 253_402_300_799
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HTTP_SECONDS = tuple(f"{second:02d} GMT" for second in range(60))
_ISO_SECONDS = tuple(f"{second:02d}." for second in range(60))
_ISO_MILLISECONDS = tuple(f"{ms:03d}Z" for ms in range(1000))
_TIME = r"(?P<time>\d\d:\d\d:\d\d)"
_FORMS = (
    r"[A-Z][a-z]{2}, (?P<day>\d\d) (?P<month>[A-Z][a-z]{2}) (?P<year>\d{4}) " + _TIME + " GMT",
    r"[A-Z][a-z]{5,8}, (?P<day>\d\d)-(?P<month>[A-Z][a-z]{2})-(?P<year>\d\d) " + _TIME + " GMT",
    r"[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) " + _TIME + r" (?P<year>\d{4})",
)


def modified_seconds(mtime_ns: int, now: int) -> int:
    """Return the second that Last-Modified says: 1970 to 9999, never after *now* (section 8.8.2.1)."""
    return max(0, min(mtime_ns // 1_000_000_000, now, _LAST_SECOND))


@lru_cache(maxsize=1024)
def _http_minute(minute: int) -> str:
    day, minute = divmod(minute, 24 * 60)
    when = date.fromordinal(_EPOCH_DAY + day)
    written = f"{_DAYS[when.weekday()]}, {when.day:02d} {_MONTHS[when.month - 1]} {when.year:04d}"
    return f"{written} {minute // 60:02d}:{minute % 60:02d}:"


def http_date(seconds: int) -> str:
    """Return *seconds* since 1970, up to the end of 9999, as an IMF-fixdate."""
    return _http_minute(seconds // 60) + _HTTP_SECONDS[seconds % 60]


def http_dates(mtimes_ns: Iterable[int], now: int) -> list[str]:
    """Return what `http_date` says of the `modified_seconds` of each."""
    times = _within([ns // 1_000_000_000 for ns in mtimes_ns], 0, min(now, _LAST_SECOND))
    return [_http_minute(second // 60) + _HTTP_SECONDS[second % 60] for second in times]


@lru_cache(maxsize=1024)
def _iso_minute(minute: int) -> str:
    day, minute = divmod(minute, 24 * 60)
    return f"{date.fromordinal(_EPOCH_DAY + day).isoformat()}T{minute // 60:02d}:{minute % 60:02d}:"


def iso_date(mtime_ns: int) -> str:
    """Return *mtime_ns* as ISO 8601 with milliseconds; years outside 1 to 9999 are the nearest of them."""
    return iso_dates([mtime_ns])[0]


def iso_dates(mtimes_ns: Iterable[int]) -> list[str]:
    """Return what `iso_date` says of each."""
    times = _within([ns // 1_000_000 for ns in mtimes_ns], _FIRST_MS, _LAST_MS)
    minute = min(times, default=0) // 60_000
    since = [time_ms - minute * 60_000 for time_ms in times]  # Python divides small numbers in half the time
    return [
        _iso_minute(minute + ms // 60_000) + _ISO_SECONDS[ms // 1000 % 60] + _ISO_MILLISECONDS[ms % 1000]
        for ms in since
    ]


def _within(times: list[int], first: int, last: int) -> list[int]:
    """Return the times, those that are earlier or later as the *first* and the *last*."""
    if not times or (first <= min(times) and max(times) <= last):
        return times
    return [max(first, min(time, last)) for time in times]


def parse_http_date(text: str) -> int | None:
    """Return the seconds since 1970 of any of the three forms; None for anything else."""
    for form in _FORMS:
        if match := re.fullmatch(form, text.strip(), re.ASCII):
            return _seconds(**match.groupdict())
    return None


def _seconds(day: str, month: str, year: str, time: str) -> int | None:
    hour, minute, second = map(int, time.split(":"))
    try:
        when = datetime(
            _four_digits(year),
            _MONTHS.index(month) + 1,
            int(day),
            hour,
            minute,
            min(second, 59) if second == 60 else second,  # a leap second is the one before
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return int(when.timestamp())


def _four_digits(year: str) -> int:
    """Return the year; two digits that seem over 50 years ahead are of the past century."""
    if len(year) == 4:
        return int(year)
    this_year = time.gmtime().tm_year
    full = this_year - this_year % 100 + int(year)
    return full - 100 if full > this_year + 50 else full
