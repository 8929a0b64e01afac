"""GET and HEAD of a collection, as text for people and as JSON for programs, and what is new in a chat.

A row of JSON: `name`, `type` (file or directory), `size` (bytes), `mtime` (ISO 8601, UTC), `href` (absolute
path); a message also `id` and `kind`. Text is one name a line, directories with a slash; what a terminal
would obey is percent-encoded there. A chat names its transcript in `Agents9-Transcript`; with `?after=ID`
it lists the later messages only, and answers 410 where ids do not mean what the client thinks.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import parse_qs

from agents9core.node import Directory, Messages, Row
from davserver.answer import TEXT, Answer, Refusal, begun
from davserver.dates import iso_date
from davserver.rows import PLAIN_NAME, slices
from davserver.target import quoted

JSON = "application/json"

_DECIMAL = re.compile(r"[0-9]+", re.ASCII)
_LONGEST_ID = 18
"""Digits; an id with more is past the end of any chat."""


def listing_answer(directory: Directory, href: str, query: str, form: str, is_head: bool) -> Answer:
    """List *directory*, whose path is *href* without a slash at the end, as *form*: JSON or text.

    Raises Refusal where `after` or `transcript` ask for what is not there.
    """
    rows = directory.members()
    headers = [("Vary", "Accept"), ("Content-Type", JSON if form == JSON else TEXT)]
    start = 0
    if isinstance(rows, Messages):
        transcript = ("Agents9-Transcript", rows.transcript)
        start = _first_after(query, rows, transcript)
        headers.append(transcript)
    if is_head:
        return Answer(200, headers)
    if form == JSON:
        return Answer(200, headers, begun(_as_json(rows, start, href + "/")))
    return Answer(200, headers, begun(_as_text(rows, start)))


def _first_after(query: str, rows: Messages, transcript: tuple[str, str]) -> int:
    """Return the number of the first row that `after` lets through, 0 without it."""
    asked = parse_qs(query, keep_blank_values=True)
    if asked.get("transcript", [rows.transcript]) != [rows.transcript]:
        raise Refusal(410, "The chat has another transcript now", transcript)
    if "after" not in asked:
        return 0
    after = asked["after"][0]
    if len(asked["after"]) != 1 or not _DECIMAL.fullmatch(after):
        raise Refusal(400, "after is the id of a message, in decimal")
    if len(after.lstrip("0")) > _LONGEST_ID or int(after) >= len(rows):
        raise Refusal(410, "The chat does not reach that message", transcript)
    return int(after) + 1


def _as_text(rows: Sequence[Row], start: int) -> Iterator[bytes]:
    for part in slices(rows, start):
        lines = [
            f"{name if name.isprintable() else quoted(name)}{'/' if stat.is_dir else ''}\n"
            for name, stat in part
        ]
        yield "".join(lines).encode(errors="replace")


def _as_json(rows: Sequence[Row], start: int, base: str) -> Iterator[bytes]:
    write: Callable[[Iterable[Row], int, str], list[str]]
    write = _message_objects if isinstance(rows, Messages) else _objects
    before = "[\n"
    for part in slices(rows, start):
        yield (before + ",\n".join(write(part, start, base))).encode()
        start += len(part)
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"


def _objects(rows: Iterable[Row], _start: int, base: str) -> list[str]:
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


def _message_objects(rows: Iterable[Row], start: int, base: str) -> list[str]:
    """Write messages, whose names are always plain: eight digits, a dash and the kind."""
    return [
        f'{{"id":{number},"kind":"{name[9:]}","name":"{name}","type":"file","size":{stat.length},'
        f'"mtime":"{iso_date(stat.mtime_ns)}","href":"{base}{name}"}}'
        for number, (name, stat) in enumerate(rows, start)
    ]
