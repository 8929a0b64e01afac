"""The WSGI application: a WsgiDAVApp with our provider, and its whole configuration.

    App → ErrorAnswers → GuardMiddleware: who, under which name, from which site
        → PageMiddleware: the files of the page
        → RequestResolver → RequestServer (WsgiDAV) → TreeProvider.custom_request_handler → handlers

WsgiDAV dispatches, refuses what would write, and answers `OPTIONS *`. Plain WSGI (PEP 3333): under another
server than `server.http_server` the environment has to say whom it admits (`http.environ.PEER_ADMITTED`).
"""

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from wsgidav.dav_error import DAVError
from wsgidav.mw.base_mw import BaseMiddleware
from wsgidav.request_resolver import RequestResolver
from wsgidav.wsgidav_app import WsgiDAVApp

from agents9core.node import Directory
from davserver.auth.guard import Guard
from davserver.handlers.page import PREFIX, Page, service_worker_answer
from davserver.handlers.requests import ALLOW, Handlers
from davserver.http.environ import request_uri
from davserver.http.response import STATUS_LINES, Response, text_answer
from davserver.http.target import parse_target, split_absolute
from davserver.http.wsgi import respond, send
from davserver.provider import TreeProvider, failure_answer

if TYPE_CHECKING:
    from wsgiref.types import StartResponse

    from davserver.auth.passwords import Passwords

GUARD = "agents9.guard"
PAGE = "agents9.page"


def configuration(root: Directory, guard: Guard) -> dict[str, Any]:
    """Return what WsgiDAV is told. Beside its own keys there are GUARD and PAGE, for our middlewares."""
    handlers = Handlers(root)
    return {
        "provider_mapping": {"/": TreeProvider(root, handlers)},
        "middleware_stack": [ErrorAnswers, GuardMiddleware, PageMiddleware, RequestResolver],
        "lock_storage": None,  # nothing is written, so nothing is locked
        "property_manager": None,
        "logging": {"enable": False},
        "verbose": 1,
        GUARD: guard,
        PAGE: handlers.page,
    }


class App(WsgiDAVApp):
    """Serves the tree below *root*.

    *hosts* are names of this server that clients may use, *passwords* lets in whom the server does not know
    (see `auth.guard`).
    """

    def __init__(
        self, root: Directory, hosts: Iterable[str] = (), passwords: "Passwords | None" = None
    ) -> None:
        # Its log says of each request what is answered; of a refused one as an error.
        logging.getLogger("wsgidav").setLevel(logging.CRITICAL)
        super().__init__(configuration(root, Guard(hosts, passwords)))
        self._given = {
            "wsgidav.app": self,
            "wsgidav.config": self.config,
            "wsgidav.provider": self.provider_map["/"],
            "wsgidav.verbose": self.verbose,
        }

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request.

        WsgiDAVApp.__call__ without two things: it normalises the path after decoding it, which loses `%2F`
        in a name, and it ends the connection after an answer without Content-Length, as every stream is.
        """
        environ.update(self._given)
        environ.setdefault("PATH_INFO", "")  # which PEP 3333 lets be missing
        response: Iterable[bytes] = self.application(environ, start_response)
        return response


class ErrorAnswers(BaseMiddleware):
    """Answers with what the rest raises, before it has begun: in place of WsgiDAV's ErrorPrinter.

    That one answers in HTML, and makes a body that pauses before its status an error.
    """

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterator[bytes]:
        is_begun = False

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:  # noqa: ANN401
            nonlocal is_begun
            is_begun = True
            if environ["REQUEST_METHOD"] == "OPTIONS" and ALLOW not in headers and status.startswith("200"):
                headers = [*headers, ALLOW]  # WsgiDAV says none for "*"
            return start_response(status, headers, *exc_info)

        try:
            yield from self.next_app(environ, start)
        except Exception as exc:
            if is_begun:
                raise
            yield from send(_error_answer(exc, environ), environ, start_response)


def _error_answer(exc: Exception, environ: dict[str, Any]) -> Response:
    if isinstance(exc, DAVError):
        headers = (ALLOW,) if exc.value == 405 else ()
        return text_answer(exc.value, STATUS_LINES[exc.value], *headers)
    return failure_answer(exc, environ)


class GuardMiddleware(BaseMiddleware):
    """Lets a request pass or refuses it, before the tree is touched.

    In place of WsgiDAV's HTTPAuthenticator and its domain controllers: those know no client by its uid, and
    cannot slow down who guesses, answer 429, or remember a login for a connection.
    """

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        guard: Guard = self.config[GUARD]
        authority, _ = split_absolute(request_uri(environ))
        guard.check(environ, authority)
        environ["wsgidav.auth.user_name"] = environ.get("REMOTE_USER", "")
        response: Iterable[bytes] = self.next_app(environ, start_response)
        return response


class PageMiddleware(BaseMiddleware):
    """Serves the files of the page, which are beside the tree."""

    def __call__(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        if environ.get("HTTP_SERVICE_WORKER") == "script":
            return send(service_worker_answer(), environ, start_response)
        uri = request_uri(environ)
        if f"/{PREFIX}" in uri and environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            target = parse_target(split_absolute(uri)[1])
            if target.names[:1] == (PREFIX,):
                page: Page = self.config[PAGE]
                return respond(
                    lambda: page.asset(target, environ),
                    environ,
                    start_response,
                    lambda exc: failure_answer(exc, environ),
                )
        response: Iterable[bytes] = self.next_app(environ, start_response)
        return response
