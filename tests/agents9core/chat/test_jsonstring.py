"""Strings of a transcript as the UTF-8 that is served, whole and in pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat.jsonstring import safe_cut, text_of, unescape, utf8

LONE = "\ufffd"

SPELLINGS = [
    (rb"plain", "plain"),
    (rb"", ""),
    (rb"a\nb\t\"\\\/\b\f\r", 'a\nb\t"\\/\b\f\r'),
    (rb"caf\u00e9", "café"),
    ("漢字".encode(), "漢字"),
    (rb"\ud83d\ude00", "😀"),
    (rb"\uD83D\uDE00", "😀"),
    (rb"\u0000", "\0"),
    (rb"\ud800", LONE),
    (rb"\udc00", LONE),
    (rb"x\ud83d y", f"x{LONE} y"),
    (rb"\ud83dA", f"{LONE}A"),
    (rb"\ude00\ud83d", LONE * 2),
    (rb"\ud83d\ud83d\ude00", f"{LONE}😀"),
    (rb"\ud83d\u0041", f"{LONE}A"),
    (rb"\ud83d\n", f"{LONE}\n"),
    (rb"\\ud83d", r"\ud83d"),
    (rb"\\\ud83d", f"\\{LONE}"),
    (b"\xff", LONE),
    (b"a\xe6\xbcz", f"a{LONE}z"),
    (b"\xf0\x9f\x98", LONE),
    (b"\xc3\xa9\xa9", f"é{LONE}"),
    (b"\xed\xa0\x80", LONE * 3),
    (b"\\ud83d\xff", LONE * 2),
    (b"raw\ttab\x01", "raw\ttab\x01"),
    ("\u2028\x7f\x85".encode(), "\u2028\x7f\x85"),
]


@pytest.mark.parametrize(("inner", "text"), SPELLINGS)
def test_a_string_is_unescaped_and_always_utf8(inner, text):
    assert text_of(b'"' + inner + b'"') == text


@pytest.mark.parametrize(("inner", "text"), SPELLINGS)
def test_the_inside_of_a_string_reads_as_the_string(inner, text):
    assert unescape(inner) == text.encode()


@pytest.mark.parametrize("broken", [b"", b'"', b'"a"b"', rb'"\x"', rb'"\u12"'])
def test_what_is_no_string_is_refused(broken):
    with pytest.raises(ValueError):  # noqa: PT011 - both parsers' own kinds
        text_of(broken)


@pytest.mark.parametrize(
    "data", [b"", b"ascii", "é漢😀".encode(), b"\xff\xfe", b"a\xe6\xbc", b"\xf0\x9f\x98A"]
)
def test_bytes_that_are_not_utf8_are_replaced(data):
    assert utf8(data) == data.decode("utf-8", "replace").encode()


PARTS = st.sampled_from(
    [
        *(spelling for spelling, _ in SPELLINGS if b"\t" not in spelling),
        rb"\\",
        rb"\n",
        b"a",
        b"\x80",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98\x80",
        b"\xf8\x80\x80\x80\x80",
    ]
)
STRINGS = st.lists(PARTS, max_size=12).map(b"".join)


@given(STRINGS, st.integers(13, 40))
def test_pieces_cut_anywhere_are_the_whole(inner, longest):
    cuts = [0]
    while len(inner) - cuts[-1] > longest:
        cuts.append(safe_cut(inner, cuts[-1] + longest, cuts[-1]))
    segments = [inner[start:end] for start, end in zip(cuts, [*cuts[1:], len(inner)], strict=True)]
    assert b"".join(map(unescape, segments)) == unescape(inner)


@given(STRINGS, st.data())
def test_a_cut_is_at_most_an_escaped_pair_back(inner, data):
    end = data.draw(st.integers(0, len(inner)))
    assert max(0, end - 12) <= safe_cut(inner, end) <= end


@given(st.text(), st.data())
def test_one_cut_of_any_text_is_the_whole(text, data):
    inner = json.dumps(text, ensure_ascii=data.draw(st.booleans()))[1:-1].encode("utf-8", "surrogatepass")
    cut = safe_cut(inner, data.draw(st.integers(0, len(inner))))
    assert unescape(inner[:cut]) + unescape(inner[cut:]) == unescape(inner)


@pytest.mark.parametrize(
    ("inner", "end", "cut"),
    [
        (b"a\x80", 1, 1),
        ("a\u20ac".encode(), 2, 1),
        ("a\u20ac".encode(), 3, 1),
        ("a\u20ac".encode(), 4, 4),
        (b"\x80" * 9, 5, 5),
        (rb"a\n", 2, 1),
        (rb"\\n", 2, 2),
        (rb"\\n", 1, 0),
        (rb"a\u00e9", 4, 1),
        (rb"a\u00e9b", 7, 7),
        (rb"\ud83d\ude00b", 6, 0),
        (rb"\ud83d\ude00b", 9, 0),
        (rb"\ud83d\ude00b", 12, 12),
    ],
)
def test_a_cut_parts_nothing(inner, end, cut):
    assert safe_cut(inner, end) == cut


def test_a_cut_looks_at_nothing_before_its_beginning():
    assert safe_cut(rb"\\\\", 3, 1) == 3


def test_a_piece_that_begins_with_what_is_longer_is_not_cut():
    assert safe_cut(rb"\ud83d\ude00", 11) == 0


def test_a_long_run_of_backslashes_is_cut_without_being_walked_each_time():
    inner = b"\\" * (1 << 20)
    assert [safe_cut(inner, at + 99, at) for at in (0, 1 << 19)] == [98, (1 << 19) + 98]
