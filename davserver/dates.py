"""Times as HTTP and as listings write them.

HTTP dates are RFC 9110 section 5.6.7: one form is written (IMF-fixdate), three are read. Listings write
ISO 8601 in UTC with milliseconds. The dates of days are kept, since a listing of 32,000 rows asks for few.
"""

import re
import time
from datetime import UTC, date, datetime
from functools import lru_cache

_LAST_SECOND = 253_402_300_799
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CLOCK = tuple(f"{minute // 60:02d}:{minute % 60:02d}:" for minute in range(24 * 60))
_TIME = r"(?P<time>\d\d:\d\d:\d\d)"
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        r"[A-Z][a-z]{2}, (?P<day>\d\d) (?P<month>[A-Z][a-z]{2}) (?P<year>\d{4}) " + _TIME + " GMT",
        r"[A-Z][a-z]{5,8}, (?P<day>\d\d)-(?P<month>[A-Z][a-z]{2})-(?P<year>\d\d) " + _TIME + " GMT",
        r"[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) " + _TIME + r" (?P<year>\d{4})",
    )
)


def modified_seconds(mtime_ns: int, now: int) -> int:
    """Return the second that Last-Modified says: 1970 to 9999, never after *now* (section 8.8.2.1)."""
    return max(0, min(mtime_ns // 1_000_000_000, now, _LAST_SECOND))


@lru_cache(maxsize=1024)
def _http_day(day: int) -> str:
    when = date.fromordinal(_EPOCH_DAY + day)
    return f"{_DAYS[when.weekday()]}, {when.day:02d} {_MONTHS[when.month - 1]} {when.year:04d} "


def http_date(seconds: int) -> str:
    """Return *seconds* since 1970, up to the end of 9999, as an IMF-fixdate."""
    day, second = divmod(seconds, 86_400)
    minute, second = divmod(second, 60)
    return f"{_http_day(day)}{_CLOCK[minute]}{second:02d} GMT"


@lru_cache(maxsize=1024)
def _iso_day(day: int) -> str:
    return date.fromordinal(_EPOCH_DAY + day).isoformat() + "T"


def iso_date(mtime_ns: int) -> str:
    """Return *mtime_ns* as ISO 8601 with milliseconds; years outside 1 to 9999 are the nearest of them."""
    day, ms = divmod(max(_FIRST_MS, min(mtime_ns // 1_000_000, _LAST_MS)), 86_400_000)
    minute, ms = divmod(ms, 60_000)
    second, ms = divmod(ms, 1000)
    return f"{_iso_day(day)}{_CLOCK[minute]}{second:02d}.{ms:03d}Z"


def parse_http_date(text: str) -> int | None:
    """Return the seconds since 1970 of any of the three forms; None for anything else."""
    for form in _FORMS:
        if match := form.fullmatch(text.strip()):
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
