"""The index of one chat: where each message stands in its transcript, never what it says.

Some 50 bytes a message, in columns; the uids of the records seen, as hashes; and for messages in objects
over a mebibyte the pieces to read them by. Pure: it is handed lines and gives rows; `transcript` reads.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from agents9core.kinds import PROSE_KINDS, Kinds
from agents9core.markdown import section_mark
from agents9core.record import LITERAL, NOTHING, Message, Part, Read, Record, Span, find_records, time_ns
from agents9core.render import Extent, Piece, cut, measure

CAP = 1 << 18
"""Messages an index holds; a chat with more says so."""
LONG = 1 << 20
"""Bytes of an object above which its messages are cut into pieces."""
_MESSAGE_BYTES = 50
_UID_BYTES = 100
_PIECE_BYTES = 150
_OWN_BYTES = 1500
_SKIPS_KEPT = 1000
_CHAINS_KEPT = 1000
_FACT = 4096
"""Characters of a fact that are kept: no file of one shows more."""


class Place(NamedTuple):
    """Where a message stands."""

    at: int
    """Offset of its object in the transcript (`transcript` says of which file)."""
    length: int
    """Bytes of the object; 0 for a message that is not in the file, whose pieces are literal."""
    nth: int
    """Which of the object's messages it is."""
    size: int
    """Bytes that it renders to."""
    pieces: list[Piece] | None
    """How to read it when its object is long."""


class ChatIndex:
    """The messages of a transcript, so far."""

    def __init__(self, read: Read, birth_ns: int, missing_base: str | None = None) -> None:
        self.read = read
        self.facts: dict[str, tuple[str, int]] = {}
        """What the transcript says of the session: the last value of each fact, and when it was said."""
        self.chains: dict[str, None] = {}
        """The side chains that begin here, the oldest first."""
        self.skipped = 0
        """Lines that could not be read, whole or in part."""
        self.skipped_at: list[int] = []
        """Where the first of them begin."""
        self.overflowed = False
        """Whether there are more messages than an index holds."""
        self.newest_ns = birth_ns
        self.markdown_size = 0
        """Bytes of the chat as one Markdown file."""
        self._kinds = Kinds()
        self._uids: set[int] = set()
        self._pieces: dict[int, list[Piece]] = {}
        self._piece_count = 0
        self._clock = birth_ns
        self._starts_at: int | None = None
        self._at = array("Q")
        self._length = array("I")
        self._nth = array("I")
        self._kind = array("H")
        self._time = array("q")
        self._size = array("Q")
        self._mark = array("I")
        self._section_end = array("Q")
        if missing_base is not None:
            self._add_notice(f"The rollout {missing_base}, which this one continues, is not to be found.\n")

    def __len__(self) -> int:
        return len(self._size)

    @property
    def nbytes(self) -> int:
        """Bytes of memory it holds, near enough."""
        rows = len(self) * _MESSAGE_BYTES + len(self._uids) * _UID_BYTES
        return rows + self._piece_count * _PIECE_BYTES + self._kinds.nbytes + _OWN_BYTES

    def begin_file(self) -> None:
        """Say that the next line is the first of another file: its first record speaks for it."""
        self._starts_at = None

    def take(self, line: bytes, at: int) -> None:
        """Index a whole line that stands at *at*. Nothing that it holds raises."""
        try:
            record = self._read(line)
        except (msgspec.DecodeError, RecursionError):
            self._take_damaged(line, at)
        else:
            self._take_object(record, line, at)

    def take_all(self, data: bytes, spans: Sequence[Span], at: int) -> None:
        """Index the whole lines of *data*, which stands at *at*."""
        if len(data) > LONG:  # and so may be one of them
            for begin, end in spans:
                self.take(data[begin:end], at + begin)
            return
        take = self._take_record
        for record, (begin, end) in zip(self.read.lines(data, spans), spans, strict=True):
            if record is None:
                self._take_damaged(data[begin:end], at + begin)
            elif record is not NOTHING or self._starts_at is None:
                take(record, at + begin, end - begin)

    def _take_damaged(self, line: bytes, at: int) -> None:
        for found in find_records(line, self._read):
            if found is None:
                self.skip(at)
            else:
                self._take_object(found.record, line[found.start : found.end], at + found.start)

    def take_whole(self, line: bytes, at: int) -> bool:
        """Index a line that may not be whole, if it is; say whether it was."""
        found = list(find_records(line, self._read))
        if None in found:
            return False
        for one in filter(None, found):
            self._take_object(one.record, line[one.start : one.end], at + one.start)
        return True

    def _read(self, data: bytes, raw: bool = False, /) -> Record:
        """Read an object; raw where its messages are cut."""
        return self.read(data, True) if raw or len(data) > LONG else self.read(data)

    def skip(self, at: int) -> None:
        """Count a line that is not read."""
        self.skipped += 1
        if len(self.skipped_at) < _SKIPS_KEPT:
            self.skipped_at.append(at)

    def place(self, id_: int) -> Place:
        """Return where message *id_* stands. Raises IndexError."""
        return Place(self._at[id_], self._length[id_], self._nth[id_], self._size[id_], self._pieces.get(id_))

    def kind(self, id_: int) -> str:
        """Return what message *id_* is called. Raises IndexError."""
        return self._kinds.names[self._kind[id_]]

    def size(self, id_: int) -> int:
        """Return how many bytes message *id_* renders to. Raises IndexError."""
        return self._size[id_]

    def time(self, id_: int) -> int:
        """Return when message *id_* was written, in nanoseconds since 1970. Raises IndexError."""
        return self._time[id_]

    def columns(self, start: int, stop: int) -> tuple[list[str], Sequence[int], Sequence[int]]:
        """Return kinds, sizes and times of the messages from *start* up to *stop*: `kind`, `size`, `time`."""
        names = self._kinds.names
        kinds = [names[number] for number in self._kind[start:stop]]
        return kinds, self._size[start:stop], self._time[start:stop]

    def section_at(self, offset: int) -> int:
        """Return the message whose section of the Markdown file holds the byte at *offset*."""
        return bisect_right(self._section_end, offset)

    def section(self, id_: int) -> tuple[int, int]:
        """Return where the section of message *id_* begins, and its mark (`markdown`)."""
        return (self._section_end[id_ - 1] if id_ else 0), self._mark[id_]

    def _take_object(self, record: Record, data: bytes, at: int) -> None:
        """Index what the object *data*, which stands at *at*, says."""
        if len(data) <= LONG:
            self._take_record(record, at, len(data))
        else:
            near = 0
            for nth, message in enumerate(self._news(record)):
                number = self._kinds.number(message)
                pieces, extent, near = cut(message.parts, data, number < PROSE_KINDS, near)
                self._keep(pieces)
                self._append(number, at, len(data), nth, extent)

    def _take_record(self, record: Record, at: int, length: int) -> None:
        """Index what an object says that stands at *at* and is not LONG."""
        for nth, message in enumerate(self._news(record)):
            number = self._kinds.number(message)
            self._append(number, at, length, nth, measure(message.parts, number < PROSE_KINDS))

    def _news(self, record: Record) -> list[Message]:
        """Take what a record says besides its messages, and return those that are to be shown."""
        if self._starts_at is None:
            self._starts_at = record.starts_at or 0
        ordinal, uid, messages = record.ordinal, record.uid, record.messages
        if ordinal is not None and 0 <= ordinal < self._starts_at:
            return []
        if record.begins is not None and len(self.chains) < _CHAINS_KEPT:
            self.chains[record.begins] = None
        if uid is not None:
            if hash(uid) in self._uids and not record.repeats:
                return []
            self._uids.add(hash(uid))
        when = time_ns(record.time) if record.time is not None else None
        if when is not None and messages:
            self._clock = when
        for name, value in record.facts:
            self.facts[name] = (value[:_FACT], self._clock if when is None else when)
        return messages if len(self._size) + len(messages) <= CAP else self._within_cap(messages)

    def _within_cap(self, messages: list[Message]) -> list[Message]:
        self.overflowed = True
        return messages[: CAP - len(self)]

    def _append(self, number: int, at: int, length: int, nth: int, extent: Extent) -> None:
        size, marks = extent
        mark, mark_bytes = section_mark(number < PROSE_KINDS, marks)
        clock = self._clock
        if clock > self.newest_ns or not self._size:
            self.newest_ns = clock
        self.markdown_size += self._kinds.frames[number] + size + mark_bytes
        self._at.append(at)
        self._length.append(length)
        self._nth.append(nth)
        self._kind.append(number)
        self._time.append(clock)
        self._size.append(size)
        self._mark.append(mark)
        self._section_end.append(self.markdown_size)

    def _keep(self, pieces: list[Piece]) -> None:
        self._pieces[len(self)] = pieces
        self._piece_count += len(pieces)

    def _add_notice(self, text: str) -> None:
        message = Message("system", [Part(LITERAL, text.encode())])
        self._keep([Piece(0, LITERAL, 0, 0, text.encode())])
        self._append(self._kinds.number(message), 0, 0, 0, measure(message.parts, is_prose=True))
