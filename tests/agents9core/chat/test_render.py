"""From parts to bytes, and how many: rendering, measuring and cutting are one rule."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat import render as render_module
from agents9core.chat.records import COPY, LITERAL, TEXT, Part
from agents9core.chat.render import cut, make, measure, render, segment_at

TABLE = [
    ([], b""),
    ([(TEXT, b'"a"')], b"a\n"),
    ([(TEXT, b'"a\\n"')], b"a\n"),
    ([(TEXT, b'"a\\n\\n"')], b"a\n\n"),
    ([(TEXT, b'"\\n"')], b"\n"),
    ([(TEXT, b'""')], b""),
    ([(TEXT, b'"a"'), (TEXT, b'""'), (TEXT, b'"b"')], b"a\nb\n"),
    ([(TEXT, rb'"\ud83d\ude00"')], "😀\n".encode()),
    ([(TEXT, rb'"\ud83d"')], "\ufffd\n".encode()),
    ([(TEXT, b'"\xff"')], "\ufffd\n".encode()),
    ([(TEXT, '"é"'.encode())], "é\n".encode()),
    ([(TEXT, rb'"a\u000a"')], b"a\n"),
    ([(TEXT, rb'"a\r"')], b"a\r\n"),
    ([(COPY, b'{"a": 1.50,"b":"\\u00e9\\ud800"}')], b'{"a": 1.50,"b":"\\u00e9\\ud800"}\n'),
    ([(COPY, b'["\xff"]')], '["\ufffd"]\n'.encode()),
    ([(COPY, b"7")], b"7\n"),
    ([(LITERAL, b"[image]")], b"[image]\n"),
    ([(LITERAL, b"")], b""),
    ([(LITERAL, b"said\n")], b"said\n"),
    ([(LITERAL, b"Bash"), (COPY, b"{}")], b"Bash\n{}\n"),
]
DECODED = [
    ("a", b"a\n"),
    ("a\n", b"a\n"),
    ("é", "é\n".encode()),
    ("😀\n", "😀\n".encode()),
    ("\ufffd", "\ufffd\n".encode()),
    ("", b""),
]
CASES = [([Part(*part) for part in parts], text) for parts, text in TABLE]


@pytest.mark.parametrize(("parts", "text"), CASES)
def test_each_part_stands_on_lines_of_its_own(parts, text):
    assert render(parts) == text


@pytest.mark.parametrize(("parts", "text"), CASES)
def test_a_size_is_the_bytes_that_are_read(parts, text):
    assert measure(parts, is_prose=True)[0] == len(text)


@pytest.mark.parametrize(("data", "text"), DECODED)
def test_a_text_may_come_decoded(data, text):
    parts = [Part(TEXT, data), Part(LITERAL, b"x")]
    assert render(parts) == text + b"x\n"
    assert measure(parts, is_prose=True)[0] == len(text) + 2


@pytest.mark.parametrize(("is_prose", "marks"), [(True, 2), (False, 4)])
def test_what_the_markdown_file_must_know_is_counted(is_prose, marks):
    parts = [Part(TEXT, "## 00000001-user\n```"), Part(TEXT, "a\n## 00000002-user\n````")]
    assert measure(parts, is_prose)[1] == marks


def source_of(parts: list[Part]) -> bytes:
    """Return an object that the parts stand in."""
    return b'{"x":[' + b" , ".join(bytes(part.data) for part in parts if part.how != LITERAL) + b"]}"


def joined(parts: list[Part], data: bytes) -> bytes:
    segments, (size, _), _ = cut(parts, data, is_prose=True)
    made = [
        segment.literal or make(segment.how, data[segment.at : segment.at + segment.length])
        for segment in segments
    ]
    assert [segment.start for segment in segments] == [sum(map(len, made[:nth])) for nth in range(len(made))]
    assert size == sum(map(len, made))
    return b"".join(made)


@pytest.mark.parametrize(("parts", "text"), CASES)
def test_pieces_joined_are_the_message(parts, text):
    assert joined(parts, source_of(parts)) == text


TEXTS = st.one_of(
    st.text().map(lambda text: json.dumps(text).encode()),
    st.text().map(lambda text: json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.binary().map(lambda data: b'"' + data.translate(None, b'"\\') + b'"'),
)
PARTS = st.one_of(
    st.tuples(st.just(TEXT), TEXTS),
    st.tuples(st.just(COPY), TEXTS.map(lambda text: b'{"k":' + text + b"}")),
    st.tuples(st.just(LITERAL), st.sampled_from([b"[image]", b"", b"x\n"])),
).map(lambda part: Part(*part))


@given(st.lists(PARTS, max_size=5), st.integers(12, 60))
def test_cut_small_or_not_at_all_is_the_same_message(parts, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render_module, "SEGMENT_BYTES", piece)
        text = joined(parts, source_of(parts))
    assert text == render(parts)
    assert len(text) == measure(parts, is_prose=True)[0]


def test_no_piece_is_made_of_more_than_a_piece_of_the_file(monkeypatch):
    monkeypatch.setattr(render_module, "SEGMENT_BYTES", 100)
    part = Part(TEXT, b'"' + rb"\ud83d\ude00" * 1000 + b'"')
    segments, _, _ = cut([part], bytes(part.data), is_prose=True)
    assert max(segment.length for segment in segments) <= 100


def test_a_message_is_cut_from_where_the_one_before_ended():
    data = b'["a","a"]'
    _, _, near = cut([Part(TEXT, b'"a"')], data, is_prose=True)
    segments, _, _ = cut([Part(TEXT, b'"a"')], data, True, near)
    assert segments[0].at == 6


def test_the_piece_at_an_offset_holds_it(monkeypatch):
    monkeypatch.setattr(render_module, "SEGMENT_BYTES", 12)
    part = Part(TEXT, b'"' + b"abcdefghij" * 9 + b'"')
    segments, (size, _), _ = cut([part], bytes(part.data), is_prose=True)
    assert all(
        0 <= offset - segment_at(segments, offset).start < max(segment_at(segments, offset).length, 1)
        for offset in range(size)
    )
