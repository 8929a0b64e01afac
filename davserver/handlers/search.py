"""The messages of a chat that hold a text, case folded, by reading them one after the other.

    scan   20 ms of reading, a piece at a time → Pause, in which other requests have their turn and a client
           that has left ends it → ... → the rows that were found

Nothing is kept but the rows found, at most 1000, and one piece of one message. The tree is asked as any
reader asks it, so what is searched is what is served.
"""

import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import cast

from agents9core.node import Chat, File, Messages, Row
from davserver.handlers.follow import Look
from davserver.http.chat_query import ChatQuery
from davserver.http.environ import Pause
from davserver.http.response import HTTPError, Later, Response

MAX_FOUND = 1000
PIECE_BYTES = 256 * 1024
TURN_SECONDS = 0.02
"""How long a scan works at a time; a request that comes meanwhile waits for no more than this and a piece."""

_Decoder = getincrementaldecoder("utf-8")


class TextSearch:
    """Looks for a text in one that comes in pieces, which may cut it, or a character, anywhere."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self._begin = _Decoder("replace")
        self._tail = ""

    def is_in(self, data: bytes) -> bool:
        """Return whether the text ends in this piece. Folding a part is folding the whole (Unicode 3.13)."""
        seen = self._tail + self._begin.decode(data).casefold()
        if self._text in seen:
            return True
        self._tail = seen[max(0, len(seen) - len(self._text) + 1) :]
        return False


class _SearchedMessage:
    """One message that is being read."""

    def __init__(self, row: Row, file: File, text: str) -> None:
        self.row = row
        self._reader = file.open()
        self._search = TextSearch(text)
        self._at = 0

    def read_on(self) -> bool | None:
        """Read a piece; tell whether the text is in the message, None while that is not known."""
        data = self._reader.read(self._at, PIECE_BYTES)
        self._at += len(data)
        if not data:
            return False
        return self._search.is_in(data) or (False if self._at >= self.row.stat.length else None)

    def close(self) -> None:
        self._reader.close()


class _SearchState:
    """How far a chat was read, and what was found."""

    def __init__(self, text: str) -> None:
        self.next: int | None = None
        """The message that is read next; None before the first turn."""
        self.found: list[Row] = []
        self._text = text
        self._message: _SearchedMessage | None = None

    def go_on(self, chat: Chat, rows: Messages, until: float) -> bool:
        """Read a piece, and on until a time; tell whether that was all there is, or all that is wanted."""
        number = self.next or 0
        while number < len(rows) and len(self.found) < MAX_FOUND:
            if self._message is None:
                row = rows[number]
                self._message = _SearchedMessage(row, cast(File, chat.walk(row.name)), self._text)
            is_found = self._message.read_on()
            if is_found:
                self.found.append(self._message.row)
            if is_found is not None:
                self.close()
                self.next = number = number + 1
            if time.monotonic() >= until:
                return False
        return True

    def close(self) -> None:
        message, self._message = self._message, None
        if message is not None:
            message.close()


class Searches:
    """The scans that are made now: one a client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: set[str] = set()

    @contextmanager
    def _only(self, client: str) -> Iterator[None]:
        with self._lock:
            if client in self._clients:
                raise HTTPError(429, "You are searching already; one at a time", ("Retry-After", "1"))
            self._clients.add(client)
        try:
            yield
        finally:
            with self._lock:
                self._clients.remove(client)

    def search(
        self,
        look: Look,
        asked: ChatQuery,
        client: str,
        listed: Callable[[Messages, Sequence[Row], bool], Response],
    ) -> Later:
        """Answer with what *listed* makes of the rows found in a chat, and whether more of it is unread.

        Raises HTTPError: what `ChatQuery.first` raises, 429.
        """
        with self._only(client), closing(_SearchState(asked.text or "")) as scan:
            while True:
                with look() as (chat, rows):
                    asked = asked._replace(transcript=asked.transcript or rows.transcript)
                    first = asked.first(rows)
                    scan.next = first if scan.next is None else scan.next
                    if scan.go_on(chat, rows, time.monotonic() + TURN_SECONDS):
                        return listed(rows, scan.found, scan.next < len(rows))
                yield Pause(0)
