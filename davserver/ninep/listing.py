"""One open directory being read: read(5) for 9P2000 and .u, Treaddir for .L.

The members are frozen when the directory is read from its start, so entries neither repeat nor get lost
while the directory changes. They may be hundreds of thousands and are made when asked for: a few hundred
are held at a time, and nothing is built again to go on. Pure.
"""

from collections.abc import Callable, Sequence

from agents9core.node import Columns, Directory, Row, columns
from davserver.ninep.errors import BadOffset

SLICE_ROWS = 256
"""The most rows made at once."""
TYPICAL_ENTRY_BYTES = 64
"""Between a .L entry and a stat record: so many rows are asked for as may still fit."""

Pack = Callable[[Columns, int], list[bytes]]
"""(rows, number of the first): the bytes of each entry."""


class Listing:
    """A directory that was opened, and how far it has been read."""

    __slots__ = ("_directory", "_index", "_members", "_offset")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._members: Sequence[Row] | None = None
        self._index = 0
        self._offset = 0

    def from_offset(self, offset: int, room: int, pack: Pack) -> bytes:
        """Return whole entries of at most *room* bytes from byte *offset*: 0, or where the last read ended.

        b"" at the end, and also when *room* is too small for one; the next read then goes on. Raises
        BadOffset, Gone, TooLarge.
        """
        if offset == 0:
            self._index = 0
        elif offset != self._offset:
            raise BadOffset(f"{offset}, not 0 or {self._offset}")
        data, self._index = self._fill(self._look(fresh=offset == 0), self._index, room, pack)
        self._offset = offset + len(data)
        return data

    def from_cookie(self, cookie: int, room: int, pack: Pack) -> bytes:
        """Return whole entries of at most *room* bytes from *cookie*: 0, or one that an earlier entry gave.

        b"" as for `from_offset`. Raises Gone, TooLarge.
        """
        data, _ = self._fill(self._look(fresh=cookie == 0), cookie, room, pack)
        return data

    def _look(self, *, fresh: bool) -> Sequence[Row]:
        """Return the members: a new look at the start, later the same one of a directory that still is."""
        if fresh or self._members is None:
            self._members = self._directory.members()
        else:
            self._directory.stat()
        return self._members

    @staticmethod
    def _fill(members: Sequence[Row], index: int, room: int, pack: Pack) -> tuple[bytes, int]:
        """Return the entries from *index* that fit, and the index of the next."""
        entries: list[bytes] = []
        while True:
            stop = index + min(SLICE_ROWS, room // TYPICAL_ENTRY_BYTES + 1)
            packed = pack(columns(members, index, stop), index)
            for entry in packed:
                room -= len(entry)
                if room < 0:
                    return b"".join(entries), index
                entries.append(entry)
                index += 1
            if not packed:
                return b"".join(entries), index
