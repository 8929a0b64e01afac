"""The tree as a WsgiDAV provider: resources over the nodes of `agents9core.node`, read-only.

    get_resource_inst → Collection | Resource, each made from one snapshot at its node
    custom_request_handler → `handlers`, which answers GET, HEAD, PROPFIND and OPTIONS; all else is WsgiDAV's

The resources are complete without the handlers: in any other WsgiDAV they give the same names, sizes, dates,
tags and bytes, a slower way. Source: WsgiDAV 4.4, `wsgidav.dav_provider`.
"""

import io
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from wsgidav.dav_error import HTTP_FORBIDDEN, DAVError
from wsgidav.dav_provider import DAVCollection, DAVNonCollection, DAVProvider

from agents9core.errors import TreeError
from agents9core.node import Directory, File, Node, Stat
from davserver.handlers.requests import Handlers, walk
from davserver.http.dates import modified_seconds
from davserver.http.environ import request_uri
from davserver.http.response import STATUS, STATUS_LINES, Later, Response, error_answer, text_answer
from davserver.http.wsgi import respond

if TYPE_CHECKING:
    from wsgiref.types import StartResponse

logger = logging.getLogger(__name__)

Wsgi = Callable[[dict[str, Any], "StartResponse"], Iterable[bytes]]


class TreeProvider(DAVProvider):
    """Serves the tree below *root*. Without *handlers* WsgiDAV's own request handlers answer everything."""

    def __init__(self, root: Directory, handlers: Handlers | None = None) -> None:
        super().__init__()
        self._root = root
        self._handlers = handlers

    def is_readonly(self) -> bool:
        return True

    def get_resource_inst(self, path: str, environ: dict[str, Any]) -> "Collection | Resource | None":
        """Return the resource at *path*, decoded and normalised; None where there is none.

        Raises DAVError for what the tree cannot serve now.
        """
        try:
            node = walk(self._root, filter(None, path.split("/")))
            stat = node.stat()
        except TreeError as exc:
            if STATUS[exc.errno] == 404:
                return None
            raise _dav_error(exc) from exc
        return _resource(path, environ, node, stat)

    def custom_request_handler(
        self, environ: dict[str, Any], start_response: "StartResponse", default_handler: Wsgi
    ) -> Iterable[bytes]:
        """Answer by our handler of the method, else by WsgiDAV's."""
        handler = self._handlers.by_method.get(environ["REQUEST_METHOD"]) if self._handlers else None
        if handler is None:
            return default_handler(environ, start_response)

        def handle() -> Response | Later:
            with self._root.one_request():
                return handler(environ)

        return respond(handle, environ, start_response, lambda exc: failure_answer(exc, environ))


def failure_answer(exc: Exception, environ: dict[str, Any]) -> Response:
    """Return what is answered instead of a response that failed; a bug is logged, and a plain 500."""
    answer = error_answer(exc)
    if answer is None:
        logger.error("cannot answer %s %r", environ["REQUEST_METHOD"], request_uri(environ), exc_info=exc)
        return text_answer(500, STATUS_LINES[500])
    return answer


def _resource(path: str, environ: dict[str, Any], node: Node, stat: Stat) -> "Collection | Resource":
    if isinstance(node, Directory):
        return Collection(path, environ, node, stat)
    return Resource(path, environ, cast(File, node), stat)


def _dav_error(exc: TreeError) -> DAVError:
    status = STATUS[exc.errno]
    return DAVError(status, STATUS_LINES[status], exc)


class Collection(DAVCollection):
    """A directory. Its members are those of one look: one that vanishes later is no error."""

    def __init__(self, path: str, environ: dict[str, Any], directory: Directory, stat: Stat) -> None:
        super().__init__(path, environ)
        self._directory = directory
        self._stat = stat

    def get_display_info(self) -> dict[str, str]:
        return {"type": "Directory"}

    def get_last_modified(self) -> int:
        return _seconds(self._stat)

    def get_member_names(self) -> list[str]:
        try:
            return [row.name for row in self._directory.members()]
        except TreeError as exc:
            raise _dav_error(exc) from exc

    def get_member(self, name: str) -> "Collection | Resource | None":
        try:
            node = self._directory.walk(name)
            return _resource(self._path_of(name), self.environ, node, node.stat())
        except TreeError:
            return None

    def get_member_list(self) -> list["Collection | Resource"]:
        members = (self.get_member(name) for name in self.get_member_names())
        return [member for member in members if member is not None]

    def _path_of(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"


class Resource(DAVNonCollection):
    """A file."""

    def __init__(self, path: str, environ: dict[str, Any], file: File, stat: Stat) -> None:
        super().__init__(path, environ)
        self._file = file
        self._stat = stat

    def get_content_length(self) -> int:
        return self._stat.length

    def get_content_type(self) -> str:
        return self._file.media_type

    def get_etag(self) -> str:
        return self._stat.etag

    def get_last_modified(self) -> int:
        return _seconds(self._stat)

    def support_etag(self) -> bool:
        return True

    def support_ranges(self) -> bool:
        return True

    def get_content(self) -> io.BufferedIOBase:
        """Return the bytes as a stream. Raises DAVError where the file has gone or may not be read."""
        try:
            return io.BufferedReader(_Stream(self._file, self._stat.length))
        except TreeError as exc:
            raise _dav_error(exc) from exc

    def begin_write(self, *, content_type: str | None = None) -> io.BufferedIOBase:
        raise DAVError(HTTP_FORBIDDEN)


class _Stream(io.RawIOBase):
    """The bytes of an opened file up to its length. Raises OSError where they have gone."""

    def __init__(self, file: File, length: int) -> None:
        super().__init__()
        self._reader = file.open()
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        count = min(len(buffer), self._length - self._at)
        if count <= 0:
            return 0
        try:
            data = self._reader.read(self._at, count)
        except TreeError as exc:
            raise OSError(exc.errno, str(exc)) from exc
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._reader.close()
        super().close()


def _seconds(stat: Stat) -> int:
    return modified_seconds(stat.mtime_ns, int(time.time()))
