"""Rows of a listing as DAV:response elements, written by a template for the properties that were asked.

Pure. Source: RFC 4918 sections 14.24 and 15. A template is made once a request; a row then costs one `%` of
strings that are all escaped already. Every template takes the same fields in the same order and drops those
it does not show with `%.0s`.
"""

import html
import re
from collections.abc import Callable, Iterable

from agents9core.node import Row
from davserver.dates import http_date, modified_seconds
from davserver.rows import PLAIN_NAME
from davserver.target import quoted

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'

_FIELDS = ("displayname", "getcontentlength", "getlastmodified", "getetag", "getcontenttype")
"""In the order in which a template takes them, after the href."""
_OF_FILES_ONLY = {"getcontentlength", "getetag", "getcontenttype"}
LIVE = ("{DAV:}resourcetype", *(f"{{DAV:}}{name}" for name in _FIELDS))
"""Every property that a node of the tree can have, as Clark names."""

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

MediaTypeOf = Callable[[str], str | None]


class Template:
    """Writes the responses for one set of asked properties."""

    def __init__(self, names: tuple[str, ...] | None, values: bool = True) -> None:
        self._file = _response(names, values, is_dir=False)
        self._directory = _response(names, values, is_dir=True)
        self.wants_media_type = values and (names is None or "{DAV:}getcontenttype" in names)

    def response(self, href: str, row: Row, media_type: str, now: int) -> bytes:
        """Return the response of one row, whose whole *href* is given."""
        name, stat = row
        modified = http_date(modified_seconds(stat.mtime_ns, now))
        fields = (href, _text(name), stat.length, modified, stat.etag, _text(media_type))
        return ((self._directory if stat.is_dir else self._file) % fields).encode()

    def responses(self, base: str, rows: Iterable[Row], media_type_of: MediaTypeOf | None, now: int) -> bytes:
        """Return the responses of members of the collection at *base*; one that has gone has none."""
        file, directory = self._file, self._directory
        written = []
        for name, (path, version, is_dir, length, mtime_ns) in rows:
            plain = PLAIN_NAME(name)
            href = base + (name if plain else quoted(name))
            shown = name if plain else _text(name)
            date = http_date(modified_seconds(mtime_ns, now))
            if is_dir:
                written.append(directory % (href + "/", shown, "", date, "", ""))
                continue
            media_type = media_type_of(name) if media_type_of else ""
            if media_type is not None:
                etag = f"{path:x}-{version:x}"
                written.append(file % (href, shown, length, date, etag, _text(media_type)))
        return "".join(written).encode()


def _text(text: str) -> str:
    """Return *text* as XML character data; what XML 1.0 cannot hold is U+FFFD."""
    return text if PLAIN_NAME(text) else html.escape(_NOT_XML.sub("\ufffd", text))


def _response(names: tuple[str, ...] | None, values: bool, *, is_dir: bool) -> str:
    """Return the template of one response, for files or for directories."""
    live = [name for name in LIVE if not (is_dir and _local(name) in _OF_FILES_ONLY)]
    asked = live if names is None else names
    shown = {_local(name) for name in asked if name in live}
    found = _resource_type(is_dir, values) if "resourcetype" in shown else ""
    for field in _FIELDS:
        found += _field(field, values) if field in shown else "%.0s"
    missing = "".join(_empty(name) for name in asked if name not in live)
    propstats = _propstat(found, "200 OK") if shown or not missing else found
    if missing:
        propstats += _propstat(missing, "404 Not Found")
    return f"<D:response><D:href>%s</D:href>{propstats}</D:response>\n"


def _resource_type(is_dir: bool, values: bool) -> str:
    if is_dir and values:
        return "<D:resourcetype><D:collection/></D:resourcetype>"
    return "<D:resourcetype/>"


def _field(field: str, values: bool) -> str:
    if not values:
        return f"<D:{field}/>%.0s"
    return f'<D:{field}>"%s"</D:{field}>' if field == "getetag" else f"<D:{field}>%s</D:{field}>"


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
        element = f'<x:{local} xmlns:x="{html.escape(namespace[1:])}"/>'
    else:
        element = f"<{local}/>"
    return element.replace("%", "%%")
