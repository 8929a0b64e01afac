"""The content of a message: a string, or a list of blocks, as every harness writes it.

A block is text, a medium that is only named, or of a kind that nobody knows and is then served as its
JSON. Fields stay raw until somebody asks, so an odd value costs itself only. Pure.
"""

import msgspec
from msgspec import Raw

from agents9core.jsontext import as_text
from agents9core.record import COPY, LITERAL, TEXT, Part

ABSENT = Raw(b"")
"""A field that the object does not have."""

_TEXTS = {"text", "input_text", "output_text", "summary_text", "reasoning_text"}
_MEDIA = {
    "image": b"[image]",
    "input_image": b"[image]",
    "audio": b"[audio]",
    "input_audio": b"[audio]",
    "document": b"[document]",
    "encrypted_content": b"[encrypted]",
}
IMAGE = Part(LITERAL, b"[image]")


class Block(msgspec.Struct, frozen=True):
    """One element of a content list; every field raw."""

    type: Raw = ABSENT
    text: Raw = ABSENT
    thinking: Raw = ABSENT
    id: Raw = ABSENT
    name: Raw = ABSENT
    input: Raw = ABSENT
    tool_use_id: Raw = ABSENT
    content: Raw = ABSENT


_block = msgspec.json.Decoder(Block).decode
_elements = msgspec.json.Decoder(list[Raw]).decode
_NO_BLOCK = Block()


def first_byte(value: Raw) -> bytes:
    """Return the byte that tells what a JSON value is: `"`, `[`, `{` ...; empty where it is absent."""
    return bytes(memoryview(value)[:1])


def elements(value: Raw) -> list[Raw]:
    """Return the elements of a JSON list; none where the value is something else."""
    return _elements(value) if first_byte(value) == b"[" else []


def block(element: Raw) -> tuple[str, Block]:
    """Return an element's type and fields; the type is empty where it has none."""
    if first_byte(element) != b"{":
        return "", _NO_BLOCK
    fields = _block(element)
    return as_text(fields.type) or "", fields


def text_parts(value: Raw) -> list[Part]:
    """Return a JSON string as a part; none where it is empty or no string."""
    view = memoryview(value)
    return [Part(TEXT, value)] if len(view) > 2 and view[0] == 0x22 else []


def block_parts(kind: str, fields: Block, element: Raw) -> list[Part]:
    """Return what a block that is no call, result or thinking shows."""
    if kind in _TEXTS:
        return text_parts(fields.text)
    if kind in _MEDIA:
        return [Part(LITERAL, _MEDIA[kind])]
    return [Part(COPY, element)]


def content_parts(value: Raw) -> list[Part]:
    """Return what a content value shows: a string, a list of blocks, else its JSON; null is nothing."""
    first = first_byte(value)
    if first == b'"':
        return text_parts(value)
    if first != b"[":
        return [Part(COPY, value)] if first not in (b"", b"n") else []
    return [part for element in elements(value) for part in block_parts(*block(element), element)]


def call_parts(name: Raw, shown: list[Part]) -> list[Part]:
    """Return a call: the tool's name on a line, then its input."""
    return text_parts(name) + shown


def copied(value: Raw) -> list[Part]:
    """Return a JSON value as it stands; none where it is absent or null."""
    return [Part(COPY, value)] if first_byte(value) not in (b"", b"n") else []
