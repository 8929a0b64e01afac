"""Typed records from bytes that nobody promised to be of that type.

A decoder made here gives a struct in one pass where every field is of its type. Where one is not, the
fields are taken one by one, and an odd one is as if it were absent: it costs itself only. Pure.
"""

from collections.abc import Callable
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Raw

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
