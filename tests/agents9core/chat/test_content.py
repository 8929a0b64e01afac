"""Contents: decoded or raw, they show the same."""

import json

import msgspec
import pytest
from msgspec import Raw

from agents9core.chat.content import ABSENT, Block, Content, Decoded, as_text, content_parts, has
from agents9core.chat.render import render

decoded = msgspec.json.Decoder(Decoded).decode


@pytest.mark.parametrize("value", [b"", b"null", b"7", b"true", b"{}", b'["a"]', rb'"\x"'])
def test_a_field_that_is_no_string_has_no_text(value):
    assert as_text(Raw(value)) is None


@pytest.mark.parametrize("value", [None, [], [Block(type="text", text="a")]])
def test_a_decoded_field_that_is_no_string_has_no_text(value):
    assert as_text(value) is None


@pytest.mark.parametrize("value", [Raw(b'"a\\n"'), "a\n"])
def test_a_field_that_is_a_string_has_its_text(value):
    assert as_text(value) == "a\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ABSENT, False),
        (None, False),
        (Raw(b"null"), False),
        (Raw(b"0"), True),
        (Raw(b'""'), True),
        ("", True),
        ([], True),
    ],
)
def test_a_field_is_there_when_it_is_not_null(value, expected):
    assert has(value) is expected


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", b"a\n"),
        ("", b""),
        (None, b""),
        ([], b""),
        ([{"type": "text", "text": "a"}], b"a\n"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "text", "text": "\u20ac"}],
         "a\n\u20ac\n".encode()),
        ([{"type": "input_image", "image_url": "data:"}, {"text": "b", "type": "output_text"}],
         b"[image]\nb\n"),
        ([{"type": "text"}], b""),
    ],
)  # fmt: skip
def test_a_content_shows_the_same_decoded_and_raw(content, text):
    data = json.dumps(content).encode()
    assert render(content_parts(decoded(data))) == render(content_parts(Raw(data))) == text


@pytest.mark.parametrize("content", [[{"type": "news", "text": "a"}], [{"text": "a"}], [{"type": None}]])
def test_a_block_of_an_unknown_kind_can_only_be_shown_raw(content):
    data = json.dumps(content, separators=(",", ":")).encode()
    assert render(content_parts(Raw(data))) == data[1:-1] + b"\n"
    with pytest.raises(msgspec.ValidationError):
        content_parts(decoded(data))


def test_a_raw_list_that_holds_other_things_than_objects_shows_each():
    assert render(Content(Raw(b'[7, "a"]')).parts(1)) == b'"a"\n'
