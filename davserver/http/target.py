"""The request target: which names it walks through, decoded once.

Pure. Source: RFC 9112 section 3.2, RFC 3986 section 2.4. The target is split before it is decoded, so
`%2F` inside a name never separates and `%3F` never begins a query. Raises HTTPError: 400 for what is no
URL, 404 for names that no tree has.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from davserver.http.response import HTTPError

_ABSOLUTE = r"https?://((?:\[[^][/?#]*\])?[^][/?#]*)((?:[/?#].*)?)"
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NEVER_A_NAME = {".", ".."}


class Target(NamedTuple):
    """Where a request points."""

    names: tuple[str, ...]
    """The names from the root, decoded; () is the root."""
    slash: bool
    """Whether it ends in a slash, as only a collection may."""
    query: str
    """What follows the `?`, not decoded; "" where there is none."""

    @property
    def href(self) -> str:
        """The path again in our spelling, without a slash at the end; "" for the root."""
        return "".join("/" + quoted(name) for name in self.names)


def quoted(name: str) -> str:
    """Return a name as a path segment. Sub-delims stay raw: gvfs compares hrefs with what it sent."""
    return quote(name, safe="!*'(),$-_.~", errors="replace")


def split_absolute(raw: str) -> tuple[str | None, str]:
    """Return the authority that an absolute-form target names, else None, and its origin-form."""
    if not raw.startswith("/") and (match := re.fullmatch(_ABSOLUTE, raw, re.IGNORECASE | re.DOTALL)):
        authority, path = match.groups()
        return authority, path if path.startswith("/") else "/" + path
    return None, raw


def parse_target(origin_form: str) -> Target:
    """Return what an origin-form target points at."""
    path, _, query = origin_form.partition("?")
    if not path.startswith("/") or "#" in origin_form or "\0" in path or not path.isascii():
        raise HTTPError(400, "The request target is not a path")
    slash = path.endswith("/")
    names = [name for name in path.split("/") if name]  # slashes that scripts double mean one
    if "%" in path:
        names = [_decoded(name) for name in names]
    if not _NEVER_A_NAME.isdisjoint(names):
        raise HTTPError(404)
    return Target(tuple(names), slash, query)


def _decoded(segment: str) -> str:
    if _BROKEN_ESCAPE.search(segment):
        raise HTTPError(400, "A % in the path is not followed by two hexadecimal digits")
    try:
        name = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as exc:
        raise HTTPError(400, "The path is not UTF-8") from exc
    if "\0" in name:
        raise HTTPError(400, "The path holds a NUL")
    if "/" in name:
        raise HTTPError(404)
    return name
