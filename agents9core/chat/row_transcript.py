"""A transcript that is rows of a database (`rows`): its generation and its index.

A look is cheap while no file of the database moves. When one does, the number of rows that were read and the
first and the last of them tell whether it is still the same transcript. Each row that is read whole again is
compared with the fingerprint that was taken when it was indexed.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import xxhash

from agents9core.chat.decoder import ChatDecoder
from agents9core.chat.fingerprint import RACY_NS
from agents9core.chat.index import CAP, ChatIndex
from agents9core.chat.transcript import Generations, OpenSource, Transcript
from agents9core.errors import Gone, Malformed
from agents9core.files.limits import LONGEST
from agents9core.files.rows import FRAME_BITS, LARGEST_ID, Rows
from agents9core.files.statx import FileStat
from agents9core.identity import PathNumbers


class _Edges(NamedTuple):
    """What tells whether the rows are the ones that were read."""

    first: tuple[int, int]
    last: tuple[int, int]
    """Id and fingerprint of a row."""
    rows: int


class RowTranscript(Transcript):
    """One transcript of rows and its generation."""

    def __init__(self, key: tuple[object, ...], numbers: PathNumbers, generations: Generations) -> None:
        super().__init__(key, numbers, generations)
        self._edges: _Edges | None = None
        self._seen: tuple[FileStat, ...] = ()
        self._looked_ns = 0
        self._read_stats: tuple[FileStat, ...] = ()
        """The files as they were before the rows were last read."""
        self._forget_rows()

    def check_generation(self, files: list[OpenSource], checked_ns: int) -> None:
        """Begin another generation where the rows that were read are not there any more."""
        stats = _stats(files)
        if self._edges is None or (stats == self._seen and self._is_settled(stats)):
            return
        if not _holds(_rows(files), self._edges):
            self._begin_again()
        self._note(stats, checked_ns)

    def scan(
        self, files: list[OpenSource], checked_ns: int, read: ChatDecoder, missing_base: str | None
    ) -> ChatIndex:
        """Bring the index up to date with the rows."""
        index, stats = self.index, _stats(files)
        if index is None:
            self._forget_rows()
            index = self.index = ChatIndex(read, files[0].stat.btime_ns or files[0].stat.mtime_ns)
        elif stats == self._read_stats and self._is_settled(stats):
            return index
        try:
            self._take_new(_rows(files), index)
        except BaseException:
            self.index = None
            raise
        self._read_stats = stats
        self._note(stats, checked_ns)
        return index

    def add_unfinished_line(self, files: list[OpenSource], has_ended: Callable[[], bool]) -> None:
        """Do nothing: a row is whole."""

    def is_conclusive(self, files: list[OpenSource]) -> bool:
        stats = _stats(files)
        return stats == self._seen and self._is_settled(stats)

    def read(self, rows: Rows, at: int, count: int) -> bytes:
        """Return bytes of a row's frame. Raises Gone where the row is not the one that was indexed."""
        row, at = at >> FRAME_BITS, at & LARGEST_ID
        known = self._known(row)
        if known is None:
            raise Gone("the transcript was rewritten")
        length, fingerprint = known
        if at == 0 and count == length:
            data = rows.frame(row)
            if _fingerprint(data) != fingerprint:
                raise Gone("the transcript was rewritten")
            return data
        data, now = rows.part(row, at, count)
        if now != length or len(data) < count:
            raise Gone("the transcript was rewritten")
        return data

    def _take_new(self, rows: Rows, index: ChatIndex) -> None:
        last = self._ids[-1] if self._ids else -1
        for row, frame, is_copy in rows.after(last, CAP + 1 - len(self._ids)):
            if frame is None or len(frame) > LONGEST:
                index.skip(row << FRAME_BITS)
                frame = b""
            elif not is_copy:
                index.add_line(frame, row << FRAME_BITS)
            self._ids.append(row)
            self._lengths.append(len(frame))
            self._fingerprints.append(_fingerprint(frame))
        if self._ids:
            ends = [(self._ids[at], self._fingerprints[at]) for at in (0, -1)]
            self._edges = _Edges(ends[0], ends[1], len(self._ids))

    def _known(self, row: int) -> tuple[int, int] | None:
        ids = self._ids
        at = bisect_left(ids, row)
        if at >= len(ids) or ids[at] != row:
            return None
        return self._lengths[at], self._fingerprints[at]

    def _note(self, stats: tuple[FileStat, ...], checked_ns: int) -> None:
        self._seen, self._looked_ns = stats, checked_ns

    def _is_settled(self, stats: tuple[FileStat, ...]) -> bool:
        """Whether the last look was so long after the last write that an equal one finds the same."""
        return all(self._looked_ns - stat.ctime_ns > RACY_NS for stat in stats)

    def _forget_rows(self) -> None:
        self._ids = array("Q")
        self._lengths = array("Q")
        self._fingerprints = array("Q")
        self._read_stats = ()

    def _begin_again(self) -> None:
        super()._begin_again()
        self._edges = None
        self._forget_rows()


def _rows(files: list[OpenSource]) -> Rows:
    rows = files[0].rows
    assert rows is not None  # noqa: S101 - such a transcript is opened with its rows
    return rows


def _stats(files: list[OpenSource]) -> tuple[FileStat, ...]:
    return tuple(file.stat for file in files)


def _fingerprint(frame: bytes) -> int:
    return xxhash.xxh3_64_intdigest(frame)


def _holds(rows: Rows, edges: _Edges) -> bool:
    """Whether the rows that were read are still there."""
    if rows.count(edges.last[0]) != edges.rows:
        return False
    return all(_is_same(rows, *edge) for edge in {edges.first, edges.last})


def _is_same(rows: Rows, row: int, fingerprint: int) -> bool:
    try:
        frame = rows.frame(row)
    except (Gone, Malformed):
        frame = b""
    return _fingerprint(frame) == fingerprint
