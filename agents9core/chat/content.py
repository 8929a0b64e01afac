"""The content of a message: a string, or a list of blocks, as every harness writes it.

A block is text, a medium that is only named, or of a kind that is unknown and is then served as its JSON. A
content comes decoded, in the shape that harnesses write, or raw, and is then looked into when somebody asks
(`record.reader`); both say the same. Pure.
"""

from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from agents9core.chat.decoder import lenient_decoder
from agents9core.chat.jsonstring import text_of
from agents9core.chat.records import COPY, LITERAL, REDACTED, TEXT, Part

ABSENT: Any = Raw(b"")
"""A field that the object does not have."""

_TEXTS = {"text", "input_text", "output_text", "summary_text", "reasoning_text"}
_MEDIA = {
    "image": b"[image]",
    "input_image": b"[image]",
    "image_url": b"[image]",
    "audio": b"[audio]",
    "input_audio": b"[audio]",
    "document": b"[document]",
    "encrypted_content": b"[encrypted]",
}
_KNOWN = {*_TEXTS, *_MEDIA}
IMAGE = Part(LITERAL, b"[image]")

Text = TypeVar("Text")
Body = TypeVar("Body")


class Block(msgspec.Struct, Generic[Text, Body], frozen=True, gc=False):
    """One element of a content list; its texts, and the content of a result, as either way takes them."""

    type: str | None = None
    text: Text = ABSENT
    thinking: Text = ABSENT
    id: str | None = None
    name: Text = ABSENT
    input: Raw = ABSENT
    arguments: Raw = ABSENT
    tool_use_id: str | None = None
    content: Body = ABSENT
    source: Raw = ABSENT


Decoded: TypeAlias = str | list[Block[str, Raw]] | None
"""A content, decoded."""
Value: TypeAlias = str | list[Any] | Raw | None
"""A field, taken in either way."""

_blocks = msgspec.json.Decoder(list[Block[Raw, Raw]]).decode
_block = lenient_decoder(Block[Raw, Raw])
_elements = msgspec.json.Decoder(list[Raw]).decode
_NO_BLOCK = Block[Any, Any]()


STRING, LIST, OBJECT, NULL = b'"[{n'
"""The first bytes of JSON values, which identify them."""


def first_byte(value: Value) -> int:
    """Return the byte that identifies a JSON value's type; 0 where it is absent."""
    if isinstance(value, str):
        return STRING
    if isinstance(value, Raw):
        view = memoryview(value)
        return view[0] if view else 0
    return NULL if value is None else LIST


class Content:
    """A list of blocks; no blocks where the value is something else."""

    __slots__ = ("_elements", "_value", "blocks")

    def __init__(self, value: Value) -> None:
        self._value = value
        self._elements: list[Raw] | None = None
        self.blocks: list[Block[Any, Any]] = value if isinstance(value, list) else _blocks_of(value)

    def parts(self, number: int) -> list[Part]:
        """Return what a block shows that is no call, result or thinking; of an unknown kind its JSON.

        Raises ValidationError: the kind is unknown, and the content decoded.
        """
        block = self.blocks[number]
        if block.type in _KNOWN:
            return known_parts(block)
        if self._elements is None:
            if not isinstance(self._value, Raw):
                return known_parts(block)
            self._elements = _elements(self._value)
        return [Part(REDACTED, self._elements[number])]


def known_parts(block: Block[Any, Any]) -> list[Part]:
    """Return what a block of a known kind shows. Raises ValidationError where it is not."""
    if block.type in _TEXTS:
        return text_parts(block.text)
    if block.type == "document" and (text := _plain_text(block.source)):
        return text
    if block.type in _MEDIA:
        return [Part(LITERAL, _MEDIA[block.type])]
    raise msgspec.ValidationError(f"a block of an unknown kind: {block.type}")


class _DocumentSource(msgspec.Struct, frozen=True):
    type: str | None = None
    data: Raw = ABSENT


_source = lenient_decoder(_DocumentSource)


def _plain_text(source: Raw) -> list[Part]:
    """Return the text of a document that is plain text; none of any other."""
    if first_byte(source) != OBJECT:
        return []
    found = _source(source)
    return text_parts(found.data) if found.type == "text" else []


def _blocks_of(value: Value) -> list[Block[Any, Any]]:
    if not isinstance(value, Raw) or first_byte(value) != LIST:
        return []
    try:
        return _blocks(value)
    except msgspec.ValidationError:
        return [_block(each) if first_byte(each) == OBJECT else _NO_BLOCK for each in _elements(value)]


def text_parts(value: Value) -> list[Part]:
    """Return a string as a part; none where it is empty or no string."""
    if isinstance(value, str):
        return [Part(TEXT, value)] if value else []
    if not isinstance(value, Raw):
        return []
    view = memoryview(value)
    return [Part(TEXT, value)] if len(view) > 2 and view[0] == STRING else []


def content_parts(value: Value) -> list[Part]:
    """Return what a content value shows: a string, a list of blocks, else its JSON; null is nothing."""
    if isinstance(value, str):
        return [Part(TEXT, value)] if value else []
    if isinstance(value, list):
        if len(value) == 1:
            return known_parts(value[0])
        return [part for block in value for part in known_parts(block)]
    first = first_byte(value)
    if first == STRING:
        return text_parts(value)
    if first != LIST:
        return [Part(REDACTED, part.data) for part in copied(value)]
    content = Content(value)
    return [part for number in range(len(content.blocks)) for part in content.parts(number)]


def call_parts(name: Value, shown: list[Part]) -> list[Part]:
    """Return a call: the tool's name on a line, then its input."""
    return text_parts(name) + shown


def copied(value: Value) -> list[Part]:
    """Return a JSON value as it stands; none where it is absent or null."""
    if not isinstance(value, Raw):
        return []
    view = memoryview(value)
    return [Part(COPY, value)] if view and view[0] != NULL else []


def has(value: Value) -> bool:
    """Whether a field is there and not null."""
    return isinstance(value, str) or first_byte(value) not in (0, NULL)


def as_text(value: Value) -> str | None:
    """Return the text of a value; None where it is absent or no string."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Raw) or first_byte(value) != STRING:
        return None
    try:
        return text_of(value)
    except ValueError:
        return None
