"""What a request is answered with, and how a refusal becomes one.

Pure: `wsgi` turns an `Response` into WSGI calls, nothing here sends.
"""

import errno
from collections.abc import Generator, Iterable, Iterator
from http import HTTPStatus
from typing import NamedTuple

from agents9core.errors import TooLarge, TreeError

Headers = list[tuple[str, str]]

TEXT = "text/plain; charset=utf-8"
XML = "application/xml; charset=utf-8"

PRIVATE: tuple[tuple[str, str], ...] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "private, no-cache"),
)
"""On every answer: what is said here is for one person, and never runs."""

STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}

STATUS = {
    errno.ENOENT: 404,
    errno.ENOTDIR: 404,
    errno.EISDIR: 404,
    errno.ESTALE: 404,  # what does not resolve now is not there
    errno.EACCES: 403,
    errno.EROFS: 403,
    errno.EIO: 503,  # it is there, but the system or its bytes cannot serve it now
    errno.EFBIG: 507,
}
"""The error numbers of the tree as HTTP says them."""


class Response(NamedTuple):
    """A status, the headers that are its own, and a body whose length a header may say."""

    status: int
    headers: Headers
    body: Iterable[bytes] = ()


Later = Generator[bytes, None, Response]
"""An answer that is still to come: a generator of pauses (`environ`) that returns it, or raises HTTPError."""


class HTTPError(Exception):
    """The request cannot be served as it stands; *answer* says so to the client."""

    def __init__(self, status: int, reason: str = "", *headers: tuple[str, str]) -> None:
        super().__init__(status, reason)
        self.answer = text_answer(status, reason or STATUS_LINES[status], *headers)


def whole(status: int, media_type: str, body: bytes, *headers: tuple[str, str]) -> Response:
    """Answer with a body that is all here."""
    sized = [("Content-Type", media_type), ("Content-Length", str(len(body)))]
    return Response(status, [*sized, *headers], (body,))


def text_answer(status: int, line: str, *headers: tuple[str, str]) -> Response:
    """Answer with one line of text. *line* must hold nothing that the client sent."""
    return whole(status, TEXT, f"{line}\n".encode(), *headers)


def error_answer(exc: Exception) -> Response | None:
    """Return what answers a request that raised *exc*; None: a bug, which is to be logged."""
    if isinstance(exc, HTTPError):
        return exc.answer
    if isinstance(exc, TreeError):
        status = STATUS[exc.errno]
        return text_answer(status, str(exc) if isinstance(exc, TooLarge) else STATUS_LINES[status])
    return None


def begun(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Take the first chunk now, while what the tree raises can still become a status.

    What it raises later ends the connection: ConnectionAbortedError, which servers know.
    """
    first = next(chunks, b"")
    return _after_first(first, chunks)


def _after_first(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield first
        yield from chunks
    except TreeError as exc:
        raise ConnectionAbortedError(errno.ECONNABORTED, "it went while it was answered") from exc
