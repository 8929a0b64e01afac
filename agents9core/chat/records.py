"""What a harness's decoder gives: records, and the messages and parts in them. Pure data."""

import codecs
from typing import Protocol, TypeAlias, TypeVar

import msgspec

LITERAL, COPY, TEXT, REDACTED = range(4)
"""How a part is made: our own bytes; JSON as it stands in the file; a JSON string, unescaped; JSON as it
stands, but for sealed and binary strings (`jsonstring.redacted`)."""

CALL, RESULT = "tool-call", "tool-result"


class Part(msgspec.Struct, frozen=True, gc=False):
    """A piece of a message that stands on a line of its own."""

    how: int
    data: bytes | msgspec.Raw | str
    """For TEXT the text, or the JSON string with its quotes."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message of a record."""

    role: str
    """user, assistant, thinking, system, agent, CALL or RESULT."""
    parts: list[Part]
    call: str | None = None
    """The id that a call and its result share."""
    tool: str = ""
    """The name of the tool that is called, as the harness spells it."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """What one JSON object of a transcript holds."""

    messages: list[Message] = []
    time: str | None = None
    """Its timestamp as written; None where it has none."""
    uid: str | None = None
    """A record whose uid was seen before is a copy of that one, and is skipped unless it *repeats*."""
    facts: tuple[tuple[str, str], ...] = ()
    """What it states about the session: model, title and the like, by name."""
    ordinal: int | None = None
    starts_at: int | None = None
    """From a first record: messages of a lower ordinal belong to another chat."""
    repeats: bool = False
    """Whether its uid only marks others as copies of it."""
    about: str | None = None
    """The uid of another record: the facts count where the transcript has that one, before or after this."""
    begins: str | None = None
    """The side chain whose first record it is: a chat of its own, in the same file."""


NOTHING = Record()
"""What most records hold."""


Span: TypeAlias = tuple[int, int]
"""Where a line begins, and where it ends."""


Extracted = TypeVar("Extracted", covariant=True)


class ObjectDecoder(Protocol[Extracted]):
    """Reads one JSON object, which may be any buffer. It raises DecodeError or RecursionError."""

    def __call__(self, data: bytes, raw: bool = False, /) -> Extracted:
        """*raw*: take each text as the JSON string that stands in *data*; else mostly decoded."""


_NEAR = 4096


def _mark_each(error: UnicodeError) -> tuple[str, int]:
    """Put a mark in place of what `errors='replace'` makes one U+FFFD of."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - nothing is encoded with this handler
    return _MARKS[error.end - error.start - 1], error.end


_MARKS = ("\x7f", "\x80", "\ufffd")
"""As long as what they stand for, and nothing that a name or a fact shows as it is."""
_MARK_EACH = "agents9.mark_each"
codecs.register_error(_MARK_EACH, _mark_each)


def raw_bytes(part: Part) -> bytes | msgspec.Raw:
    """Return the bytes of a part that was read raw, as they stand in its object."""
    assert not isinstance(part.data, str)  # noqa: S101 - who reads raw is given no str
    return part.data


def find_part(data: bytes, part: bytes | msgspec.Raw, near: int) -> int:
    """Return where *part*, which is a part of *data*, stands in it.

    Parts come in the order of the file, or nearly, so it is searched for from where the part before ended: a
    little ahead, a little back, then farther. Where it stands at two places, either shows the same.
    """
    length = len(memoryview(part))
    reach = length + _NEAR
    while True:
        at = data.find(part, near, near + reach)
        if at < 0:
            at = data.rfind(part, max(0, near - reach), near + length)
        if at >= 0:
            return at
        if reach > len(data):
            raise AssertionError("a part that is not in its object")
        reach *= 8
