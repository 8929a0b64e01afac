"""GET and HEAD of a file: exactly the bytes that its `Stat` promised.

A file that grows meanwhile is served at the size it had when it was asked for. One that ends, or is
shorter than it said, ends the connection: a body is never short on a connection that goes on.
"""

import time
from collections.abc import Iterator
from typing import Any

from agents9core.errors import Gone
from agents9core.node import File
from davserver.http.conditional import Span, Unsatisfiable, Validators, failed_precondition, span_of
from davserver.http.dates import http_date, modified_seconds
from davserver.http.response import Headers, Response, begun, text_answer

CHUNK_BYTES = 256 * 1024
"""What is read and sent at once; smaller costs CPU, larger costs memory for each slow client."""
_LEAST_BYTES = 16 * 1024
_CHUNK_SECONDS = 0.004
"""How long a chunk may take to make. What has to be rendered comes in smaller ones: others get their turn."""


def file_answer(file: File, environ: dict[str, Any]) -> Response:
    """Answer a GET or HEAD of *file*. A HEAD never opens it."""
    clock = int(time.time())
    stat = file.stat()
    now = Validators(f'"{stat.etag}"', modified_seconds(stat.mtime_ns, clock))
    validators = validator_headers(now)
    failed = failed_precondition(environ, now)
    if failed == 304:
        return Response(304, validators)
    if failed is not None:
        return text_answer(failed, "It is not what the precondition asks for", *validators)
    is_get = environ["REQUEST_METHOD"] == "GET"  # only GET has ranges (section 14.2)
    try:
        span = span_of(environ, now, stat.length, clock) if is_get else None
    except Unsatisfiable:
        beyond = ("Content-Range", f"bytes */{stat.length}")
        return text_answer(416, "No such range", beyond, *validators)
    status, headers, (start, stop) = _described(span, stat.length)
    headers += validators
    headers.append(("Content-Type", file.media_type))
    return Response(status, headers, _body(file, start, stop - start) if is_get else ())


def validator_headers(now: Validators) -> Headers:
    """Return ETag and Last-Modified, which 200, 206, 304 and 416 all carry."""
    headers = []
    if now.etag is not None:
        headers.append(("ETag", now.etag))
    if now.modified is not None:
        headers.append(("Last-Modified", http_date(now.modified)))
    return headers


def _described(span: Span | None, length: int) -> tuple[int, Headers, Span]:
    headers = [("Accept-Ranges", "bytes")]
    if span is None:
        headers.append(("Content-Length", str(length)))
        return 200, headers, Span(0, length)
    headers.append(("Content-Range", f"bytes {span.start}-{span.stop - 1}/{length}"))
    headers.append(("Content-Length", str(span.stop - span.start)))
    return 206, headers, span


def _body(file: File, start: int, count: int) -> Iterator[bytes] | tuple[bytes, ...]:
    """Return the bytes: a short body whole, so that whatever goes wrong with it is still a status."""
    chunks = _chunks(file, start, count)
    return (b"".join(chunks),) if count <= CHUNK_BYTES else begun(chunks)


def _chunks(file: File, start: int, count: int) -> Iterator[bytes]:
    reader = file.open()
    step = _LEAST_BYTES
    try:
        while count:
            began = time.monotonic()
            data = reader.read(start, min(count, step))
            if not data:
                raise Gone(file.name)
            is_slow = time.monotonic() - began > _CHUNK_SECONDS
            step = max(step // 2, _LEAST_BYTES) if is_slow else min(step * 2, CHUNK_BYTES)
            yield data
            start += len(data)
            count -= len(data)
    finally:
        reader.close()
