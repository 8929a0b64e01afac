"""The rows of a hermes session, in the order of their ids (`<home>/state.db`, table `messages`).

All rows stay: those that were taken back, and those that `/compress` has summarised. `/compress` inserts the
head that it keeps, its summary and the tail again, microseconds apart in one transaction. A row within a
millisecond of a summary is a copy where an earlier row equals it which was compacted, or stands in a session
that this one continues. Neither changes afterwards, so a row is a copy or none for good.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agents9core.errors import Gone, Malformed
from agents9core.files.root import Descriptor, Root
from agents9core.files.rows import LARGEST_ID, Newest, Rows, RowSource
from agents9core.files.statx import FileStat
from agents9core.harness.hermes.chat import SUMMARIES, Head, head_line

if TYPE_CHECKING:  # sqlite3 is loaded with the first database: most servers meet none
    from agents9core.files.database import Database

DATABASE = ("state.db",)
TABLE = "messages"
_SMALL = {"role": 20, "timestamp": 0, "tool_call_id": 200}
"""Columns of a head, and how much of each is read; 0: all."""
_TEXTS = ("reasoning_content", "reasoning", "content", "tool_calls")
_NEEDED = frozenset(("id", "session_id", "role", "content", "timestamp"))
_TOGETHER_SECONDS = 0.001
"""How far from its summary a copy is at most."""
_CHUNK_ROWS, _CHUNK_BYTES = 500, 4 << 20
"""What is read in one transaction, about: the next may wait for others."""
_WINDOW = 1 << 20
"""Of a long text two are read at once, so that what is asked for is in one read, and reading on in the next
too. A piece has fewer bytes."""
_MARK = max(map(len, SUMMARIES))


class SessionRows(RowSource):
    """The rows of a session, and before them those of the sessions that it continues."""

    def __init__(self, ids: tuple[str, ...], newest: Newest) -> None:
        """*ids*: the oldest first."""
        self.ids = ids
        self.newest = newest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SessionRows) and self.ids == other.ids

    def __hash__(self) -> int:
        return hash(self.ids)

    def __repr__(self) -> str:
        return f"SessionRows({self.ids!r})"

    def open(self, root: Root, path: tuple[str, ...]) -> Rows:
        from agents9core.files.database import DATABASES

        database, files = DATABASES.open(root, path)
        return OpenRows(database, files, self.ids)


class OpenRows(Rows):
    """The rows of a session in an open database."""

    def __init__(
        self, database: "Database", files: Sequence[tuple[Descriptor, FileStat]], ids: tuple[str, ...]
    ) -> None:
        """Raises Malformed where there is no such table, Unavailable."""
        self.files = files
        self._database = database
        self._ids = ids
        self._columns = database.columns(TABLE)
        if not self._columns >= _NEEDED:
            raise Malformed("no table `messages` of hermes")
        small = [_small(name, most) if name in self._columns else "null" for name, most in _SMALL.items()]
        texts = [name if name in self._columns else "null" for name in _TEXTS]
        self._head_sql = f"select {', '.join(small)} from {TABLE} where id = ?"
        self._row_sql = f"select {', '.join([*small, *texts])} from {TABLE} where id = ?"
        self._mine = f"session_id in ({', '.join('?' * len(ids))})"

    def count(self, last: int) -> int:
        sql = f"select count(*) from {TABLE} where {self._mine} and id between 0 and ?"
        return int(self._database.ask(sql, *self._ids, last)[0][0])

    def after(self, last: int, most: int) -> Iterator[tuple[int, bytes | None, bool]]:
        sql = (
            f"select id, timestamp from {TABLE} where {self._mine} and id between ? and ? order by id limit ?"
        )
        found = self._database.ask(sql, *self._ids, last + 1, LARGEST_ID, most)
        copies = self._copies(found)
        ids = [row for row, _ in found]
        while ids:
            frames = self._frames(ids)
            for row, frame in frames:
                yield row, frame, row in copies
            del ids[: len(frames)]

    def frame(self, row: int) -> bytes:
        found = self._database.ask(self._row_sql, row)
        if not found:
            raise Gone(f"row {row}")
        values = found[0]
        head, texts = values[: len(_SMALL)], [_text(value) for value in values[len(_SMALL) :]]
        shown = [texts[0] or texts[1], *texts[2:]]
        return b"".join([_head_line(head, [len(text) for text in shown]), *shown])

    def part(self, row: int, at: int, count: int) -> tuple[bytes, int]:
        with self._database.transaction():
            head, texts = self._database.remembered("layout", (TABLE, row), lambda: self._layout(row))
            out = bytearray(head[at : at + count])
            start = len(head)
            for name, size in texts:
                within = at + len(out) - start
                if 0 <= within < size and len(out) < count:
                    out += self._read(name, row, within, min(count - len(out), size - within))
                start += size
        return bytes(out), start

    def _layout(self, row: int) -> tuple[bytes, list[tuple[str, int]]]:
        """Return the head of a row's frame, and the columns that follow, each with its size.

        What stands in a row after a long text is found by going through that: it is not asked for twice.
        """
        found = self._database.ask(self._head_sql, row)
        if not found:
            raise Gone(f"row {row}")
        sizes = {name: self._size(name, row) for name in _TEXTS}
        shown = ["reasoning_content" if sizes["reasoning_content"] else "reasoning", *_TEXTS[2:]]
        return _head_line(found[0], [sizes[name] for name in shown]), [(name, sizes[name]) for name in shown]

    def _frames(self, ids: Sequence[int]) -> list[tuple[int, bytes | None]]:
        """Return the frames of the first rows, as many as are read in one transaction."""
        frames: list[tuple[int, bytes | None]] = []
        size = 0
        with self._database.transaction():
            for row in ids[:_CHUNK_ROWS]:
                frame = self._frame_or_none(row)
                frames.append((row, frame))
                size += len(frame or b"")
                if size > _CHUNK_BYTES:
                    break
        return frames

    def _frame_or_none(self, row: int) -> bytes | None:
        try:
            return self.frame(row)
        except (Gone, Malformed):
            return None

    def _copies(self, rows: Iterable[tuple[int, object]]) -> frozenset[int]:
        """Return which of these rows are copies."""
        if not self._columns >= {"compacted", "tool_calls"}:
            return frozenset()
        copies = []
        for burst in _bursts(rows):
            times = [time for row, time in burst if self._is_summary(row)]
            near = [row for row, time in burst if any(abs(time - one) <= _TOGETHER_SECONDS for one in times)]
            copies += [row for row in near if self._has_original(row, burst[0][0])]
        return frozenset(copies)

    def _is_summary(self, row: int) -> bool:
        found = self._database.ask(f"select substr(content, 1, {_MARK}) from {TABLE} where id = ?", row)
        return bool(found) and _text(found[0][0]).startswith(SUMMARIES)

    def _has_original(self, row: int, before: int) -> bool:
        """Whether a row that was compacted before equals this one."""
        found = self._database.ask(
            f"select 1 from {TABLE} new, {TABLE} old where new.id = ? and old.{self._mine} and old.id < ?"
            " and (old.compacted = 1 or old.session_id <> ?) and old.role is new.role"
            " and old.content is new.content and old.tool_calls is new.tool_calls limit 1",
            row, *self._ids, before, self._ids[-1],
        )  # fmt: skip
        return bool(found)

    def _size(self, column: str, row: int) -> int:
        return self._database.size(TABLE, column, row) if column in self._columns else 0

    def _read(self, column: str, row: int, at: int, count: int) -> bytes:
        """Return bytes of a text that is longer; what stands beside them is mostly asked for next."""
        start = at // _WINDOW * _WINDOW

        def read() -> bytes:
            return self._database.read(TABLE, column, row, start, 2 * _WINDOW)

        data = self._database.remembered("window", (TABLE, column, row, start), read)
        return data[at - start : at - start + count]


def _small(name: str, most: int) -> str:
    return f"substr({name}, 1, {most})" if most else name


def _text(value: object) -> bytes:
    """Return a column's text; nothing where it is no text."""
    return value if isinstance(value, bytes) else b""


def _head_line(values: Sequence[object], sizes: Sequence[int]) -> bytes:
    role, time, call = values
    return head_line(
        Head(
            role=str(_text(role), "utf-8", "replace"),
            time=float(time) if isinstance(time, int | float) else None,
            call=str(call, "utf-8", "replace") if isinstance(call, bytes) else None,
            sizes=(sizes[0], sizes[1], sizes[2]),
        )
    )


def _bursts(rows: Iterable[tuple[int, object]]) -> Iterator[list[tuple[int, float]]]:
    """Yield the runs of two rows and more of which each comes right after the one before."""
    burst: list[tuple[int, float]] = []
    for row, time in rows:
        when = float(time) if isinstance(time, int | float) else float("-inf")
        if burst and not abs(when - burst[-1][1]) <= _TOGETHER_SECONDS:
            if len(burst) > 1:
                yield burst
            burst = []
        burst.append((row, when))
    if len(burst) > 1:
        yield burst
