import calendar
import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davserver.http.dates import http_date, http_dates, iso_date, iso_dates, modified_seconds, parse_http_date

NOW = 1_800_000_000


@given(st.integers(0, 253_402_300_799))
def test_http_date_is_what_the_standard_library_writes(seconds):
    assert http_date(seconds) == email.utils.formatdate(seconds, usegmt=True)


@given(st.integers(0, 253_402_300_799))
def test_http_date_reads_back(seconds):
    assert parse_http_date(http_date(seconds)) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        " Sun, 06 Nov 1994 08:49:37 GMT ",
    ],
)
def test_all_three_forms_are_read(text):
    assert parse_http_date(text) == calendar.timegm((1994, 11, 6, 8, 49, 37))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "Sun, \u06606 Nov 1994 08:49:37 GMT",
    ],
)
def test_anything_else_is_no_date(text):
    assert parse_http_date(text) is None


def test_a_leap_second_is_the_second_before():
    assert parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT") == calendar.timegm((2016, 12, 31, 23, 59, 59))


def test_two_digits_far_ahead_are_of_the_past_century():
    assert parse_http_date("Friday, 01-Jan-99 00:00:00 GMT") == calendar.timegm((1999, 1, 1, 0, 0, 0))


@pytest.mark.parametrize(
    ("mtime_ns", "seconds"),
    [(1_999_999_999, 1), (-1, 0), (-(10**30), 0), ((NOW + 5) * 10**9, NOW), (10**40, NOW)],
)
def test_modified_is_between_1970_and_now(mtime_ns, seconds):
    assert modified_seconds(mtime_ns, NOW) == seconds


@pytest.mark.parametrize(
    ("mtime_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123_999_999, "2023-11-14T22:13:20.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (10**40, "9999-12-31T23:59:59.999Z"),
        (-(10**40), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_iso_date_has_milliseconds_and_is_clamped(mtime_ns, text):
    assert iso_date(mtime_ns) == text


@given(st.lists(st.integers(-(10**20), 10**20)), st.integers(0, 10**12))
def test_dates_in_bulk_are_those_of_each(times_ns, now):
    assert iso_dates(times_ns) == [iso_date(ns) for ns in times_ns]
    assert http_dates(times_ns, now) == [http_date(modified_seconds(ns, now)) for ns in times_ns]
