"""From a line to its records: damaged lines above all (DESIGN section 4, "Damage")."""

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agents9core.chat.decoder import find_records, read_object
from agents9core.chat.records import COPY, LITERAL, TEXT, Message, Part, Record, find_part
from agents9core.chat.timestamps import time_ns

BOM = b"\xef\xbb\xbf"


class _Said(msgspec.Struct):
    say: Raw = Raw(b"")
    then: Raw = Raw(b"")
    put: Raw = Raw(b"")


_said = msgspec.json.Decoder(_Said).decode


def read(data: bytes, _raw: bool = False, /) -> Record:
    """Read an invented record: two texts in this order, and a value that is copied."""
    said = _said(data)
    texts = [Part(TEXT, part) for part in (said.say, said.then) if bytes(part)[:1] == b'"']
    copied = [Part(COPY, said.put)] if bytes(said.put) else []
    return Record([Message("user", [*texts, *copied, Part(LITERAL, b"!")])])


def found(line: bytes) -> list[list[bytes] | None]:
    """Return the bytes of each record's parts; None for what is skipped."""
    return [
        None
        if one is None
        else [bytes(part.data) for message in one.record.messages for part in message.parts]
        for one in find_records(line, read)
    ]


A, B = b'{"say":"a"}', b'{"say":"b"}'
SAID_A, SAID_B = [b'"a"', b"!"], [b'"b"', b"!"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (A, [SAID_A]),
        (A + b"\r", [SAID_A]),
        (b"  \t" + A + b" ", [SAID_A]),
        (BOM + A, [SAID_A]),
        (b"\0\0" + A, [SAID_A]),
        (b"\0 " + BOM + b"\0\r" + A, [SAID_A]),
        (A + b"\0\0", [SAID_A]),
        (A + B, [SAID_A, SAID_B]),
        (A + b"\0 " + BOM + B, [SAID_A, SAID_B]),
        (A + b" " + B + b" ", [SAID_A, SAID_B]),
        (A + B[:-3], [SAID_A, None]),
        (A + b"rest" + B, [SAID_A, None]),
        (A + b"}" + B, [SAID_A, None]),
        (A + b"7", [SAID_A, None]),
        (A + b"[]", [SAID_A, None]),
        (A[:-1], [None]),
        (A[:-2], [None]),
        (B[:5] + A, [None]),
        (b"rest" + A, [None]),
        (b"{", [None]),
        (b'{"', [None]),
        (b'{"say":"a\\"}', [None]),
        (b"{]", [None]),
        (b"{]" + A, [None]),
        (b"{,}", [None]),
        (b'{"say":01}', [None]),
        (rb'{"say":"\x"}', [None]),
        (b"{}", [[b"!"]]),
        (b"[1]", [None]),
        (b"[" + A + b"]", [None]),
        (b"7", [None]),
        (b'"text"', [None]),
        (b"null", [None]),
        (b"true", [None]),
        (b"NaN", [None]),
        (b"\0" * 300, [None]),
        (BOM, [None]),
        (b"", []),
        (b" \t\r", []),
        (b'{"say":"a\tb"}', [[b'"a\tb"', b"!"]]),
        (b'{"say":"a\0b"}', [[b'"a\0b"', b"!"]]),
        (b'{"say":"a\xffb"}', [[b'"a\xffb"', b"!"]]),
        (b'{"\xff":1,"say":"a"}', [SAID_A]),
        (rb'{"x":"\ud800","say":"a"}', [SAID_A]),
        (rb'{"\udfff":1,"say":"a"}', [SAID_A]),
        (rb'{"say":"\ud800"}', [[rb'"\ud800"', b"!"]]),
        (rb'{"say":"\\ud800\udc00"}', [[rb'"\\ud800\udc00"', b"!"]]),
        (rb'{"say":"\ud83d\ude00\ud800"}', [[rb'"\ud83d\ude00\ud800"', b"!"]]),
        (rb'{"put":{"k":["\ud800"]}}', [[rb'{"k":["\ud800"]}', b"!"]]),
        (b'{"say":"one","say":"a"}', [SAID_A]),
        (rb'{"say":"\ud800","say":"a"}', [SAID_A]),
        (b'{"s\\u0061y":"a"}', [SAID_A]),
        (b'{"put":' + b"9" * 10_000 + b"}", [[b"9" * 10_000, b"!"]]),
        (b'{"put":1e99999}', [[b"1e99999", b"!"]]),
    ],
)
def test_what_stands_on_a_line(line, expected):
    assert found(line) == expected


def deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_a_value_that_nests_deep_is_copied_as_it_stands():
    assert found(b'{"put":' + deep(100_000) + b"}") == [[deep(100_000), b"!"]]


def test_deep_nesting_in_a_field_that_nobody_reads_costs_nothing_else():
    assert found(b'{"x":' + deep(100_000) + b',"say":"a"}') == [SAID_A]


def test_deep_nesting_of_objects_too():
    assert found(b'{"k":' * 100_000 + b"1" + b"}" * 100_000) == [[b"!"]]


def test_two_deep_values_and_a_lone_surrogate_are_each_found_again():
    line = b'{"x":%b,"put":%b,"say":"\\ud800","then":"a"}' % (deep(5000), deep(6000))
    assert found(line) == [[rb'"\ud800"', b'"a"', deep(6000), b"!"]]


def test_brackets_that_close_nothing_are_skipped():
    assert found(b'{"x":' + b"[" * 5000 + b"}" * 5001 + A) == [None]


def test_deep_nesting_that_is_no_json_is_skipped():
    assert found(b'{"x":' + deep(5000) + b"oops}") == [None]


def test_parts_that_come_in_another_order_are_found_again():
    assert found(rb'{"put":[1],"then":"t","say":"a","x":"\ud800"}') == [[b'"a"', b'"t"', b"[1]", b"!"]]


def test_a_whole_line_is_not_copied():
    line = b'{"say":"a"}'
    (one,) = find_records(line, read)
    assert one is not None
    assert (one.start, one.end) == (0, len(line))


def test_the_place_of_each_object_on_a_line_is_known():
    assert [(one.start, one.end) for one in find_records(b"\0" + A + b" " + B, read) if one] == [
        (1, 12),
        (13, 24),
    ]


def test_objects_are_handed_over_one_at_a_time():
    endless = find_records(A * 100_000, read)
    assert next(endless) is not None


def test_reading_one_object_again_gives_the_same():
    data = rb'{"say":"\ud800"}'
    record = read_object(data, read)
    assert record is not None
    assert [bytes(part.data) for part in record.messages[0].parts] == [rb'"\ud800"', b"!"]


def test_an_object_that_nothing_helps_is_none():
    assert read_object(b'{"say":', read) is None


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    list(find_records(data, read))


@given(st.integers(0, 2**32))
def test_no_line_that_was_damaged_raises(seed):
    chance = random.Random(seed)
    line = bytearray(rb'{"say":"a\ud83d\ude00 b","then":"\n","put":{"k":[1,2.5,"x"]}}' * 2)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(line))
        line[at : at + chance.randint(0, 3)] = chance.choice(
            [b"", b"\\", b'"', b"\xff", b"{", b"]", b"\0", b"\\ud800"]
        )
    list(find_records(bytes(line), read))


@pytest.mark.parametrize("near", [0, 1, 7, 50, 9_000])
@pytest.mark.parametrize("at", [0, 20, 5_000, 9_994])
def test_a_part_is_found_wherever_the_one_before_ended(near, at):
    data = bytearray(b"." * 10_000)
    data[at : at + 6] = b'"part"'
    assert find_part(bytes(data), b'"part"', near) == at


def test_a_part_is_looked_for_ahead_first():
    assert find_part(b'"a" "b" "a"', b'"a"', 4) == 8


def test_a_part_that_is_not_in_its_object_is_an_error_and_no_endless_search():
    with pytest.raises(AssertionError):
        find_part(b"nothing", b'"a"', 3)


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.250Z", 1_250_000_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01", 1_000_000_000),
        ("1969-12-31T23:59:59Z", -1_000_000_000),
        ("1970-01-02", 86_400_000_000_000),
        ("2262-04-11T23:47:16.854775Z", 9_223_372_036_854_775_000),
        ("2262-04-11T23:47:16.854776Z", None),
        ("1677-09-21T00:00:00Z", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("99999-01-01T00:00:00Z", None),
        ("-2026-01-01T00:00:00Z", None),
        ("2026-13-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        ("1795967386", None),
        ("2026-01-01T00:00:00\ufffd", None),
    ],
)
def test_a_time_is_read_or_is_none(stamp, expected):
    assert time_ns(stamp) == expected


@given(st.integers(-300_000_000_000, 7_000_000_000_000))
def test_times_are_read_alike_whatever_was_read_before(milliseconds):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    expected = milliseconds * 1_000_000
    stamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert [time_ns(stamp) for _ in range(2)] == [expected, expected]
    assert time_ns(stamp[:17] + "07.250Z") == expected - expected % 60_000_000_000 + 7_250_000_000
    assert time_ns(stamp[:17] + "60.000Z") is None


def test_the_last_minute_that_can_be_told_is_told_in_part_only():
    assert time_ns("2262-04-11T23:47:16.000Z") == 9_223_372_036_000_000_000
    assert time_ns("2026-01-01T00:00:59.000Z") is not None
    assert time_ns("2262-04-11T23:47:59.000Z") is None


@given(st.text(max_size=40))
def test_no_time_raises(stamp):
    time_ns(stamp)
