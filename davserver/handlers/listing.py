"""GET and HEAD of a collection, as text for people and as JSON for programs.

A row of JSON: `name`, `type` (file or directory), `size` (bytes), `mtime` (ISO 8601, UTC), `href` (absolute
path); a message also `id` and `kind`, a call and its result `tool`, the tool's own name. Text is one name a
line, directories with a slash; what a terminal would obey is percent-encoded there. Which messages of a chat
are listed is `chat_query`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import overload

import orjson

from agents9core.node import Columns, Messages, Row
from davserver.handlers.pieces import Pieces
from davserver.handlers.rows import PLAIN_NAME, slices
from davserver.http.dates import iso_dates
from davserver.http.response import TEXT, Response, begun
from davserver.http.target import quoted

JSON = "application/json"

Write = Callable[[Columns, str], list[str]]


def listing_answer(
    rows: Sequence[Row], href: str, form: str, write: Write, *more: tuple[str, str]
) -> Response:
    """List *rows* as *form*: JSON or text, with *more* headers.

    *href*: the collection's path without a slash at the end. *write* makes the objects of JSON.
    """
    if form != JSON:
        return _answer(TEXT, _as_text(rows, 0), *more)
    return _answer(JSON, _as_json(_joined(write(part, href + "/")) for part in slices(rows)), *more)


def messages_answer(
    rows: Messages, href: str, form: str, first: int, pieces: Pieces, *more: tuple[str, str]
) -> Response:
    """List messages from number *first* on, as `listing_answer` does."""
    if form != JSON:
        return _answer(TEXT, _as_text(rows, first), *more)
    base = href + "/"
    parts = pieces.of(rows, first, f"JSON {base}", lambda part: _joined(message_objects(part, base)))
    return _answer(JSON, _as_json(parts), *more)


def _answer(media_type: str, chunks: Iterator[bytes], *more: tuple[str, str]) -> Response:
    return Response(200, [("Vary", "Accept"), ("Content-Type", media_type), *more], begun(chunks))


def _as_text(rows: Sequence[Row], start: int) -> Iterator[bytes]:
    for part in slices(rows, start):
        lines = [
            f"{name if name.isprintable() else quoted(name)}{'/' if is_dir else ''}\n"
            for name, is_dir in zip(part.names, part.are_dirs, strict=True)
        ]
        yield "".join(lines).encode(errors="replace")


def _joined(objects: list[str]) -> bytes:
    return ",\n".join(objects).encode()


def _as_json(parts: Iterator[bytes]) -> Iterator[bytes]:
    before = b"[\n"
    for part in parts:
        yield before + part
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def objects(rows: Columns, base: str) -> list[str]:
    """Write each row as a JSON object. *base*: the collection's path with its slash."""
    written = []
    for name, is_dir, length, mtime in zip(
        rows.names, rows.are_dirs, rows.lengths, iso_dates(rows.mtimes_ns), strict=True
    ):
        plain = PLAIN_NAME(name)
        shown = f'"{name}"' if plain else orjson.dumps(name.encode("utf-8", "replace").decode()).decode()
        href = base + (name if plain else quoted(name)) + ("/" if is_dir else "")
        kind = "directory" if is_dir else "file"
        written.append(
            f'{{"name":{shown},"type":"{kind}","size":{length},"mtime":"{mtime}","href":"{href}"}}'
        )
    return written


def message_objects(rows: Columns, base: str) -> list[str]:
    """Write messages, whose names are always plain: eight digits, a dash and the kind."""
    mtimes = iso_dates(rows.mtimes_ns)
    tools = rows.tools or [None] * len(rows.names)
    return [
        f'{{"id":{int(name[:8])},"kind":"{name[9:]}",{_tool(tool)}"name":"{name}","type":"file",'
        f'"size":{length},"mtime":"{mtime}","href":"{base}{name}"}}'
        for name, length, mtime, tool in zip(rows.names, rows.lengths, mtimes, tools, strict=True)
    ]


@lru_cache(maxsize=1024)
def _tool(tool: str | None) -> str:
    """Return the member that names a message's tool, with its comma; "" where it has none."""
    if tool is None:
        return ""
    return f'"tool":{orjson.dumps(tool.encode("utf-8", "replace").decode()).decode()},'


class FoundMessages(Messages):
    """Some messages of a chat, as a search found them."""

    def __init__(self, rows: Messages, found: Sequence[Row]) -> None:
        self.transcript = rows.transcript
        self._rows = rows
        self._found = found

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def columns(self, start: int, stop: int) -> Columns:
        ids = [int(row.name[:8]) for row in self._found[start:stop]]
        tools = [tool for id_ in ids for tool in self._rows.columns(id_, id_ + 1).tools]
        return super().columns(start, stop)._replace(tools=tools)
