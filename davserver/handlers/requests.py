"""GET, HEAD, PROPFIND and OPTIONS of the tree: which handler answers a request.

    get       → target: the names, decoded once → walk
              → file | listing, page (collections) | chat_query, follow, search (chats)
    propfind  → target → walk → propfind

A method returns a response, or one that is still to come; it raises HTTPError for what cannot be served as it
stands and TreeError for what the tree says.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from agents9core.errors import NotADirectory, NotFound, TreeError
from agents9core.node import Chat, Directory, File, Messages, Node, Row
from davserver.handlers.file import file_answer
from davserver.handlers.follow import EVENTS, Followers, Look
from davserver.handlers.listing import (
    JSON,
    FoundMessages,
    listing_answer,
    message_objects,
    messages_answer,
    objects,
)
from davserver.handlers.page import Page, installed_directory
from davserver.handlers.pieces import Pieces
from davserver.handlers.propfind import propfind
from davserver.handlers.search import Searches
from davserver.http.accept import preferred
from davserver.http.chat_query import ChatQuery, next_link, parse_asked, resumed, transcript_header
from davserver.http.conditional import Validators, failed_precondition
from davserver.http.environ import PEER, WAKE, request_uri
from davserver.http.response import STATUS, Later, Response, begun, text_answer
from davserver.http.target import Target, parse_target, split_absolute

HTML = "text/html"
_FORMS = ("text/plain", JSON, HTML)
"""The forms of a listing, the one for curl first; a chat has EVENTS too."""

ALLOW = ("Allow", "GET, HEAD, OPTIONS, PROPFIND")
_CLASSES = ("DAV", "1")
_VARY = ("Vary", "Accept")

Handler = Callable[[dict[str, Any]], Response | Later]


class Handlers:
    """What answers the requests for the tree below *root*, each by its method's name in `by_method`."""

    def __init__(self, root: Directory) -> None:
        self.root = root
        self.page = Page(installed_directory())
        self._segments = Pieces()
        self._followers = Followers()
        self._searches = Searches()
        self.by_method: dict[str, Handler] = {
            "GET": self._get,
            "HEAD": self._get,
            "OPTIONS": self._options,
            "PROPFIND": self._propfind,
        }

    def _get(self, environ: dict[str, Any]) -> Response | Later:
        target = _target(environ)
        try:
            node = self._walk(target)
        except TreeError as exc:
            if STATUS[exc.errno] == 404 and preferred(environ.get("HTTP_ACCEPT"), _FORMS) == HTML:
                return self.page.index(404)
            raise
        if isinstance(node, Directory):
            return self._collection(node, target, environ)
        return file_answer(cast(File, node), environ)

    def _collection(self, directory: Directory, target: Target, environ: dict[str, Any]) -> Response | Later:
        forms = (*_FORMS, EVENTS) if isinstance(directory, Chat) else _FORMS
        form = preferred(environ.get("HTTP_ACCEPT"), forms)
        failed = failed_precondition(environ, Validators(None, None))
        if failed == 304:  # "If-None-Match: *"; a listing has no tag that could match
            return Response(304, [_VARY])
        if failed is not None:
            return text_answer(failed, "It is not what the precondition asks for", _VARY)
        if form == HTML:
            directory.stat()
            return self.page.index()
        if isinstance(directory, Chat):
            return self._chat(directory, target, environ, form)
        return listing_answer(directory.members(), target.href, form, objects)

    def _chat(self, chat: Chat, target: Target, environ: dict[str, Any], form: str) -> Response | Later:
        asked = parse_asked(target.query)
        is_get = environ["REQUEST_METHOD"] == "GET"
        if asked.text is not None and is_get:
            found = partial(_found_answer, target.href, form, asked)
            return self._searches.search(self._look(target), asked, environ.get(PEER, ""), found)
        if form == EVENTS:
            return self._events(chat, target, environ, asked)
        if asked.wait and is_get:
            listed = partial(self._messages_answer, target.href, form)
            return self._followers.long_poll(self._look(target), asked, environ[WAKE], listed)
        rows = chat.members()
        return self._messages_answer(target.href, form, rows, asked.first(rows))

    def _messages_answer(self, href: str, form: str, rows: Messages, first: int) -> Response:
        return messages_answer(rows, href, form, first, self._segments, transcript_header(rows))

    def _events(self, chat: Chat, target: Target, environ: dict[str, Any], asked: ChatQuery) -> Response:
        asked = resumed(asked, environ.get("HTTP_LAST_EVENT_ID"))
        unbuffered = ("X-Accel-Buffering", "no")  # a proxy hands each event on at once
        headers = [_VARY, ("Content-Type", EVENTS), unbuffered, transcript_header(chat.members())]
        if environ["REQUEST_METHOD"] == "HEAD":
            return Response(200, headers)
        events = self._followers.events(self._look(target), asked, environ[WAKE], target.href + "/")
        return Response(200, headers, begun(events))

    def _look(self, target: Target) -> Look:
        """Return what walks to the chat at *target* again."""

        @contextmanager
        def look() -> Iterator[tuple[Chat, Messages]]:
            with self.root.one_request():
                chat = self._walk(target)
                if not isinstance(chat, Chat):
                    raise NotFound(chat.name)
                yield chat, chat.members()

        return look

    def _options(self, environ: dict[str, Any]) -> Response:
        self._walk(_target(environ))
        return Response(200, [ALLOW, _CLASSES, ("MS-Author-Via", "DAV"), ("Content-Length", "0")])

    def _propfind(self, environ: dict[str, Any]) -> Response:
        target = _target(environ)
        return propfind(self._walk(target), target.href, environ, self._segments)

    def _walk(self, target: Target) -> Node:
        """Return the node that *target* points at. Raises TreeError; a file has no slash after it."""
        node = walk(self.root, target.names)
        if target.slash and not isinstance(node, Directory):
            raise NotADirectory(node.name)
        return node


def walk(root: Directory, names: Iterable[str]) -> Node:
    """Return the node at *names* below *root*. Raises TreeError."""
    node: Node = root
    for name in names:
        if not isinstance(node, Directory):
            raise NotADirectory(name)
        node = node.walk(name)
    return node


def _target(environ: dict[str, Any]) -> Target:
    """Return what the request points at. Not PATH_INFO: decoding it has lost `%2F` in a name."""
    _, origin_form = split_absolute(request_uri(environ))
    return parse_target(origin_form)


def _found_answer(
    href: str, form: str, asked: ChatQuery, rows: Messages, found: Sequence[Row], is_more: bool
) -> Response:
    headers = [transcript_header(rows)]
    if is_more:
        headers.append(next_link(href, asked, rows.transcript, found[-1]))
    return listing_answer(FoundMessages(rows, found), href, form, message_objects, *headers)
