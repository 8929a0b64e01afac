"""`chat/`: its messages, the directory of them, and `transcript`."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from agents9core.chat.decoder import read_object
from agents9core.chat.index import CAP, ChatIndex, MessageLocation
from agents9core.chat.render import Segment, make, render, segment_at
from agents9core.chat.transcript import OpenSource, TranscriptSnapshot
from agents9core.errors import Denied, Gone, NotFound, TooLarge, Unavailable, Unreadable
from agents9core.files.statx import FileStat
from agents9core.identity import LEAVES, version_of
from agents9core.node import Chat, Columns, File, Messages, Node, Reader, Row, Stat
from agents9core.tree.handle import PinnedTranscript, SessionHandle

_TRANSCRIPT_LEAF = LEAVES - 1
_DIGITS = 8
_SLICE = 256


class ChatMessages(Messages):
    """The rows of a chat in one snapshot; they are made as they are asked for."""

    def __init__(self, transcript: str, number: int, index: ChatIndex | None) -> None:
        self.transcript = transcript
        self._number = number
        self._index = index
        self._count = len(index) if index is not None else 0

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return [self._row(id_) for id_ in range(self._count)[index]]
        return self._row(range(self._count)[index])

    def columns(self, start: int, stop: int) -> Columns:
        ids = range(self._count)[start:stop]
        if self._index is None or not ids:
            return super().columns(0, 0)
        kinds, sizes, times_ns, tools = self._index.columns(ids.start, ids.stop)
        names = [f"{id_:08d}-{kind}" for id_, kind in zip(ids, kinds, strict=True)]
        paths = range(self._number + ids.start, self._number + ids.stop)
        return Columns(names, paths, [1] * len(ids), [False] * len(ids), sizes, times_ns, tools)

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, self._count, _SLICE):
            yield from self[start : start + _SLICE]

    def _row(self, id_: int) -> Row:
        if self._index is None:
            raise IndexError(id_)
        index = self._index
        stat = Stat(self._number + id_, 1, False, index.size(id_), index.time(id_))
        return Row(f"{id_:08d}-{index.kind(id_)}", stat)


class ChatDirectory(Chat):
    """`chat/` of a handle, for as long as it holds the same transcript."""

    name = "chat"

    def __init__(self, handle: SessionHandle, pinned: PinnedTranscript | None, session: str | None) -> None:
        """*pinned*: None while *session*, which the handle is in, has no transcript yet."""
        self._handle = handle
        self._pinned = pinned
        self._session = session

    def stat(self) -> Stat:
        """Return the stat. A directory whose transcript may not be read appears empty; listing it raises
        Denied."""
        try:
            return self._stat(self._snapshot())
        except (Denied, Unreadable):
            return self._stat(None)

    def members(self) -> Messages:
        snapshot = self._snapshot()
        if snapshot is None or snapshot.index is None:
            return ChatMessages(f"{self._empty_number() >> 20:x}", 0, None)
        if snapshot.index.overflowed:
            raise TooLarge(f"more than {CAP} messages; names below that still open")
        return ChatMessages(snapshot.name, snapshot.number, snapshot.index)

    def walk(self, name: str) -> Node:
        return self.step(name)[0]

    def step(self, name: str) -> tuple[Node, Stat]:
        pinned, snapshot = self._pinned, self._snapshot()
        if snapshot is None or snapshot.index is None or pinned is None:
            raise NotFound(name)
        index, number = snapshot.index, snapshot.number
        try:
            id_ = int(name[:_DIGITS])
        except ValueError:
            raise NotFound(name) from None
        if not 0 <= id_ < len(index) or name != f"{id_:08d}-{index.kind(id_)}":
            raise NotFound(name)
        stat = Stat(number + id_, 1, False, index.size(id_), index.time(id_))
        return MessageFile(name, pinned, number, id_), stat

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        handle = self._handle
        return handle.context.watchers.watch(handle.key, handle.session, wake, handle.has_ended)

    def _snapshot(self) -> TranscriptSnapshot | None:
        """Look at the transcript; None where there is none yet."""
        if self._pinned is not None:
            return self._pinned.snapshot()
        if self._handle.snapshot(scan=False) is not None or self._handle.session().id != self._session:
            raise Gone("the session has a transcript now")
        return None

    def _stat(self, snapshot: TranscriptSnapshot | None) -> Stat:
        if snapshot is None or snapshot.index is None:
            return Stat(self._empty_number(), 1, True, 0, self._handle.started_ns)
        number = self._handle.context.numbers.block("chat", self._handle.key, snapshot.number)
        return Stat(number, len(snapshot.index) + 1, True, 0, snapshot.index.newest_ns)

    def _empty_number(self) -> int:
        return self._handle.context.numbers.block("chat", self._handle.key, self._session)


class MessageFile(File):
    """One message."""

    def __init__(self, name: str, pinned: PinnedTranscript, number: int, id_: int) -> None:
        self.name = name
        self._pinned = pinned
        self._number = number
        self._id = id_

    def stat(self) -> Stat:
        index = self._pinned.snapshot().index
        id_ = self._id
        if index is None or id_ >= len(index):
            raise Gone("the transcript was rewritten")
        return Stat(self._number + id_, 1, False, index.size(id_), index.time(id_))

    def open(self) -> Reader:
        return self.start()[0]

    def start(self) -> tuple[Reader, Stat]:
        id_, snapshot = self._id, self._pinned.snapshot()
        index = chat_index(snapshot, id_)
        location = index.location(id_)
        stat = Stat(self._number + id_, 1, False, location.size, index.time(id_))
        if location.segments is None:
            return ShortReader(self._pinned, snapshot, location), stat
        return LongReader(self._pinned, location, location.segments), stat


def chat_index(snapshot: TranscriptSnapshot, id_: int = -1) -> ChatIndex:
    """Return the index of a snapshot. Raises Gone where it has none, or no message *id_*."""
    if snapshot.index is None or id_ >= len(snapshot.index):
        raise Gone("the transcript was rewritten")
    return snapshot.index


def rendered(snapshot: TranscriptSnapshot, index: ChatIndex, location: MessageLocation) -> bytes:
    """Read a message's object again and render it. Raises Gone where it is not what it was."""
    record = read_object(snapshot.read(location.at, location.length), index.read)
    if record is None or location.ordinal >= len(record.messages):
        raise Gone("the transcript was rewritten")
    text = render(record.messages[location.ordinal].parts)
    if len(text) != location.size:
        raise Gone("the transcript was rewritten")
    return text


class ShortReader(Reader):
    """The bytes of a message whose object is at most a mebibyte: held whole once one was asked for."""

    def __init__(
        self, pinned: PinnedTranscript, snapshot: TranscriptSnapshot, location: MessageLocation
    ) -> None:
        """*snapshot*: that of now, whose files are held open until the bytes were read."""
        self._pinned = pinned
        self._location = location
        self._snapshot: TranscriptSnapshot | None = snapshot
        self._text = b""

    def prepare(self) -> None:
        snapshot = self._snapshot
        if snapshot is not None:
            self._text = rendered(snapshot, chat_index(snapshot), self._location)
            self._snapshot = None

    def read(self, offset: int, count: int) -> bytes:
        if offset >= self._location.size or count <= 0:
            return b""
        snapshot = self._pinned.snapshot(scan=self._snapshot is not None)
        if self._snapshot is not None:
            self._snapshot = snapshot
            self.prepare()
        return self._text[offset : offset + count]


class LongReader(Reader):
    """The bytes of a message in a longer object: one piece is held, so reading on is linear."""

    def __init__(self, pinned: PinnedTranscript, location: MessageLocation, segments: list[Segment]) -> None:
        self._pinned = pinned
        self._location = location
        self._segments = segments
        self._start = 0
        self._made = b""

    def read(self, offset: int, count: int) -> bytes:
        if offset >= self._location.size or count <= 0:
            return b""
        snapshot = self._pinned.snapshot(scan=False)
        if not self._start <= offset < self._start + len(self._made):
            self._make(snapshot, segment_at(self._segments, offset))
        within = offset - self._start
        data = self._made[within : within + count]
        if not data:
            raise Gone("the transcript was rewritten")
        return data

    def _make(self, snapshot: TranscriptSnapshot, segment: Segment) -> None:
        self._start = segment.start
        self._made = segment_bytes(snapshot, self._location, segment)


def segment_bytes(snapshot: TranscriptSnapshot, location: MessageLocation, segment: Segment) -> bytes:
    """Return the bytes of a piece of a message. Raises Gone where they are not what they were."""
    if not segment.length:
        return segment.literal
    source = snapshot.read(location.at + segment.at, segment.length)
    try:
        return make(segment.how, source)
    except ValueError as error:
        raise Gone("the transcript was rewritten") from error


class TranscriptFile(File):
    """The transcript that grows, byte for byte."""

    name = "transcript"
    media_type = "application/x-ndjson"

    def __init__(self, pinned: PinnedTranscript) -> None:
        self._pinned = pinned

    def stat(self) -> Stat:
        return transcript_stat(self._pinned.snapshot(scan=False))

    def open(self) -> Reader:
        return TranscriptReader(self._pinned, self.stat().length)


def transcript_stat(snapshot: TranscriptSnapshot) -> Stat:
    """Return the stat of a transcript's file; any write moves its version."""
    file: FileStat = snapshot.stat
    version = version_of(file.size, file.mtime_ns, file.ctime_ns)
    return Stat(snapshot.number + _TRANSCRIPT_LEAF, version, False, file.size, file.mtime_ns)


def _tail(file: OpenSource, offset: int, count: int) -> bytes:
    if offset >= file.stat.size:
        return b""
    try:
        return os.pread(file.fd, min(count, file.stat.size - offset) if file.inflated else count, offset)
    except OSError as error:
        raise Unavailable(str(error)) from error


class TranscriptReader(Reader):
    """Reads through to the file, which may grow meanwhile."""

    def __init__(self, pinned: PinnedTranscript, promised: int) -> None:
        self._pinned = pinned
        self._promised = promised

    def read(self, offset: int, count: int) -> bytes:
        data = _tail(self._pinned.snapshot(scan=False).files[-1], offset, count)
        if not data and count and offset < self._promised:
            raise Gone("the transcript has shrunk")
        return data
