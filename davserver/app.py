"""The WSGI application: the tree over HTTP and WebDAV, read-only.

    __call__ → guard: who, under which name, from which site
             → METHODS → target: the names, decoded once → walk
             → content (files) | listing, page (collections) | asked, follow, search (chats) | propfind

Answers GET, HEAD, OPTIONS and PROPFIND; all else is 405. What the tree raises becomes a status by the one
table `answer.STATUS`; anything that is neither a TreeError nor a Refusal is a bug, logged and a plain 500.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents9core.errors import NotADirectory, NotFound, TooLarge, TreeError
from agents9core.node import Chat, Directory, File, Messages, Node, Row
from davserver.auth.guard import Guard
from davserver.handlers.file import file_answer
from davserver.handlers.follow import EVENTS, Followers, Look
from davserver.handlers.listing import JSON, listing_answer, message_objects, messages_answer, objects
from davserver.handlers.page import PREFIX, Page, installed_directory
from davserver.handlers.pieces import Pieces
from davserver.handlers.propfind import propfind
from davserver.handlers.search import Searches
from davserver.http.accept import preferred
from davserver.http.chat_query import Asked, next_link, parse_asked, resumed, transcript_header
from davserver.http.conditional import Validators, failed_precondition
from davserver.http.environ import PEER, WAKE
from davserver.http.response import STATUS, STATUS_LINES, Answer, Later, Refusal, begun, text_answer
from davserver.http.target import Target, parse_target, split_absolute

if TYPE_CHECKING:
    from wsgiref.types import StartResponse

    from davserver.auth.passwords import Passwords

logger = logging.getLogger(__name__)

HTML = "text/html"
_FORMS = ("text/plain", JSON, HTML)
"""The forms of a listing, the one for curl first; a chat has EVENTS too."""

ALLOW = ("Allow", "GET, HEAD, OPTIONS, PROPFIND")
_CLASSES = ("DAV", "1")
_VARY = ("Vary", "Accept")


class App:
    """Serves the tree below *root*.

    *hosts* are names of this server that clients may use, *passwords* lets in whom the listener does not
    know (see `guard`).
    """

    def __init__(
        self, root: Directory, hosts: Iterable[str] = (), passwords: "Passwords | None" = None
    ) -> None:
        self._root = root
        self._guard = Guard(hosts, passwords)
        self._page = Page(installed_directory())
        self._pieces = Pieces()
        self._followers = Followers()
        self._searches = Searches()
        self._methods: dict[str, Callable[[str, dict[str, Any]], Answer | Later]] = {
            "GET": self._get,
            "HEAD": self._get,
            "OPTIONS": self._options,
            "PROPFIND": self._propfind,
        }

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        try:
            with self._root.one_request():
                answer = self._answer(environ)
        except Exception as exc:  # noqa: BLE001 - it is logged unless it is an answer
            answer = _failure(exc, environ)
        if not isinstance(answer, Answer):
            return _late(answer, environ, start_response)
        start_response(STATUS_LINES[answer.status], answer.headers)
        return () if environ["REQUEST_METHOD"] == "HEAD" else answer.body

    def _answer(self, environ: dict[str, Any]) -> Answer | Later:
        authority, origin_form = split_absolute(environ["REQUEST_URI"])
        self._guard.check(environ, authority)
        method = self._methods.get(environ["REQUEST_METHOD"])
        if method is None:
            raise Refusal(405, "This tree is only read", ALLOW)
        return method(origin_form, environ)

    def _get(self, origin_form: str, environ: dict[str, Any]) -> Answer | Later:
        target = parse_target(origin_form)
        if target.names[:1] == (PREFIX,):
            return self._page.asset(target, environ)
        try:
            node = self._walk(target)
        except TreeError as exc:
            if STATUS[exc.errno] == 404 and preferred(environ.get("HTTP_ACCEPT"), _FORMS) == HTML:
                return self._page.index(404)
            raise
        if isinstance(node, Directory):
            return self._collection(node, target, environ)
        return file_answer(cast(File, node), environ)

    def _collection(self, directory: Directory, target: Target, environ: dict[str, Any]) -> Answer | Later:
        forms = (*_FORMS, EVENTS) if isinstance(directory, Chat) else _FORMS
        form = preferred(environ.get("HTTP_ACCEPT"), forms)
        failed = failed_precondition(environ, Validators(None, None))
        if failed == 304:  # "If-None-Match: *"; a listing has no tag that could match
            return Answer(304, [_VARY])
        if failed is not None:
            return text_answer(failed, "It is not what the precondition asks for", _VARY)
        if form == HTML:
            directory.stat()
            return self._page.index()
        if isinstance(directory, Chat):
            return self._chat(directory, target, environ, form)
        return listing_answer(directory.members(), target.href, form, objects)

    def _chat(self, chat: Chat, target: Target, environ: dict[str, Any], form: str) -> Answer | Later:
        asked = parse_asked(target.query)
        is_get = environ["REQUEST_METHOD"] == "GET"
        if asked.text is not None and is_get:
            found = partial(_found_answer, target.href, form, asked)
            return self._searches.search(self._look(target), asked, environ[PEER], found)
        if form == EVENTS:
            return self._events(chat, target, environ, asked)
        if asked.wait and is_get:
            listed = partial(self._messages_answer, target.href, form)
            return self._followers.long_poll(self._look(target), asked, environ[WAKE], listed)
        rows = chat.members()
        return self._messages_answer(target.href, form, rows, asked.first(rows))

    def _messages_answer(self, href: str, form: str, rows: Messages, first: int) -> Answer:
        return messages_answer(rows, href, form, first, self._pieces, transcript_header(rows))

    def _events(self, chat: Chat, target: Target, environ: dict[str, Any], asked: Asked) -> Answer:
        asked = resumed(asked, environ.get("HTTP_LAST_EVENT_ID"))
        headers = [_VARY, ("Content-Type", EVENTS), transcript_header(chat.members())]
        if environ["REQUEST_METHOD"] == "HEAD":
            return Answer(200, headers)
        events = self._followers.events(self._look(target), asked, environ[WAKE], target.href + "/")
        return Answer(200, headers, begun(events))

    def _look(self, target: Target) -> Look:
        """Return what walks to the chat at *target* again."""

        @contextmanager
        def look() -> Iterator[tuple[Chat, Messages]]:
            with self._root.one_request():
                chat = self._walk(target)
                if not isinstance(chat, Chat):
                    raise NotFound(chat.name)
                yield chat, chat.members()

        return look

    def _options(self, origin_form: str, environ: dict[str, Any]) -> Answer:
        if origin_form != "*":
            self._walk(parse_target(origin_form))
        return Answer(200, [ALLOW, _CLASSES, ("MS-Author-Via", "DAV"), ("Content-Length", "0")])

    def _propfind(self, origin_form: str, environ: dict[str, Any]) -> Answer:
        target = parse_target(origin_form)
        return propfind(self._walk(target), target.href, environ, self._pieces)

    def _walk(self, target: Target) -> Node:
        """Return the node that *target* points at. Raises TreeError; a file has no slash after it."""
        node: Node = self._root
        for name in target.names:
            if not isinstance(node, Directory):
                raise NotADirectory(name)
            node = node.walk(name)
        if target.slash and not isinstance(node, Directory):
            raise NotADirectory(node.name)
        return node


def _found_answer(
    href: str, form: str, asked: Asked, rows: Messages, found: Sequence[Row], is_more: bool
) -> Answer:
    headers = [transcript_header(rows)]
    if is_more:
        headers.append(next_link(href, asked, rows.transcript, found[-1]))
    return listing_answer(found, href, form, message_objects, *headers)


def _failure(exc: Exception, environ: dict[str, Any]) -> Answer:
    """Return what is answered instead of an answer that failed."""
    if isinstance(exc, Refusal):
        return exc.answer
    if isinstance(exc, TreeError):
        said = str(exc) if isinstance(exc, TooLarge) else STATUS_LINES[STATUS[exc.errno]]
        return text_answer(STATUS[exc.errno], said)
    logger.error("cannot answer %s %r", environ["REQUEST_METHOD"], environ["REQUEST_URI"], exc_info=exc)
    return text_answer(500, STATUS_LINES[500])


def _late(later: Later, environ: dict[str, Any], start_response: "StartResponse") -> Iterator[bytes]:
    """Begin the response when its answer has come."""
    try:
        answer = yield from later
    except Exception as exc:  # noqa: BLE001 - it is logged unless it is an answer
        answer = _failure(exc, environ)
    start_response(STATUS_LINES[answer.status], answer.headers)
    yield from answer.body
