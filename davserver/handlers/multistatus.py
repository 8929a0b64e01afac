"""Rows of a listing as DAV:response elements, written by a template for the properties that were asked.

Pure. Source: RFC 4918 sections 14.24 and 15. A template is made once a request; a row then costs one `%` of
strings that are all escaped already.
"""

import re
from collections.abc import Callable, Iterable

from agents9core.node import ROW_COLUMNS, Columns, File, Row, Stat
from davserver.handlers.rows import PLAIN_NAME
from davserver.http.dates import http_date, http_dates, modified_seconds
from davserver.http.target import quoted

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'

_FIELDS = ("displayname", "getcontentlength", "getlastmodified", "getetag", "getcontenttype")
"""Named so in a template, as `href` is."""
_OF_FILES_ONLY = {"getcontentlength", "getetag", "getcontenttype"}
LIVE = ("{DAV:}resourcetype", *(f"{{DAV:}}{name}" for name in _FIELDS))
"""Every property that a node of the tree can have, as Clark names."""

_NOT_XML = [*range(0x09), *range(0x0B, 0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
_ESCAPED = dict.fromkeys(_NOT_XML, "\ufffd") | str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
)

LONGEST_NAMES = 8192
"""Characters of the names that are asked for, namespaces included: each of many responses has them."""

MediaTypeOf = Callable[[str], str]


class TooLong(Exception):
    """The names of the properties are too long to be repeated in each response."""


class Template:
    """Writes the responses for one set of asked properties."""

    def __init__(self, names: tuple[str, ...] | None, values: bool = True) -> None:
        """Raises TooLong."""
        if names is not None and sum(map(len, names)) > LONGEST_NAMES:
            raise TooLong
        self._file = _response(names, values, is_dir=False)
        self._directory = _response(names, values, is_dir=True)
        self.wants_media_type = values and (names is None or "{DAV:}getcontenttype" in names)

    def response(self, href: str, row: Row, media_type: str, now: int) -> bytes:
        """Return the response of one row, whose whole *href* is given."""
        return self._response(href, row, media_type, now).encode()

    def responses(self, base: str, rows: Columns, media_type_of: MediaTypeOf | None, now: int) -> bytes:
        """Return the responses of members of the collection at *base*."""
        written = []
        for name, *values in zip(*rows[:ROW_COLUMNS], strict=True):
            stat = Stat(*values)
            href = base + quoted(name) + ("/" if stat.is_dir else "")
            media_type = media_type_of(name) if media_type_of and not stat.is_dir else ""
            written.append(self._response(href, Row(name, stat), media_type, now))
        return "".join(written).encode()

    def of_messages(self, base: str) -> "MessageTemplate":
        """Return what writes the responses of messages of the chat at *base*."""
        return MessageTemplate(self._file, base)

    def _response(self, href: str, row: Row, media_type: str, now: int) -> str:
        name, stat = row
        return (self._directory if stat.is_dir else self._file) % {
            "href": href,
            "displayname": _text(name),
            "getcontentlength": stat.length,
            "getlastmodified": http_date(modified_seconds(stat.mtime_ns, now)),
            "getetag": stat.etag,
            "getcontenttype": _text(media_type),
        }


class MessageTemplate:
    """Writes the responses of messages, of which there are thousands: files of text with plain names."""

    def __init__(self, response: str, base: str) -> None:
        self._fields: list[str] = []
        """What *text* takes, in this order."""
        self._base = base.replace("%", "%%")
        self.text = _FIELD.sub(self._placed, response)

    def _placed(self, field: re.Match[str]) -> str:
        if field[1] is None:
            return field[0]  # a % that was asked for
        if field[1] == "getcontenttype":
            return _text(File.media_type)
        self._fields.append(field[1])
        return f"{self._base}%s" if field[1] == "href" else "%s"

    def responses(self, rows: Columns, now: int) -> bytes:
        """Return the responses of *rows*."""
        values = [_MESSAGE_VALUES[field](rows, now) for field in self._fields]
        return "".join(map(self.text.__mod__, zip(*values, strict=True))).encode()


_FIELD = re.compile(r"%%|%\((\w+)\)s")
_MESSAGE_VALUES: dict[str, Callable[[Columns, int], Iterable[object]]] = {
    "href": lambda rows, _: rows.names,
    "displayname": lambda rows, _: rows.names,
    "getcontentlength": lambda rows, _: rows.lengths,
    "getlastmodified": lambda rows, now: http_dates(rows.mtimes_ns, now),
    "getetag": lambda rows, _: map("{:x}-{:x}".format, rows.paths, rows.versions),
}


def _text(text: str) -> str:
    """Return *text* as XML character data; what XML 1.0 cannot hold is U+FFFD."""
    return text if PLAIN_NAME(text) else text.translate(_ESCAPED)


def _response(names: tuple[str, ...] | None, values: bool, *, is_dir: bool) -> str:
    """Return the template of one response, for files or for directories."""
    live = [name for name in LIVE if not (is_dir and _local(name) in _OF_FILES_ONLY)]
    asked = live if names is None else names
    shown = {_local(name) for name in asked if name in live}
    found = _resource_type(is_dir, values) if "resourcetype" in shown else ""
    for field in _FIELDS:
        found += _field(field, values) if field in shown else ""
    missing = "".join(_empty(name) for name in asked if name not in live)
    propstats = _propstat(found, "200 OK") if shown or not missing else found
    if missing:
        propstats += _propstat(missing, "404 Not Found")
    return f"<D:response><D:href>%(href)s</D:href>{propstats}</D:response>\n"


def _resource_type(is_dir: bool, values: bool) -> str:
    if is_dir and values:
        return "<D:resourcetype><D:collection/></D:resourcetype>"
    return "<D:resourcetype/>"


def _field(field: str, values: bool) -> str:
    if not values:
        return f"<D:{field}/>"
    value = f'"%({field})s"' if field == "getetag" else f"%({field})s"
    return f"<D:{field}>{value}</D:{field}>"


def _propstat(properties: str, status: str) -> str:
    return f"<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"


def _local(clark: str) -> str:
    return clark.rpartition("}")[2]


def _empty(clark: str) -> str:
    """Return an empty element for a property that was asked for and is not there."""
    namespace, _, local = clark.rpartition("}")
    if namespace == "{DAV:":
        element = f"<D:{local}/>"
    elif namespace:
        element = f'<x:{local} xmlns:x="{_text(namespace[1:])}"/>'
    else:
        element = f"<{local}/>"
    return element.replace("%", "%%")
