"""GET and HEAD of a collection, as text for people and as JSON for programs.

A row of JSON: `name`, `type` (file or directory), `size` (bytes), `mtime` (ISO 8601, UTC), `href` (absolute
path); a message also `id` and `kind`. Text is one name a line, directories with a slash; what a terminal
would obey is percent-encoded there. Which messages of a chat are listed is `asked`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from agents9core.node import Row
from davserver.answer import TEXT, Answer, begun
from davserver.dates import iso_date
from davserver.rows import PLAIN_NAME, slices
from davserver.target import quoted

JSON = "application/json"

Write = Callable[[Iterable[Row], str], list[str]]


def listing_answer(
    rows: Sequence[Row], href: str, form: str, write: Write, first: int = 0, *more: tuple[str, str]
) -> Answer:
    """List *rows* from number *first* on, as *form*: JSON or text, with *more* headers.

    *href*: the collection's path without a slash at the end. *write* makes the objects of JSON.
    """
    headers = [("Vary", "Accept"), ("Content-Type", JSON if form == JSON else TEXT), *more]
    if form == JSON:
        return Answer(200, headers, begun(_as_json(rows, first, href + "/", write)))
    return Answer(200, headers, begun(_as_text(rows, first)))


def _as_text(rows: Sequence[Row], start: int) -> Iterator[bytes]:
    for part in slices(rows, start):
        lines = [
            f"{name if name.isprintable() else quoted(name)}{'/' if stat.is_dir else ''}\n"
            for name, stat in part
        ]
        yield "".join(lines).encode(errors="replace")


def _as_json(rows: Sequence[Row], start: int, base: str, write: Write) -> Iterator[bytes]:
    before = "[\n"
    for part in slices(rows, start):
        yield (before + ",\n".join(write(part, base))).encode()
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"


def objects(rows: Iterable[Row], base: str) -> list[str]:
    """Write each row as a JSON object. *base*: the collection's path with its slash."""
    written = []
    for name, (_, _, is_dir, length, mtime_ns) in rows:
        plain = PLAIN_NAME(name)
        shown = f'"{name}"' if plain else json.dumps(name)
        href = base + (name if plain else quoted(name)) + ("/" if is_dir else "")
        kind = "directory" if is_dir else "file"
        written.append(
            f'{{"name":{shown},"type":"{kind}","size":{length},"mtime":"{iso_date(mtime_ns)}","href":"{href}"}}'
        )
    return written


def message_objects(rows: Iterable[Row], base: str) -> list[str]:
    """Write messages, whose names are always plain: eight digits, a dash and the kind."""
    return [
        f'{{"id":{int(name[:8])},"kind":"{name[9:]}","name":"{name}","type":"file","size":{stat.length},'
        f'"mtime":"{iso_date(stat.mtime_ns)}","href":"{base}{name}"}}'
        for name, stat in rows
    ]
