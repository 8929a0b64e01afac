"""The column "RFC 9110" of the measured exchanges, and what the sections say besides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from davserver.http.conditional import Span, Unsatisfiable, Validators, failed_precondition, span_of
from davserver.http.dates import http_date

MODIFIED, CLOCK = 1_700_000_000, 1_800_000_000
NOW = Validators('"a-1"', MODIFIED)
SAME, EARLIER, LATER = (http_date(MODIFIED + shift) for shift in (0, -1, 1))
FUTURE = http_date(CLOCK + 10**6)

NONE_MATCH, MATCH = "HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH"
SINCE, UNMODIFIED = "HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({NONE_MATCH: '"a-1"'}, 304),
        ({NONE_MATCH: 'W/"a-1"'}, 304),
        ({NONE_MATCH: "*"}, 304),
        ({NONE_MATCH: '"x", W/"y" , "a-1"'}, 304),
        ({NONE_MATCH: ' ,, "a-1"'}, 304),
        ({NONE_MATCH: '"x"'}, None),
        ({NONE_MATCH: "a-1"}, None),
        ({NONE_MATCH: '"a-1'}, None),
        ({NONE_MATCH: ""}, None),
        ({NONE_MATCH: '"A-1"'}, None),
        ({SINCE: SAME}, 304),
        ({SINCE: LATER}, 304),
        ({SINCE: FUTURE}, 304),
        ({SINCE: EARLIER}, None),
        ({SINCE: "garbage"}, None),
        ({NONE_MATCH: '"a-1"', SINCE: SAME}, 304),
        ({NONE_MATCH: '"a-1"', SINCE: LATER}, 304),
        ({NONE_MATCH: '"a-1"', SINCE: EARLIER}, 304),
        ({NONE_MATCH: '"x"', SINCE: LATER}, None),
        ({MATCH: '"x"'}, 412),
        ({MATCH: 'W/"a-1"'}, 412),
        ({MATCH: "garbage"}, 412),
        ({MATCH: '"a-1"'}, None),
        ({MATCH: "*"}, None),
        ({MATCH: '"a-1"', UNMODIFIED: EARLIER}, None),
        ({UNMODIFIED: EARLIER}, 412),
        ({UNMODIFIED: SAME}, None),
        ({UNMODIFIED: LATER}, None),
        ({UNMODIFIED: "garbage"}, None),
        ({MATCH: '"x"', NONE_MATCH: '"a-1"'}, 412),
        ({MATCH: '"a-1"', NONE_MATCH: '"a-1"'}, 304),
    ],
)
def test_preconditions_are_tried_in_the_order_of_section_13_2_2(headers, status):
    assert failed_precondition(headers, NOW) == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [({SINCE: LATER}, None), ({UNMODIFIED: EARLIER}, None), ({NONE_MATCH: "*"}, 304), ({MATCH: '"a"'}, 412)],
)
def test_a_resource_without_validators_has_only_its_existence(headers, status):
    assert failed_precondition(headers, Validators(None, None)) == status


LENGTH = 2008


@pytest.mark.parametrize(
    ("value", "span"),
    [
        ("bytes=0-9", Span(0, 10)),
        ("bytes=-10", Span(1998, 2008)),
        ("bytes=-9999", Span(0, 2008)),
        ("bytes=0-", Span(0, 2008)),
        ("bytes=10-9999", Span(10, 2008)),
        ("bytes=2007-", Span(2007, 2008)),
        ("bytes=5-5", Span(5, 6)),
        ("BYTES=0-9", Span(0, 10)),
        ("bytes= 0-9 ", Span(0, 10)),
        ("bytes=0-" + "9" * 5000, Span(0, 2008)),
        ("bytes=" + "0" * 5000 + "1-2", Span(1, 3)),
        ("bytes=0-9,100-109", None),
        ("bytes=0-9,", None),
        ("lines=0-9", None),
        ("bytes=9-2", None),
        ("bytes=a-b", None),
        ("bytes=", None),
        ("bytes", None),
        ("bytes=-", None),
        ("bytes=0-9-10", None),
        ("bytes=\u0660-9", None),
        ("", None),
    ],
)
def test_one_range_of_bytes_is_served_and_anything_else_is_ignored(value, span):
    assert span_of({"HTTP_RANGE": value}, NOW, LENGTH, CLOCK) == span


@pytest.mark.parametrize("value", ["bytes=2008-", "bytes=9999-", "bytes=-0", "bytes=" + "9" * 5000 + "-"])
def test_a_range_without_bytes_is_unsatisfiable(value):
    with pytest.raises(Unsatisfiable):
        span_of({"HTTP_RANGE": value}, NOW, LENGTH, CLOCK)


def test_an_empty_file_has_no_first_byte():
    with pytest.raises(Unsatisfiable):
        span_of({"HTTP_RANGE": "bytes=0-"}, NOW, 0, CLOCK)


def test_the_last_bytes_of_an_empty_file_are_all_of_it():
    assert span_of({"HTTP_RANGE": "bytes=-5"}, NOW, 0, CLOCK) is None


@pytest.mark.parametrize(
    ("condition", "served"),
    [
        ('"a-1"', True),
        ('"x"', False),
        ('W/"a-1"', False),
        (SAME, True),
        (EARLIER, False),
        (LATER, False),
        ("garbage", False),
    ],
)
def test_if_range_needs_the_very_same_strong_validator(condition, served):
    span = span_of({"HTTP_RANGE": "bytes=0-9", "HTTP_IF_RANGE": condition}, NOW, LENGTH, CLOCK)
    assert (span is not None) is served


def test_if_range_does_not_trust_a_date_of_this_very_second():
    headers = {"HTTP_RANGE": "bytes=0-9", "HTTP_IF_RANGE": SAME}
    assert span_of(headers, NOW, LENGTH, clock=MODIFIED) is None


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 100))
def test_no_header_is_a_crash(value, condition, length):
    headers = dict.fromkeys((NONE_MATCH, MATCH, SINCE, UNMODIFIED), value)
    assert failed_precondition(headers, NOW) in (None, 304, 412)
    try:
        span = span_of({"HTTP_RANGE": "bytes=" + value, "HTTP_IF_RANGE": condition}, NOW, length, CLOCK)
    except Unsatisfiable:
        return
    assert span is None or 0 <= span.start < span.stop <= length


@pytest.mark.timeout(20)
@pytest.mark.parametrize("condition", ['"x"\n', "\n", "," + " " * 60_000 + "x", "," * 60_000, '"' * 60_000])
def test_a_condition_that_is_garbage_costs_nothing(condition):
    """Found by fuzzing: a newline at the end was read for ever, and many blanks for half a minute."""
    assert failed_precondition({NONE_MATCH: condition}, Validators('"a-1"', 0)) is None
