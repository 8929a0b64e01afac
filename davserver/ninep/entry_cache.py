"""The packed entries of directories, made for a slice of rows at once; those of long chats are cached.

A message never changes and a path number is never given to another: the entries of a slice of messages stay
right, for every connection. Pure.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from agents9core.node import Columns, Messages, Row, columns

SLICE_ROWS = 256
"""The rows that are packed at once."""
MAX_SLICES = 256
"""Slices: 65,536 messages, at some 90 bytes each."""

Pack = Callable[[Columns, int], list[bytes]]
"""(rows, number of the first): the bytes of each entry."""


class EntryCache:
    """Slices of packed entries; what was used least recently goes first."""

    def __init__(self) -> None:
        self._stored: OrderedDict[tuple[Pack, int], list[bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def slice_at(self, rows: Sequence[Row], start: int, pack: Pack) -> list[bytes]:
        """Return the entries of the rows from number *start* on: SLICE_ROWS, or as many as there are."""
        if not isinstance(rows, Messages) or start + SLICE_ROWS > len(rows):
            return pack(columns(rows, start, start + SLICE_ROWS), start)
        key = (pack, rows[start].stat.path)
        with self._lock:
            if key in self._stored:
                self._stored.move_to_end(key)
                return self._stored[key]
        packed = pack(rows.columns(start, start + SLICE_ROWS), start)
        with self._lock:
            self._stored[key] = packed
            if len(self._stored) > MAX_SLICES:
                self._stored.popitem(last=False)
        return packed


SHARED = EntryCache()
"""Those of all connections."""
