"""Where lines begin and end, however the bytes arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat.lines import LineScanner

DATA = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\0", b"\xe2\x80\xa8", b"bcd"]), max_size=30).map(
    b"".join
)


@pytest.mark.parametrize(
    ("data", "spans"),
    [
        (b"", []),
        (b"a", []),
        (b"\n", [(0, 0)]),
        (b"a\n", [(0, 1)]),
        (b"a\nb", [(0, 1)]),
        (b"a\n\nbc\n", [(0, 1), (2, 2), (3, 5)]),
        (b"a\r\x0b\x0c\x85\xe2\x80\xa8b\n", [(0, 9)]),
        (b"a\0\n", [(0, 2)]),
    ],
)
def test_lines_are_split_on_newlines_alone(data, spans):
    assert LineScanner().feed(data) == spans


@given(DATA, st.data())
def test_any_cuts_give_the_same_lines(data, choice):
    cuts = sorted(choice.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    scanner = LineScanner()
    spans = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        spans += [(start + begin, start + newline) for begin, newline in scanner.feed(data[start:end])]
    assert spans == LineScanner().feed(data)


@given(DATA)
def test_the_lines_are_what_stands_between_newlines(data):
    assert [data[start:end] for start, end in LineScanner().feed(data)] == data.split(b"\n")[:-1]


def test_an_unfinished_line_waits_where_it_began():
    scanner = LineScanner()
    scanner.feed(b"a\nbc")
    assert (scanner.line_start, scanner.scanned) == (2, 4)


def test_a_line_that_was_begun_before_begins_before_the_data():
    scanner = LineScanner(100)
    scanner.feed(b"ab")
    assert scanner.feed(b"c\nd\ne") == [(-2, 1), (2, 3)]
    assert (scanner.line_start, scanner.scanned) == (106, 107)
