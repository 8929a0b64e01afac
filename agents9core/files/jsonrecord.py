"""JSON objects of the harnesses' own records and the text in them. Pure."""

import json

import orjson

LONGEST_FIELD = 4096
"""Characters of a field that are read; no path is longer."""


def parse_object(data: bytes, *, first: bool = False) -> dict[str, object] | None:
    """Return the JSON object that *data* is, None where it is anything else. Bad UTF-8 becomes U+FFFD.

    *first*: the object that it begins with, whatever comes after.
    """
    text = data.decode("utf-8", "replace").lstrip("\ufeff\0 \t\r\n")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = _parse_tolerantly(text, first)
    return value if isinstance(value, dict) else None


def _parse_tolerantly(text: str, first: bool) -> object:
    """Parse what orjson refuses: lone surrogates, NaN, and what comes after an object; None for the rest."""
    try:
        return json.JSONDecoder().raw_decode(text)[0] if first else json.loads(text)
    except (ValueError, RecursionError):
        return None


def text_of(record: dict[str, object], name: str) -> str | None:
    """Return a field that is text and not empty, cut as facts are; lone surrogates become U+FFFD."""
    value = record.get(name)
    if not isinstance(value, str) or not value:
        return None
    return value[:LONGEST_FIELD].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
