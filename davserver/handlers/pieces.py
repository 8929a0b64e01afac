"""Pieces of the listings of long chats, cached for the next listing of the chat.

A message never changes, and a path number is never given to another: what was written of the messages from
one number on, as one template writes them, stays right. The pieces are compressed, to a fortieth, so that a
listing of 32,000 messages takes half a mebibyte and is there again in some milliseconds.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

import zstandard

from agents9core.node import Columns, Messages
from davserver.handlers.rows import SLICE_ROWS, bounds

BUDGET_BYTES = 4 << 20
_OWN_BYTES = 300
_LEVEL = 1

Key = tuple[str, int]
"""The template, and the path number of the first message."""


class Pieces:
    """Cached pieces, within a budget of memory: what was used least recently goes first."""

    def __init__(self) -> None:
        self._stored: OrderedDict[Key, bytes] = OrderedDict()
        self._held_bytes = 0
        self._lock = threading.Lock()

    def of(
        self, rows: Messages, start: int, template: str, write: Callable[[Columns], bytes]
    ) -> Iterator[bytes]:
        """Yield what *write* makes of the messages from number *start* on, some at a time.

        *template*: tells what *write* makes from what others do.
        """
        for first, end in bounds(start, len(rows)):
            if end - first < SLICE_ROWS:
                yield write(rows.columns(first, end))
                continue
            key = (template, rows[first].stat.path)
            piece = self.get(key)
            if piece is None:
                columns = rows.columns(first, end)
                piece = write(columns)
                if max(columns.mtimes_ns) <= time.time_ns():  # a time that is to come is shown as the present
                    self.put(key, piece)
            yield piece

    def get(self, key: Key) -> bytes | None:
        """Return a cached piece."""
        with self._lock:
            packed = self._stored.get(key)
            if packed is None:
                return None
            self._stored.move_to_end(key)
        return _unpacked(packed)

    def put(self, key: Key, piece: bytes) -> None:
        """Keep a piece that will not change."""
        packed = _packed(piece)
        with self._lock:
            if key in self._stored:
                return
            self._stored[key] = packed
            self._held_bytes += _cost(key, packed)
            while self._held_bytes > BUDGET_BYTES:
                self._held_bytes -= _cost(*self._stored.popitem(last=False))


def _packed(piece: bytes) -> bytes:
    return zstandard.compress(piece, _LEVEL)


def _unpacked(packed: bytes) -> bytes:
    return zstandard.decompress(packed)


def _cost(key: Key, packed: bytes) -> int:
    """Return the bytes that a piece takes, near enough."""
    return len(key[0]) + len(packed) + _OWN_BYTES
