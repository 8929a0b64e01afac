"""PROPFIND: what it asks for, and the answer for a node and its members.

Source: RFC 4918 sections 9.1, 14 and 15. Depth 0 and 1 only: a walk of everything has no end here, and
section 9.1 lets a server refuse it with `propfind-finite-depth`.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from agents9core.node import Chat, Directory, File, Node, Row
from davserver.handlers.multistatus import DECLARATION, LIVE, LONGEST_NAMES, Template, TooLong
from davserver.handlers.pieces import Pieces
from davserver.handlers.rows import slices
from davserver.http.environ import MAX_BODY_BYTES, request_uri
from davserver.http.response import XML, HTTPError, Response, begun, whole

_INFINITE = Response(
    *whole(403, XML, f'{DECLARATION}<D:error xmlns:D="DAV:"><D:propfind-finite-depth/></D:error>\n'.encode())
)


class PropfindRequest(NamedTuple):
    """Which properties a body asks for."""

    names: tuple[str, ...] | None
    """Clark names, each once, in the order asked; None is every live property that a node has."""
    values: bool = True
    """False for propname, which wants to know only what there is."""


def propfind(node: Node, href: str, environ: dict[str, Any], pieces: Pieces) -> Response:
    """Answer a PROPFIND of *node*, whose path is *href* without a slash at the end. Raises HTTPError."""
    depth = environ.get("HTTP_DEPTH", "infinity").strip().lower()
    if depth not in ("0", "1", "infinity"):
        raise HTTPError(400, "Depth is 0 or 1 here")
    template = _template(parse_asked(_body(environ)))
    if depth == "infinity" and isinstance(node, Directory):  # a file has nothing below it (section 9.1)
        return _INFINITE
    headers = [("Content-Type", XML)]
    if isinstance(node, Directory) and not request_uri(environ).partition("?")[0].endswith("/"):
        headers.append(("Content-Location", href + "/"))  # section 5.2
    chunks = _multistatus(node, href, template, pieces if depth == "1" else None)
    return Response(207, headers, begun(chunks))


def _body(environ: dict[str, Any]) -> bytes:
    """Return the body; of one that was not called for, as it says that it is too long, nothing has come."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    _check_length(length)
    count = MAX_BODY_BYTES + 1 if environ.get("wsgi.input_terminated") else length
    body: bytes = environ["wsgi.input"].read(count)
    return body


def _check_length(nbytes: int) -> None:
    if nbytes > MAX_BODY_BYTES:
        raise HTTPError(413, "A PROPFIND body may have 64 KiB")


def _template(asked: PropfindRequest) -> Template:
    try:
        return Template(*asked)
    except TooLong as exc:
        raise HTTPError(413, f"The names of properties may have {LONGEST_NAMES} characters") from exc


def parse_asked(body: bytes) -> PropfindRequest:
    """Return what the XML *body* asks for; an empty one asks for everything. Raises HTTPError."""
    _check_length(len(body))
    if not body.strip():
        return PropfindRequest(None)
    root = _parsed(body)
    if root.tag != "{DAV:}propfind":
        raise HTTPError(400, "The body is not a propfind element")
    return _asked_by(root)


def _parsed(body: bytes) -> Element:
    """Parse XML. Raises HTTPError."""
    try:
        root: Element = fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as exc:
        raise HTTPError(400, "The body is not XML without a DTD") from exc
    return root


def _asked_by(root: Element) -> PropfindRequest:
    """Return what a propfind element asks for; elements that are not known do not count (section 17)."""
    kinds = {child.tag: child for child in root if child.tag in _KINDS}
    include = root.find("{DAV:}include")
    if len(kinds) != 1 or (include is not None and "{DAV:}allprop" not in kinds):
        raise HTTPError(400, "A propfind has one of prop, allprop and propname")
    kind, element = kinds.popitem()
    if kind == "{DAV:}propname":
        return PropfindRequest(None, values=False)
    if kind == "{DAV:}prop":
        return PropfindRequest(_tags(element))
    return PropfindRequest(None if include is None else tuple(dict.fromkeys((*LIVE, *_tags(include)))))


_KINDS = {"{DAV:}prop", "{DAV:}allprop", "{DAV:}propname"}


def _tags(element: Element) -> tuple[str, ...]:
    return tuple(dict.fromkeys(child.tag for child in element))


def _multistatus(node: Node, href: str, template: Template, pieces: Pieces | None) -> Iterator[bytes]:
    """Yield the body: the node itself, then, with *pieces*, its members in slices."""
    now = int(time.time())
    itself = Row(node.name, node.stat())
    members: Iterator[bytes] = iter(())
    if pieces and isinstance(node, Directory):
        members = _members(node, href + "/", template, pieces, now)
    own_href = href + ("/" if itself.stat.is_dir else "")
    yield DECLARATION.encode() + b'<D:multistatus xmlns:D="DAV:">\n'
    yield template.response(own_href, itself, _media_type(node), now)
    yield from members
    yield b"</D:multistatus>\n"


def _members(
    directory: Directory, base: str, template: Template, pieces: Pieces, now: int
) -> Iterator[bytes]:
    if isinstance(directory, Chat):
        messages = template.of_messages(base)
        write = partial(messages.responses, now=now)
        return pieces.of(directory.members(), 0, messages.text, write)
    media_type_of = directory.media_type_of if template.wants_media_type else None
    members = slices(directory.members())
    return (template.responses(base, rows, media_type_of, now) for rows in members)


def _media_type(node: Node) -> str:
    return node.media_type if isinstance(node, File) else ""
