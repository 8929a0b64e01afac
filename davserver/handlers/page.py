"""The browser page: the files of `static/`, held in memory and served under `/.page/`, where no tree name is.

What it may do is fixed by its Content-Security-Policy: run its own script, and ask this server.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from xxhash import xxh3_128_hexdigest

from davserver.http.conditional import Validators, failed_precondition
from davserver.http.response import HTTPError, Response, text_answer, whole
from davserver.http.target import Target

PREFIX = ".page"

POLICY = (
    "Content-Security-Policy",
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)

CLEAR = ("Clear-Site-Data", '"cache", "storage"')
"""The page stores nothing; what is there was left by a program that had this port before.

Its worker would answer for this server, and a script of its in the cache would be run by this very page.
"""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


_UNREGISTER = b"""\
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.registration.unregister()));
"""


def service_worker_answer() -> Response:
    """Answer a browser that asks for the script of a service worker: one that takes itself away.

    This server has none. Who had its port before may have left one in the owner's browser, which would stand
    between him and this server. Source: Service Workers (Service-Worker), Clear Site Data.
    """
    return whole(200, _TYPES[".js"], _UNREGISTER, POLICY, CLEAR)


class _Asset(NamedTuple):
    body: bytes
    media_type: str
    etag: str


class Page:
    """The files of the page, read once, when somebody asks for one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @cached_property
    def _assets(self) -> dict[str, _Asset]:
        return {
            path.relative_to(self._directory).as_posix(): _Asset(
                body, _TYPES[path.suffix], f'"{xxh3_128_hexdigest(body)}"'
            )
            for path in sorted(self._directory.rglob("*"))
            if path.suffix in _TYPES
            for body in (path.read_bytes(),)
        }

    def index(self, status: int = 200) -> Response:
        """Answer where HTML is wanted: for a collection, or, with 404, for what is not there.

        Without ETag: other clients get other forms.
        """
        body, media_type, _ = self._assets["index.html"]
        return whole(status, media_type, body, POLICY, CLEAR, ("Vary", "Accept"))

    def asset(self, target: Target, environ: dict[str, Any]) -> Response:
        """Answer for what *target*, which is below the prefix, points at. Raises HTTPError."""
        _, *names = target.names
        asset = None if target.slash else self._assets.get("/".join(names))
        if asset is None:
            raise HTTPError(404)
        etag = ("ETag", asset.etag)
        failed = failed_precondition(environ, Validators(asset.etag, None))
        if failed == 304:
            return Response(304, [etag])
        if failed is not None:
            return text_answer(failed, "It is not what the precondition asks for", etag)
        return whole(200, asset.media_type, asset.body, POLICY, etag)


def installed_directory() -> Path:
    """Return where the files are: in the package when installed, beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "static"
    return installed if installed.is_dir() else package.parent / "static"
