"""From a line of a transcript to the messages in it: what every harness's reader shares.

A harness gives a `RecordDecoder`: what reads one JSON object, and many lines at once where each is one. This
module finds the objects on a line, also on a damaged one (DESIGN section 4, "Damage"): a BOM, NULs and
blanks before an object are skipped, glued objects are read one after the other, and what a strict
parser refuses is mended and tried once more before it counts as skipped.

Pure: no files.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import msgspec

from agents9core.lenient import lenient_decoder

LITERAL, COPY, TEXT = range(3)
"""How a part is made: our own bytes; JSON as it stands in the file; a JSON string, unescaped."""

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
    begins: str | None = None
    """The side chain whose first record it is: a chat of its own, in the same file."""


NOTHING = Record()
"""What most records hold."""


Span: TypeAlias = tuple[int, int]
"""Where a line begins, and where it ends."""
_OPEN, _CLOSE = b"{}"


class Found(NamedTuple):
    """One object on a line: where it stands in the line, and its record."""

    start: int
    end: int
    record: Record


Extracted = TypeVar("Extracted", covariant=True)


class ObjectDecoder(Protocol[Extracted]):
    """Reads one JSON object, which may be any buffer. It raises DecodeError or RecursionError."""

    def __call__(self, data: bytes, raw: bool = False, /) -> Extracted:
        """*raw*: take each text as the JSON string that stands in *data*; else mostly decoded."""


class RecordDecoder(Generic[Extracted]):
    """Reads records in either of two ways with equal results."""

    def __init__(
        self,
        decoded: type[msgspec.Struct],
        as_raw: type[msgspec.Struct],
        extract: Callable[[Any], Extracted | None],
        other: "RecordDecoder[Extracted] | None" = None,
        slot_bytes: Callable[[bytes], int] = lambda _beginning: 0,
    ) -> None:
        """*extract*: from a struct to its record; None: ask *other*. Of the two structs:

        *decoded*: the shape that the harness writes, with each text decoded in the one pass that also checks
        the line; nearly all are read so. *as_raw*: texts and contents are Raw, for what is raw or of another
        shape; there an odd field costs itself only. *slot_bytes*: from what a file begins with to how many
        bytes there are rewritten in place while it stays the same transcript.
        """
        self.slot_bytes = slot_bytes
        usual = msgspec.json.Decoder(decoded)
        self._usual, self._usual_lines = usual.decode, usual.decode_lines
        self._lenient = lenient_decoder(as_raw)
        self._extract = extract
        self._other = other

    def __call__(self, data: bytes, raw: bool = False, /) -> Extracted:
        """Read one object: see `ObjectDecoder`."""
        said = self._read(data, raw)
        if said is None:
            assert self._other is not None  # noqa: S101 - else nobody says None
            return self._other(data, raw)
        return said

    def _read(self, data: bytes, raw: bool) -> Extracted | None:
        if not raw:
            try:
                return self._extract(self._usual(data))
            except msgspec.ValidationError:
                pass
        return self._extract(self._lenient(data))

    def lines(self, data: bytes, spans: Sequence[Span]) -> list[Extracted | None]:
        """Read lines that stand one after the other in *data*; None for one that is not one object.

        What takes most of the time is done for all of them at once, and the next thing then for all: that is
        a fifth faster than line by line.
        """
        decoded = self._decoded(data, spans) if spans else []
        if decoded is None:
            return [self._single(data, span) for span in spans]
        extract, said = self._extract, []
        for line, span in zip(decoded, spans, strict=True):
            try:
                one = extract(line)
            except msgspec.ValidationError:
                one = None
            said.append(self._single(data, span) if one is None else one)
        return said

    def _decoded(self, data: bytes, spans: Sequence[Span]) -> list[Any] | None:
        """Decode lines at once; None where that cannot be, or is not sure to give one object of each.

        What begins and ends in braces and has a newline between them is one object before and one after it:
        no value goes on so. Then each line has an object at least, and if they are as many as lines, one.
        """
        if [begin for begin, end in spans if data[begin] != _OPEN or data[end - 1] != _CLOSE]:
            return None
        try:
            decoded = self._usual_lines(memoryview(data)[spans[0][0] : spans[-1][1]])
        except (msgspec.DecodeError, RecursionError):
            return None
        return decoded if len(decoded) == len(spans) else None

    def _single(self, data: bytes, span: Span) -> Extracted | None:
        try:
            return self(data[slice(*span)])
        except (msgspec.DecodeError, RecursionError):
            return None


ChatDecoder: TypeAlias = RecordDecoder[Record]


_NOTHING = re.compile(rb"[\x00 \t\r]*+(?:\xef\xbb\xbf[\x00 \t\r]*+)?")
_NEAR = 4096
_PIECE = 1 << 16
_DEPTH = 200
"""Deeper than this a value is only copied, never looked into; parsers give up near 1,000."""
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_TOKEN = re.compile(_STRING + rb'|["{}\[\]]', re.DOTALL)
_HIGH, _LOW = (rb"\\u[dD][%b][0-9a-fA-F]{2}" % half for half in (b"89abAB", b"c-fC-F"))
_ALONE = rb"(?:%b(?!%b)|%b)" % (_HIGH, _LOW, _LOW)
_DAMAGE = rb"(?:\\\\|%b%b)++|(?P<lone>%b{1,999}+)|(?P<controls>[\0-\x1f]{1,999}+)" % (_HIGH, _LOW, _ALONE)
"""Short runs of lone surrogates, and of control characters; backslashes that escape each other, and pairs of
surrogates, are matched so that they are passed over."""


def find_records(line: bytes, read: ObjectDecoder[Record]) -> Iterator[Found | None]:
    """Yield the objects on a line that may be damaged; None at the end where something is skipped."""
    at = end = 0
    while (at := _begin(line, at)) < len(line):
        end = _object_end(line, at)
        record = read_object(line[at:end], read) if end else None
        if record is None:
            yield None
            return
        yield Found(at, end, record)
        at = end
    if not end and line.strip(b" \t\r"):
        yield None


def read_object(data: bytes, read: ObjectDecoder[Record]) -> Record | None:
    """Read one object, mended where it must be; None where nothing helps."""
    try:
        return read(data)
    except (msgspec.DecodeError, RecursionError):
        return read_mended(data, read)


def _begin(line: bytes, at: int) -> int:
    """Return where the next value may begin: after a BOM, NULs and blanks."""
    nothing = _NOTHING.match(line, at)
    return nothing.end() if nothing else at


def _object_end(line: bytes, start: int) -> int:
    """Return where the object that begins at *start* ends; 0 where none begins, or it has no end."""
    depth = 0
    if line[start] != 0x7B:
        return 0
    for token in _TOKEN.finditer(line, start):
        byte = line[token.start()]
        if byte in b"{[":
            depth += 1
        elif byte in b"}]":
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.end() - token.start() == 1:
            return 0
    return 0


def read_mended(data: bytes, read: ObjectDecoder[Record]) -> Record | None:
    """Read an object that a strict parser refuses.

    Mending keeps every byte in its place, so that each part can be taken from the object as it stands. It
    is done in one buffer: a line may be as long as LONGEST.
    """
    buffer = bytearray(data)
    _mend(buffer)
    mended = cast(bytes, buffer)  # a reader takes any buffer
    try:
        record = read(mended, True)
    except RecursionError:
        _flatten(buffer)
        try:
            record = read(mended, True)
        except (msgspec.DecodeError, RecursionError):
            return None
    except msgspec.DecodeError:
        return None
    return msgspec.structs.replace(record, messages=_relocated(record.messages, mended, data))


def _mend(data: bytearray) -> None:
    """Put U+FFFD in place of every lone surrogate, blanks of control characters, and marks of bad UTF-8."""
    _mend_utf8(memoryview(data))
    for damage in re.finditer(_DAMAGE, data):
        start, end = damage.span()
        if damage.lastgroup == "lone":
            data[start:end] = b"\\ufffd" * ((end - start) // 6)
        elif damage.lastgroup == "controls":
            data[start:end] = b" " * (end - start)


def _mend_utf8(data: memoryview) -> None:
    at = 0
    while at < len(data):
        piece = data[at : at + _PIECE]
        text, used = codecs.utf_8_decode(piece, _MARK_EACH, at + _PIECE >= len(data))
        piece[:used] = text.encode()
        at += used


def _mark_each(error: UnicodeError) -> tuple[str, int]:
    """Put a mark in place of what `errors='replace'` makes one U+FFFD of."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - nothing is encoded with this handler
    return _MARKS[error.end - error.start - 1], error.end


_MARKS = ("\x7f", "\x80", "\ufffd")
"""As long as what they stand for, and nothing that a name or a fact shows as it is."""
_MARK_EACH = "agents9.mark_each"
codecs.register_error(_MARK_EACH, _mark_each)


def _flatten(data: bytearray) -> None:
    """Put a 0 and blanks in place of every value that lies too deep."""
    depth = 0
    view = memoryview(data)
    for token in _TOKEN.finditer(data):
        start = token.start()
        if data[start] in b"{[":
            depth += 1
            if depth == _DEPTH:
                begin = start
        elif data[start] in b"}]":
            if depth == _DEPTH:
                view[begin : start + 1] = b"0".ljust(start + 1 - begin)
            depth -= 1


def _relocated(messages: list[Message], mended: bytes, data: bytes) -> list[Message]:
    """Take each part from *data* instead of from *mended*, at the same place."""
    after = 0
    view = memoryview(data)
    moved = []
    for message in messages:
        parts = []
        for part in message.parts:
            if part.how != LITERAL:
                at = find_part(mended, raw_bytes(part), after)
                after = at + len(memoryview(raw_bytes(part)))
                part = Part(part.how, msgspec.Raw(view[at:after]))
            parts.append(part)
        moved.append(msgspec.structs.replace(message, parts=parts))
    return moved


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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_USUAL = re.compile("(?:19[7-9][0-9]|20[0-9]{2})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z")
_MAX_MINUTES = 1000
_minutes: dict[str, int] = {}
_seconds: dict[str, int] = {}
_milliseconds: dict[str, int] = {}
"""The parts of usual times that were read: the same minutes, seconds and milliseconds come again. Usual are
those of which every other in the same minute can be told too."""


def time_ns(stamp: str) -> int | None:
    """Return an ISO 8601 time in nanoseconds since 1970; without a zone it is UTC.

    None where it is unreadable, or beyond the 64 bits that hold it (years 1678 to 2262).
    """
    try:
        return _minutes[stamp[:17]] + _seconds[stamp[17:20]] + _milliseconds[stamp[20:]]
    except KeyError:
        return _parsed_ns(stamp)


def _parsed_ns(stamp: str) -> int | None:
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    nanoseconds = (since.days * 86400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    if not -(1 << 63) <= nanoseconds < 1 << 63:
        return None
    if _USUAL.fullmatch(stamp):
        _remember(stamp, nanoseconds)
    return nanoseconds


def _remember(stamp: str, nanoseconds: int) -> None:
    if len(_minutes) >= _MAX_MINUTES:
        _minutes.clear()
    second, millisecond = int(stamp[17:19]) * 1_000_000_000, int(stamp[20:23]) * 1_000_000
    _minutes[stamp[:17]] = nanoseconds - second - millisecond
    _seconds[stamp[17:20]] = second
    _milliseconds[stamp[20:]] = millisecond


class ChatFormat(NamedTuple):
    """How the transcripts of a harness are read."""

    read: ChatDecoder
    titles: tuple[str, ...] = ()
    """The facts that may be the title, the best first."""
