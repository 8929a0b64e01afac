"""Conditional and range requests, as RFC 9110 sections 13 and 14 have them.

Pure: header values in, decisions out. Headers are looked up by their WSGI names. An entity tag here has
its quotes and is strong; dates are seconds since 1970. Either is None where the resource has none.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from davserver.http.dates import parse_http_date

_TAG = re.compile(r'[ \t]*(?:(W/)?("[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(?:,|\Z)')
_RANGE = re.compile(r"[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*", re.ASCII)
_BEYOND_ANY_FILE = 1 << 64


class Validators(NamedTuple):
    """What a resource is now."""

    etag: str | None
    modified: int | None


class Span(NamedTuple):
    """The bytes *start* up to but not including *stop*."""

    start: int
    stop: int


class Unsatisfiable(Exception):
    """No byte of the range exists: 416."""


def failed_precondition(headers: Mapping[str, Any], now: Validators) -> int | None:
    """Return 304 or 412 where a precondition of a GET or HEAD fails, else None (section 13.2.2)."""
    if_match = headers.get("HTTP_IF_MATCH")
    if if_match is not None:
        if not _matches(if_match, now.etag, strong=True):
            return 412
    elif _changed_since(headers.get("HTTP_IF_UNMODIFIED_SINCE"), now.modified):
        return 412
    if_none_match = headers.get("HTTP_IF_NONE_MATCH")
    if if_none_match is not None:
        return 304 if _matches(if_none_match, now.etag, strong=False) else None
    if _changed_since(headers.get("HTTP_IF_MODIFIED_SINCE"), now.modified) is False:
        return 304
    return None


def _matches(condition: str, etag: str | None, *, strong: bool) -> bool:
    """Return whether a list of entity tags, or `*`, names what is there now; garbage names nothing."""
    if condition.strip() == "*":
        return True
    position, found = 0, False
    while position < len(condition):
        match = _TAG.match(condition, position)
        if match is None:
            return False
        weak, tag = match.groups()
        found = found or (tag is not None and tag == etag and not (weak and strong))
        position = match.end()
    return found


def _changed_since(date: str | None, modified: int | None) -> bool | None:
    """Return whether it was modified after *date*; None where either is not known."""
    since = parse_http_date(date) if date is not None else None
    return None if since is None or modified is None else modified > since


def span_of(headers: Mapping[str, Any], now: Validators, length: int, clock: int) -> Span | None:
    """Return the one range to send of a resource of *length* bytes; None sends all of it.

    Several ranges, other units and what does not parse are ignored, as section 14.2 lets us. *clock* is
    the present second. Raises Unsatisfiable.
    """
    value = headers.get("HTTP_RANGE")
    if value is None or not _if_range_holds(headers.get("HTTP_IF_RANGE"), now, clock):
        return None
    unit, _, ranges = value.partition("=")
    match = _RANGE.fullmatch(ranges)
    if unit.strip().lower() != "bytes" or match is None:
        return None
    first, last, suffix = match.groups()
    return _suffix(suffix, length) if suffix else _from_to(first, last, length)


def _if_range_holds(condition: str | None, now: Validators, clock: int) -> bool:
    """Return whether the rest of what the client has is still the same (section 13.1.5).

    A date is a strong validator only when the second it names is over (section 8.8.2.2).
    """
    if condition is None:
        return True
    if condition.lstrip().startswith(('"', "W/")):
        return condition.strip() == now.etag
    date = parse_http_date(condition)
    return date is not None and date == now.modified and date < clock


def _suffix(digits: str, length: int) -> Span | None:
    count = _number(digits)
    if count == 0:
        raise Unsatisfiable
    return Span(max(length - count, 0), length) if length else None


def _from_to(first: str, last: str, length: int) -> Span | None:
    start = _number(first)
    stop = _number(last) + 1 if last else length
    if last and stop <= start:
        return None  # not a range at all
    if start >= length:
        raise Unsatisfiable
    return Span(start, min(stop, length))


def _number(digits: str) -> int:
    """Return the number; one too long for any file is one beyond any file."""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) < 20 else _BEYOND_ANY_FILE
