"""Layouts: how a 9P message or record lies in bytes. Pure: no sockets, no nodes.

A message is a NamedTuple (made twice as fast as a frozen dataclass) whose field order is its wire layout;
`@message` compiles that layout once into a `Codec`. Runs of fixed-size fields become one precompiled
`struct.Struct`, and a message with nothing else is packed and unpacked by a single call: this is the hot
path of the front end. Source: intro(5) of Plan 9's manual; all integers are little-endian.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

from davserver.ninep.errors import IllegalName, ProtocolError

HEADER_BYTES = 7
"""size[4] type[1] tag[2], which every message has."""
MAX_WALK = 16
"""MAXWELEM: the most names in one Twalk (walk(5))."""
QID_BYTES = 13

Buffer = bytes | bytearray


class NinepMessage(Protocol):
    """What all messages have."""

    @property
    def tag(self) -> int:
        """The client's name for the request, repeated in the reply: 0 to 0xffff."""
        ...


M = TypeVar("M", bound=NinepMessage)
R = TypeVar("R")


class Field(NamedTuple):
    """One part of a layout."""

    take: Callable[[Buffer, int, int, list[Any]], int]
    """(buffer, at, end, values): append the values that lie at *at*, return where the next part begins."""
    give: Callable[[Sequence[Any], list[bytes]], None]
    """(values, parts): append the bytes of *values*."""


class Codec(NamedTuple):
    """The compiled layout of one message."""

    number: int
    decode: Callable[[Buffer, int, int], Any]
    """(buffer, start, end) of a whole frame, size[4] included. Raises ProtocolError."""
    encode: Callable[[Any], bytes]


CODECS: dict[type[Any], Codec] = {}

SIZE = struct.Struct("<I")
"""What a message begins with: its length in bytes, these four included."""

_U16 = struct.Struct("<H")
_PREFIX = struct.Struct("<IB")


def _short() -> ProtocolError:
    return ProtocolError("a field runs past the end of its message")


def _fixed(codes: str) -> Field:
    """Return the part that is a run of fields of fixed size."""
    layout = struct.Struct("<" + codes)
    size, unpack, pack = layout.size, layout.unpack_from, layout.pack

    def take(buffer: Buffer, at: int, end: int, values: list[Any]) -> int:
        if at + size > end:
            raise _short()
        values += unpack(buffer, at)
        return at + size

    def give(values: Sequence[Any], parts: list[bytes]) -> None:
        parts.append(pack(*values))

    return Field(take, give)


def _counted(count: struct.Struct) -> Field:
    """Return the part that is a count and as many bytes."""

    def take(buffer: Buffer, at: int, end: int, values: list[Any]) -> int:
        start = at + count.size
        if start > end:
            raise _short()
        after: int = start + count.unpack_from(buffer, at)[0]
        if after > end:
            raise _short()
        values.append(bytes(buffer[start:after]))
        return after

    def give(values: Sequence[Any], parts: list[bytes]) -> None:
        parts += (count.pack(len(values[0])), values[0])

    return Field(take, give)


def _text(buffer: Buffer, at: int, end: int, refusal: type[ProtocolError]) -> tuple[str, int]:
    """Return the string at *at*, and where it ends; raises *refusal* where it is not UTF-8."""
    start = at + 2
    if start > end:
        raise _short()
    after = start + buffer[at] + (buffer[at + 1] << 8)
    if after > end:
        raise _short()
    try:
        return buffer[start:after].decode(), after
    except UnicodeDecodeError as exc:
        raise refusal("a string is not UTF-8") from exc


def _take_string(buffer: Buffer, at: int, end: int, values: list[Any]) -> int:
    text, after = _text(buffer, at, end, ProtocolError)
    values.append(text)
    return after


def _give_string(values: Sequence[Any], parts: list[bytes]) -> None:
    raw = values[0].encode()
    parts += (_U16.pack(len(raw)), raw)


def _take_name(buffer: Buffer, at: int, end: int, values: list[Any]) -> int:
    name, after = _text(buffer, at, end, IllegalName)
    if name in ("", ".") or "/" in name or "\0" in name:
        raise IllegalName(repr(name))
    values.append(name)
    return after


def _count(buffer: Buffer, at: int, end: int) -> int:
    """Return the number of elements that follow at *at* + 2."""
    if at + 2 > end:
        raise _short()
    count: int = _U16.unpack_from(buffer, at)[0]
    if count > MAX_WALK:
        raise ProtocolError(f"{count} elements in one walk")
    return count


def _take_names(buffer: Buffer, at: int, end: int, values: list[Any]) -> int:
    names: list[str] = []
    count = _count(buffer, at, end)
    at += 2
    for _ in range(count):
        at = _take_name(buffer, at, end, names)
    values.append(tuple(names))
    return at


def _give_names(values: Sequence[Any], parts: list[bytes]) -> None:
    parts.append(_U16.pack(len(values[0])))
    for name in values[0]:
        _give_string((name,), parts)


def _take_qids(buffer: Buffer, at: int, end: int, values: list[Any]) -> int:
    start = at + 2
    after = start + _count(buffer, at, end) * QID_BYTES
    if after > end:
        raise _short()
    values.append(tuple(bytes(buffer[i : i + QID_BYTES]) for i in range(start, after, QID_BYTES)))
    return after


def _give_qids(values: Sequence[Any], parts: list[bytes]) -> None:
    parts.append(_U16.pack(len(values[0])))
    parts += values[0]


# The types of fields. A string as the metadata is a `struct` code, anything else a Field of varying size.
U8 = Annotated[int, "B"]
U16 = Annotated[int, "H"]
U32 = Annotated[int, "I"]
U64 = Annotated[int, "Q"]
QidBytes = Annotated[bytes, f"{QID_BYTES}s"]
"""type[1] version[4] path[8], kept packed: a reply only passes it on."""
String = Annotated[str, Field(_take_string, _give_string)]
Name = Annotated[str, Field(_take_name, _give_string)]
"""A path element: not empty, no `/`, no NUL, not `.`."""
Names = Annotated[tuple[str, ...], Field(_take_names, _give_names)]
Qids = Annotated[tuple[bytes, ...], Field(_take_qids, _give_qids)]
Data = Annotated[bytes, _counted(SIZE)]
StatData = Annotated[bytes, _counted(_U16)]


class _Part(NamedTuple):
    first: int
    last: int
    field: Field


def _codes(cls: type[Any]) -> list[str | Field]:
    """Return the kind of each field of *cls*, in order."""
    return [cls.__annotations__[name].__metadata__[0] for name in cls._fields]


def _parts(codes: list[str | Field]) -> list[_Part]:
    """Join neighbours of fixed size into one part each."""
    parts = []
    run: list[str] = []
    for index, code in enumerate(codes):
        if isinstance(code, str):
            run.append(code)
            continue
        if run:
            parts.append(_Part(index - len(run), index, _fixed("".join(run))))
            run = []
        parts.append(_Part(index, index + 1, code))
    if run:
        parts.append(_Part(len(codes) - len(run), len(codes), _fixed("".join(run))))
    return parts


def _fixed_codec(cls: type[Any], number: int, codes: str) -> Codec:
    layout = struct.Struct("<IB" + codes)
    unpack = struct.Struct("<5x" + codes).unpack_from
    size, pack, make = layout.size, layout.pack, cls._make

    def decode(buffer: Buffer, start: int, end: int) -> Any:  # noqa: ANN401 - an instance of cls
        if end - start != size:
            raise ProtocolError(f"{end - start} bytes where {cls.__name__} has {size}")
        return make(unpack(buffer, start))

    def encode(message: Any) -> bytes:  # noqa: ANN401 - an instance of cls
        return pack(size, number, *message)

    return Codec(number, decode, encode)


def _varying_codec(cls: type[Any], number: int, parts: list[_Part]) -> Codec:
    takes, make = [part.field.take for part in parts], cls._make

    def decode(buffer: Buffer, start: int, end: int) -> Any:  # noqa: ANN401 - an instance of cls
        values: list[Any] = []
        at = start + 5
        for take in takes:
            at = take(buffer, at, end, values)
        if at != end:
            raise ProtocolError(f"{end - at} bytes after the end of {cls.__name__}")
        return make(values)

    def encode(message: Any) -> bytes:  # noqa: ANN401 - an instance of cls
        segments = [b""]
        for first, last, field in parts:
            field.give(message[first:last], segments)
        segments[0] = _PREFIX.pack(5 + sum(map(len, segments)), number)
        return b"".join(segments)

    return Codec(number, decode, encode)


def message(number: int) -> Callable[[type[M]], type[M]]:
    """Register a message of type *number*, and compile its layout."""

    def register(cls: type[M]) -> type[M]:
        codes = _codes(cls)
        fixed = [code for code in codes if isinstance(code, str)]
        if len(fixed) == len(codes):
            CODECS[cls] = _fixed_codec(cls, number, "".join(fixed))
        else:
            CODECS[cls] = _varying_codec(cls, number, _parts(codes))
        return cls

    return register


def encode(message: NinepMessage) -> bytes:
    """Return the whole frame of *message*."""
    return CODECS[type(message)].encode(message)


def decode(cls: type[M], frame: Buffer) -> M:
    """Return the message of type *cls* that *frame* is. Raises ProtocolError."""
    decoded: M = CODECS[cls].decode(frame, 0, len(frame))
    return decoded


def describe(message: NinepMessage) -> str:
    """Return *message* on one line for a log: bytes of files are only counted."""
    values: Any = message
    shown = map(_shown, values._fields, values)
    return " ".join([type(message).__name__, *shown])


def _shown(name: str, value: Any) -> str:  # noqa: ANN401 - a value of any field
    if name == "qid":
        return f"qid={value.hex()}"
    if name == "wqid":
        return f"wqid=[{' '.join(one.hex() for one in value)}]"
    return f"{name}[{len(value)}]" if isinstance(value, bytes) else f"{name}={value!r}"
