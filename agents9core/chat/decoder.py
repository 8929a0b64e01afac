"""From a line of a transcript to its records: what the decoders of all harnesses share. Pure: no files.

A harness gives a `RecordDecoder`. `find_records` finds the objects on a line, also on a damaged one: a BOM,
NULs and blanks before an object are skipped, glued objects are read one after the other, and what a strict
parser refuses is mended (`repair`) and tried once more before it counts as skipped.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw

from agents9core.chat.records import Extracted, ObjectDecoder, Record, Span
from agents9core.chat.repair import TOKEN, read_mended

_OPEN, _CLOSE = b"{}"


class Found(NamedTuple):
    """One object on a line: where it stands in the line, and its record."""

    start: int
    end: int
    record: Record


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
    for token in TOKEN.finditer(line, start):
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


class ChatFormat(NamedTuple):
    """How the transcripts of a harness are read."""

    read: ChatDecoder
    titles: tuple[str, ...] = ()
    """The facts that may be the title, the best first."""


S = TypeVar("S", bound=msgspec.Struct)


_fields_of = msgspec.json.Decoder(dict[str, Raw]).decode


def lenient_decoder(struct: type[S]) -> Callable[[bytes | Raw], S]:
    """Return a decoder of *struct*. It raises DecodeError, or RecursionError, for what is no JSON object."""
    strict = msgspec.json.Decoder(struct).decode
    fields = {
        field.encode_name: (field.name, _value_decoder(field.type))
        for field in msgspec.structs.fields(struct)
    }

    def decode(data: bytes | Raw) -> S:
        try:
            return strict(data)
        except msgspec.ValidationError:
            return struct(**_taken_singly(_fields_of(data), fields))

    return decode


def _taken_singly(
    found: dict[str, Raw], fields: dict[str, tuple[str, Callable[[Raw], Any]]]
) -> dict[str, Any]:
    taken = {}
    for key, value in found.items():
        if key in fields:
            name, decode = fields[key]
            try:
                taken[name] = decode(value)
            except msgspec.ValidationError:
                continue
    return taken


def _value_decoder(kind: Any) -> Callable[[Raw], Any]:  # noqa: ANN401 - any annotation of a field
    """Return a decoder of a field's type; of a struct (or a struct or null) a lenient one."""
    for option in (kind, *get_args(kind)):
        struct = get_origin(option) or option
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct):
            return lenient_decoder(option)
    return msgspec.json.Decoder(kind).decode
