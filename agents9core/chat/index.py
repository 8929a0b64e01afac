"""The chat index: where each message stands in its transcript, how large it is and when it was written.

Some 50 bytes a message, in columns; the uids of the records seen, as hashes; and for messages in objects over
a mebibyte the segments to read them by. Never the text. Pure: it is handed lines and gives rows; `transcript`
reads.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

import msgspec

from agents9core.chat.decoder import ChatDecoder, find_records
from agents9core.chat.kinds import PROSE_KINDS, Kinds
from agents9core.chat.markdown import section_mark
from agents9core.chat.records import LITERAL, NOTHING, Message, Part, Record, Span
from agents9core.chat.render import Extent, Measure, Segment, cut, measure
from agents9core.chat.timestamps import time_ns

CAP = 1 << 18
"""Messages an index holds; a chat with more is refused with TooLarge."""
LONG = 1 << 20
"""Bytes of an object above which its messages are cut into pieces."""
_MESSAGE_BYTES = 50
_UID_BYTES = 100
_PIECE_BYTES = 150
_OWN_BYTES = 1500
_MAX_SKIPS = 1000
_MAX_CHAINS = 1000
_MAX_FACTS_ABOUT = 256
_FACT = 4096
"""Characters of a fact that are stored: no file of one shows more."""


NewMessages: TypeAlias = tuple[list[Message], int, int, int]
"""Messages of one object: when they were written, where the object stands, and how long it is."""


class MessageLocation(NamedTuple):
    """Where a message stands."""

    at: int
    """Offset of its object in the transcript (`transcript` maps it to a file)."""
    length: int
    """Bytes of the object; 0 for a message that is not in the file, whose pieces are literal."""
    ordinal: int
    """Which of the object's messages it is."""
    size: int
    """Bytes that it renders to."""
    segments: list[Segment] | None
    """How to read it when its object is long."""


class IndexColumns(NamedTuple):
    """Messages, a column a field."""

    kinds: list[str]
    sizes: Sequence[int]
    times_ns: Sequence[int]
    tools: list[str | None]
    """Of calls and results the tool's own name."""


class ChatIndex:
    """The messages of a transcript, so far."""

    def __init__(self, read: ChatDecoder, birth_ns: int, missing_base: str | None = None) -> None:
        self.read = read
        self.facts: dict[str, tuple[str, int]] = {}
        """What the transcript states about the session: the last value of each fact, and when it was
        written."""
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
        self._facts_about: dict[int, dict[str, tuple[str, int]]] = {}
        """Facts about records that are not here yet, by the hash of their uid."""
        self._segments: dict[int, list[Segment]] = {}
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

    def add_line(self, line: bytes, at: int) -> None:
        """Index a whole line that stands at *at*. Nothing that it holds raises."""
        try:
            record = self._read(line)
        except (msgspec.DecodeError, RecursionError):
            self._add_damaged(line, at)
        else:
            self._add_object(record, line, at)

    def add_lines(self, data: bytes, spans: Sequence[Span], at: int) -> None:
        """Index the whole lines of *data*, which stands at *at*."""
        if len(data) > LONG:  # and so may be one of them
            for begin, end in spans:
                self.add_line(data[begin:end], at + begin)
            return
        records = self.read.lines(data, spans)
        damaged = [number for number, record in enumerate(records) if record is None]
        start = 0
        for stop in [*damaged, len(spans)]:
            self._add(cast(list[Record], records[start:stop]), spans[start:stop], at, measure)
            if stop < len(spans):
                begin, end = spans[stop]
                self._add_damaged(data[begin:end], at + begin)
            start = stop + 1

    def _add_damaged(self, line: bytes, at: int) -> None:
        for found in find_records(line, self._read):
            if found is None:
                self.skip(at)
            else:
                self._add_object(found.record, line[found.start : found.end], at + found.start)

    def add_unfinished_line(self, line: bytes, at: int) -> bool:
        """Index a line that may not be whole, if it is; say whether it was."""
        found = list(find_records(line, self._read))
        if None in found:
            return False
        for one in filter(None, found):
            self._add_object(one.record, line[one.start : one.end], at + one.start)
        return True

    def _read(self, data: bytes, raw: bool = False, /) -> Record:
        """Read an object; raw where its messages are cut."""
        return self.read(data, True) if raw or len(data) > LONG else self.read(data)

    def skip(self, at: int) -> None:
        """Count a line that is not read."""
        self.skipped += 1
        if len(self.skipped_at) < _MAX_SKIPS:
            self.skipped_at.append(at)

    def location(self, id_: int) -> MessageLocation:
        """Return where message *id_* stands. Raises IndexError."""
        return MessageLocation(
            self._at[id_], self._length[id_], self._nth[id_], self._size[id_], self._segments.get(id_)
        )

    def kind(self, id_: int) -> str:
        """Return what message *id_* is called. Raises IndexError."""
        return self._kinds.names[self._kind[id_]]

    def size(self, id_: int) -> int:
        """Return how many bytes message *id_* renders to. Raises IndexError."""
        return self._size[id_]

    def time(self, id_: int) -> int:
        """Return when message *id_* was written, in nanoseconds since 1970. Raises IndexError."""
        return self._time[id_]

    def columns(self, start: int, stop: int) -> IndexColumns:
        """Return what is known of the messages from *start* up to *stop*, a column a field."""
        names, tools, numbers = self._kinds.names, self._kinds.tools, self._kind[start:stop]
        kinds = [names[number] for number in numbers]
        return IndexColumns(
            kinds, self._size[start:stop], self._time[start:stop], [tools[number] for number in numbers]
        )

    def section_at(self, offset: int) -> int:
        """Return the message whose section of the Markdown file holds the byte at *offset*."""
        return bisect_right(self._section_end, offset)

    def section(self, id_: int) -> tuple[int, int]:
        """Return where the section of message *id_* begins, and its mark (`markdown`)."""
        return (self._section_end[id_ - 1] if id_ else 0), self._mark[id_]

    def _add_object(self, record: Record, data: bytes, at: int) -> None:
        """Index the record of the object *data*, which stands at *at*."""
        self._add([record], [(0, len(data))], at, measure if len(data) <= LONG else self._cutter(data))

    def _cutter(self, data: bytes) -> Measure:
        """Return what measures the messages of a long object, and keeps the pieces to read them by."""
        near = 0

        def cut_next(parts: list[Part], is_prose: bool) -> Extent:
            nonlocal near
            segments, extent, near = cut(parts, data, is_prose, near)
            self._keep(segments)
            return extent

        return cut_next

    def _add(self, records: list[Record], spans: Sequence[Span], at: int, measured: Measure) -> None:
        self._append(self._new_messages(records, spans, at), measured)

    def _new_messages(self, records: list[Record], spans: Sequence[Span], at: int) -> list[NewMessages]:
        """Take what records say besides their messages, and return those that have messages to show.

        This and `_append` are loops over all that a chunk says, in local names, for speed.
        """
        starts_at, clock, uids = self._starts_at, self._clock, self._uids
        new_messages = []
        for record, (begin, end) in zip(records, spans, strict=True):
            if starts_at is None:
                starts_at = self._starts_at = record.starts_at or 0
            if record is NOTHING or (record.ordinal is not None and 0 <= record.ordinal < starts_at):
                continue
            if record.begins is not None and len(self.chains) < _MAX_CHAINS:
                self.chains[record.begins] = None
            if record.uid is not None:
                uid = hash(record.uid)
                if uid in uids and not record.repeats:
                    continue
                uids.add(uid)
                if uid in self._facts_about:
                    self.facts.update(self._facts_about.pop(uid))
            when = time_ns(record.time) if record.time is not None else None
            if record.messages:
                clock = clock if when is None else when
                new_messages.append((record.messages, clock, at + begin, end - begin))
            if record.facts:
                self._note(record, clock if when is None else when)
        self._clock = clock
        return new_messages

    def _note(self, record: Record, when: int) -> None:
        """Take the facts of a record; those about another one wait until that is here."""
        facts = {name: (value[:_FACT], when) for name, value in record.facts}
        if record.about is None or hash(record.about) in self._uids:
            self.facts.update(facts)
            return
        self._facts_about[hash(record.about)] = facts
        if len(self._facts_about) > _MAX_FACTS_ABOUT:
            del self._facts_about[next(iter(self._facts_about))]

    def _append(self, new_messages: list[NewMessages], measured: Measure) -> None:
        kinds, frames, end, newest_ns = self._kinds, self._kinds.frames, self.markdown_size, self.newest_ns
        add_at, add_length, add_nth = self._at.append, self._length.append, self._nth.append
        add_kind, add_time, add_size = self._kind.append, self._time.append, self._size.append
        add_mark, add_end = self._mark.append, self._section_end.append
        room = CAP - len(self)
        if new_messages and not len(self):
            newest_ns = new_messages[0][1]
        for messages, clock, at, length in new_messages:
            if len(messages) > room:
                self.overflowed = True
                messages = messages[:room]
            room -= len(messages)
            if messages and clock > newest_ns:
                newest_ns = clock
            for nth, message in enumerate(messages):
                kind = kinds.number(message)
                size, marks = measured(message.parts, kind < PROSE_KINDS)
                mark, mark_bytes = section_mark(kind < PROSE_KINDS, marks)
                end += frames[kind] + size + mark_bytes
                add_at(at)
                add_length(length)
                add_nth(nth)
                add_kind(kind)
                add_time(clock)
                add_size(size)
                add_mark(mark)
                add_end(end)
        self.markdown_size, self.newest_ns = end, newest_ns

    def _keep(self, segments: list[Segment]) -> None:
        self._segments[len(self)] = segments
        self._piece_count += len(segments)

    def _add_notice(self, text: str) -> None:
        self._keep([Segment(0, LITERAL, 0, 0, text.encode())])
        self._append([([Message("system", [Part(LITERAL, text.encode())])], self._clock, 0, 0)], measure)
