"""The content of a message: a string, or a list of blocks, as every harness writes it.

A block is text, a medium that is only named, or of a kind that nobody knows and is then served as its
JSON. What may be long stays raw until somebody asks. Pure.
"""

import msgspec
from msgspec import Raw

from agents9core.lenient import decoder
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


class Block(msgspec.Struct, frozen=True, gc=False):
    """One element of a content list."""

    type: str | None = None
    text: Raw = ABSENT
    thinking: Raw = ABSENT
    id: str | None = None
    name: Raw = ABSENT
    input: Raw = ABSENT
    tool_use_id: str | None = None
    content: Raw = ABSENT


_blocks = msgspec.json.Decoder(list[Block]).decode
_block = decoder(Block)
_elements = msgspec.json.Decoder(list[Raw]).decode
_NO_BLOCK = Block()


STRING, LIST, OBJECT, NULL = b'"[{n'
"""The first bytes of JSON values, which tell what they are."""


def first_byte(value: Raw) -> int:
    """Return the byte that tells what a JSON value is; 0 where it is absent."""
    view = memoryview(value)
    return view[0] if view else 0


class Content:
    """A JSON list of blocks; no blocks where the value is something else."""

    def __init__(self, value: Raw) -> None:
        self._value = value
        self._elements: list[Raw] | None = None
        self.blocks = _blocks_of(value)

    def parts(self, number: int) -> list[Part]:
        """Return what a block shows that is no call, result or thinking; of an unknown kind its JSON."""
        block = self.blocks[number]
        if block.type in _TEXTS:
            return text_parts(block.text)
        if block.type in _MEDIA:
            return [Part(LITERAL, _MEDIA[block.type])]
        if self._elements is None:
            self._elements = _elements(self._value)
        return [Part(COPY, self._elements[number])]


def _blocks_of(value: Raw) -> list[Block]:
    if first_byte(value) != LIST:
        return []
    try:
        return _blocks(value)
    except msgspec.ValidationError:
        return [_block(each) if first_byte(each) == OBJECT else _NO_BLOCK for each in _elements(value)]


def text_parts(value: Raw) -> list[Part]:
    """Return a JSON string as a part; none where it is empty or no string."""
    view = memoryview(value)
    return [Part(TEXT, value)] if len(view) > 2 and view[0] == STRING else []


def content_parts(value: Raw) -> list[Part]:
    """Return what a content value shows: a string, a list of blocks, else its JSON; null is nothing."""
    first = first_byte(value)
    if first == STRING:
        return text_parts(value)
    if first != LIST:
        return copied(value)
    content = Content(value)
    if len(content.blocks) == 1:
        return content.parts(0)
    return [part for number in range(len(content.blocks)) for part in content.parts(number)]


def call_parts(name: Raw, shown: list[Part]) -> list[Part]:
    """Return a call: the tool's name on a line, then its input."""
    return text_parts(name) + shown


def copied(value: Raw) -> list[Part]:
    """Return a JSON value as it stands; none where it is absent or null."""
    return [Part(COPY, value)] if has(value) else []


def has(value: Raw) -> bool:
    """Whether a field is there and not null."""
    return first_byte(value) not in (0, NULL)
