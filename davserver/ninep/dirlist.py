"""One open directory being read: read(5) for 9P2000 and .u, Treaddir for .L.

The members are frozen when the directory is read from its start, so entries neither repeat nor get lost
while the directory changes. They may be hundreds of thousands and are made when asked for: a few hundred
are held at a time, and nothing is built again to go on. Pure.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from agents9core.node import Directory, Row
from davserver.ninep.entry_cache import SHARED, SLICE_ROWS, Pack
from davserver.ninep.errors import BadOffset, NoRoom


class Listing:
    """A directory that was opened, and how far it has been read."""

    __slots__ = ("_directory", "_index", "_left", "_members", "_offset", "_packed")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._members: Sequence[Row] | None = None
        self._packed: tuple[int, list[bytes]] = (-1, [])
        """The slice that was read last, and where it begins."""
        self._index = 0
        self._offset = 0
        self._left = 0
        """What the last read left of its room: Linux asks for the rest of its buffer until nothing comes."""

    def from_offset(self, offset: int, room: int, pack: Pack) -> bytes:
        """Return whole entries of at most *room* bytes from byte *offset*: 0, or where the last read ended.

        b"" at the end, and when *room* is what the last read left and too small for one: the next read then
        goes on. Raises BadOffset, NoRoom, Gone, TooLarge.
        """
        if offset == 0:
            self._index = 0
        elif offset != self._offset:
            raise BadOffset(f"{offset}, not 0 or {self._offset}")
        members = self._get_members(fresh=offset == 0)
        data, index = self._fill(members, self._index, room, pack)
        if not data and (offset == 0 or room != self._left) and self._from(members, index, pack):
            raise NoRoom(f"{room} bytes are too few for an entry")
        self._index, self._offset, self._left = index, offset + len(data), room - len(data)
        return data

    def from_cookie(self, cookie: int, room: int, pack: Pack) -> bytes:
        """Return whole entries of at most *room* bytes from *cookie*: 0, or one that an earlier entry gave.

        b"" at the end. Raises NoRoom, Gone, TooLarge.
        """
        members = self._get_members(fresh=cookie == 0)
        data, index = self._fill(members, cookie, room, pack)
        if not data and self._from(members, index, pack):
            raise NoRoom(f"{room} bytes are too few for an entry")
        return data

    def _get_members(self, *, fresh: bool) -> Sequence[Row]:
        """Return the members: a new look at the start, later the same one of a directory that still is."""
        if fresh or self._members is None:
            self._members = self._directory.members()
            self._packed = (-1, [])
        else:
            self._directory.stat()
        return self._members

    def _fill(self, members: Sequence[Row], index: int, room: int, pack: Pack) -> tuple[bytes, int]:
        """Return the entries from *index* that fit, and the index of the next."""
        entries: list[bytes] = []
        while packed := self._from(members, index, pack):
            sizes = list(accumulate(map(len, packed)))
            fitting = bisect_right(sizes, room)
            entries += packed[:fitting]
            index += fitting
            if fitting < len(packed):
                break
            room -= sizes[-1]
        return b"".join(entries), index

    def _from(self, members: Sequence[Row], index: int, pack: Pack) -> list[bytes]:
        """Return the entries from *index* to the end of its slice; none at the end of the directory."""
        start = index - index % SLICE_ROWS
        if self._packed[0] != start:
            self._packed = (start, SHARED.slice_at(members, start, pack))
        return self._packed[1][index - start :]
