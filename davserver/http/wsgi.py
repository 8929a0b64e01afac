"""A response as WSGI calls (PEP 3333). Pure of sockets.

A server that knows `Pause` hands over WAKE in the environment; under any other one a pause holds the thread
that iterates the body.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from davserver.http.environ import WAKE, Pause
from davserver.http.response import STATUS_LINES, Later, Response

if TYPE_CHECKING:
    from wsgiref.types import StartResponse

Failed = Callable[[Exception], Response]
"""Returns what is answered instead of a response that failed."""


def respond(
    handle: Callable[[], Response | Later],
    environ: dict[str, Any],
    start_response: "StartResponse",
    failed: Failed,
) -> Iterable[bytes]:
    """Answer with what *handle* returns, now or later; what it raises becomes what *failed* makes of it."""
    woken = None if WAKE in environ else threading.Event()
    if woken is not None:
        environ[WAKE] = woken.set
    try:
        response = handle()
    except Exception as exc:  # noqa: BLE001 - it is logged unless it is an answer
        response = failed(exc)
    if isinstance(response, Response):
        chunks = send(response, environ, start_response)
    else:
        chunks = _send_deferred(response, environ, start_response, failed)
    return chunks if woken is None else _without_pauses(chunks, woken)


def send(response: Response, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
    """Begin *response* and return its body."""
    start_response(STATUS_LINES[response.status], response.headers)
    return () if environ["REQUEST_METHOD"] == "HEAD" else response.body


def _send_deferred(
    later: Later, environ: dict[str, Any], start_response: "StartResponse", failed: Failed
) -> Iterator[bytes]:
    """Begin the response when it has come."""
    try:
        response = yield from later
    except Exception as exc:  # noqa: BLE001 - it is logged unless it is an answer
        response = failed(exc)
    yield from send(response, environ, start_response)


def _without_pauses(chunks: Iterable[bytes], woken: threading.Event) -> Iterator[bytes]:
    for chunk in chunks:
        if isinstance(chunk, Pause):
            woken.wait(chunk.seconds)
            woken.clear()
        else:
            yield chunk
