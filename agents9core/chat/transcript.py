"""Transcripts: their files, their generations and their indexes.

A transcript is the files of a session in order: what it was forked from, up to where, and the one that grows.
It is known by the files' identities. When one of them shrinks, is replaced or is rewritten in place, the next
generation begins, with other path numbers, and what is held of the old one is Gone.

    snapshot(session) ── nothing moved since the last one? → that one (`snapshots`)
      └─ open each file from its pinned root
      └─ Transcript.check_generation ── one statx a file, and fingerprints where that leaves a doubt
           └─ Transcript.scan ── read what is new, whole lines → ChatIndex.add_lines

Each transcript has a lock of its own: the first scan of a long one blocks no other.
"""

import os
import threading
import time
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from itertools import accumulate, count
from typing import NamedTuple

import msgspec

from agents9core.chat.decoder import ChatDecoder
from agents9core.chat.fingerprint import Change, Fingerprint
from agents9core.chat.index import ChatIndex
from agents9core.chat.lines import LineScanner
from agents9core.chat.snapshots import SnapshotCache
from agents9core.errors import Gone, Malformed, NotFound, TooLarge, Unavailable
from agents9core.files.frames import Frames
from agents9core.files.inflated import Inflated
from agents9core.files.limits import LONGEST
from agents9core.files.root import Descriptor, Root
from agents9core.files.rows import Rows, RowSource
from agents9core.files.statx import MOVES, FileStat, moves, statx
from agents9core.files.zstd import LARGEST
from agents9core.identity import PathNumbers
from agents9core.session import Session, Source

BUDGET_BYTES = 64 << 20
"""Memory for indexes; beyond it the least recently used is dropped, and made again when it is asked for."""
MOST_UNHELD = 4096
"""Transcripts that are remembered though nothing holds them."""
_CHUNK = 1 << 18


class OpenSource(NamedTuple):
    """One file of a transcript, open as long as a snapshot of it is there."""

    descriptor: Descriptor
    stat: FileStat
    limit: int | None
    inflated: bool
    """Whether it stands for a compressed file, whose look *stat* is but for the size."""
    rows: Rows | None = None
    """The transcript's rows, where the file is of a database; it cannot be read then."""

    @property
    def fd(self) -> int:
        """Its descriptor."""
        return self.descriptor.fd

    def stat_again(self) -> "OpenSource":
        """Look at it again. Raises OSError."""
        return self if self.inflated else self._replace(stat=statx(self.fd))

    @property
    def end(self) -> int:
        """How many of its bytes count now."""
        return self.stat.size if self.limit is None else min(self.limit, self.stat.size)


class _Progress:
    """How far one file was read."""

    def __init__(self) -> None:
        self.fingerprint = Fingerprint()
        self.scanner = LineScanner()
        self.tail_tried = 0
        """Where the file ended when its last line, without a newline, was tried for a whole object."""

    @property
    def awaits_end(self) -> bool:
        """Whether there is a last line without a newline that was not tried yet."""
        return self.scanner.line_start < self.scanner.scanned != self.tail_tried


class Generations:
    """Numbers of generations. A transcript that was let go begins anew with one that it never had."""

    def __init__(self) -> None:
        self.first = 0
        """Of a transcript that is met for the first time."""
        self._numbers = count(1)

    def another(self) -> int:
        """Return a number that no transcript has had."""
        return next(self._numbers)

    def let_go(self) -> None:
        """Note that a transcript is remembered no more."""
        self.first = self.another()


class Transcript:
    """One transcript and its generation."""

    def __init__(self, key: tuple[object, ...], numbers: PathNumbers, generations: "Generations") -> None:
        self.generation = generations.first
        self.number = numbers.block("transcript", key, self.generation)
        self._generations = generations
        """Block of path numbers of this generation: message *i* is `number + i`."""
        self.lock = threading.RLock()
        self.index: ChatIndex | None = None
        """None: not made yet, or dropped for room."""
        self.checked_ns = 0
        """When the last check had been made: one that began before it may be the older of the two, though it
        comes later, and what has grown in between would seem to have shrunk."""
        self._key = key
        self._numbers = numbers
        self._progress: list[_Progress] = []

    def check_generation(self, files: list[OpenSource], checked_ns: int) -> None:
        """Begin another generation if one of the files is not the one that was read. Raises OSError."""
        if not self._progress:
            self._progress = [_Progress() for _ in files]
        for file, progress in zip(files, self._progress, strict=False):
            if progress.fingerprint.compare(file.fd, file.stat) is Change.REPLACED or _base_grew(
                file, progress
            ):
                self._begin_again()
                return
            if self.index is None or progress.scanner.scanned >= file.end:
                progress.fingerprint.accept(file.stat, checked_ns)

    def scan(
        self, files: list[OpenSource], checked_ns: int, read: ChatDecoder, missing_base: str | None
    ) -> ChatIndex:
        """Bring the index up to date with the files. Raises OSError."""
        index = self.index
        if index is None:
            index = self.index = ChatIndex(read, _birth_ns(files[-1].stat), missing_base)
            self._progress = []
        base = 0
        try:
            for number, file in enumerate(files):
                if number == len(self._progress):
                    self._progress.append(_Progress())
                    index.begin_file()
                _read_new_lines(file, self._progress[number], base, index)
                self._progress[number].fingerprint.accept(file.stat, checked_ns)
                base += file.end
        except BaseException:
            self.index = None  # what was read of the chunk is not all indexed: begin again next time
            raise
        return index

    def add_unfinished_line(self, files: list[OpenSource], has_ended: Callable[[], bool]) -> None:
        """Index the last line, which has no newline, if it is one whole object and its writer has ended.

        Raises OSError.
        """
        progress = self._progress[-1]
        begin, end = progress.scanner.line_start, progress.scanner.scanned
        if self.index is None or not progress.awaits_end or end - begin > LONGEST:
            return
        if not has_ended():
            return
        tail = os.pread(files[-1].fd, end - begin, begin)
        progress.tail_tried = end
        if self.index.add_unfinished_line(tail, sum(file.end for file in files[:-1]) + begin):
            progress.scanner.line_start = end

    def read(self, rows: Rows, at: int, count: int) -> bytes:
        """Return bytes of one of its *rows*. Raises Gone where they are not what was indexed."""
        raise Gone("the transcript was rewritten")

    def is_conclusive(self, files: list[OpenSource]) -> bool:
        """Whether a later stat that finds the files unmoved proves that nothing changed."""
        if len(self._progress) < len(files) or self._progress[-1].awaits_end:
            return False
        if any(file.inflated for file in files):
            return False
        pairs = zip(files, self._progress, strict=False)
        return all(progress.fingerprint.is_conclusive(file.stat) for file, progress in pairs)

    def _begin_again(self) -> None:
        self.generation = self._generations.another()
        self.number = self._numbers.block("transcript", self._key, self.generation)
        self.index = None
        self._progress = []


def _base_grew(file: OpenSource, progress: _Progress) -> bool:
    """Whether a file whose bytes were all there has more of them now, in the midst of the transcript."""
    seen = progress.fingerprint.seen
    return file.limit is not None and seen is not None and seen.size < file.end


def _birth_ns(stat: FileStat) -> int:
    return stat.btime_ns or stat.mtime_ns


def _read_new_lines(file: OpenSource, progress: _Progress, base: int, index: ChatIndex) -> None:
    scanner = progress.scanner
    while scanner.scanned < file.end:
        start = scanner.scanned
        data = os.pread(file.fd, min(_CHUNK, file.end - start), start)
        if not data:
            return
        if not start:
            progress.fingerprint.begin_at(index.read.slot_bytes(data))
        spans = scanner.feed(data)
        progress.fingerprint.update(data)
        if spans and spans[0][0] < 0:
            begin, end = spans.pop(0)
            _take_long_line(file, (start + begin, start + end), base, index)
        index.add_lines(data, spans, base + start)
    if file.limit is not None and scanner.line_start < scanner.scanned:
        _take_last_line(file, scanner, base, index)


def _take_last_line(file: OpenSource, scanner: LineScanner, base: int, index: ChatIndex) -> None:
    """Index the last line of a file that does not grow, though it lacks a newline."""
    begin, end = scanner.line_start, scanner.scanned
    _take_long_line(file, (begin, end), base, index)
    scanner.line_start = end


def _take_long_line(file: OpenSource, span: tuple[int, int], base: int, index: ChatIndex) -> None:
    """Index a line that is not all in one chunk: it is read once more, whole."""
    begin, end = span
    if end - begin > LONGEST:
        index.skip(base + begin)
    else:
        index.add_line(os.pread(file.fd, end - begin, begin), base + begin)


def _open_rows(root: Root, path: tuple[str, ...], source: RowSource) -> list[OpenSource]:
    rows = source.open(root, path)
    return [OpenSource(held, stat, None, False, rows) for held, stat in rows.files]


def _row_transcript() -> type[Transcript]:
    from agents9core.chat.row_transcript import RowTranscript

    return RowTranscript


class TranscriptSnapshot(msgspec.Struct, frozen=True, weakref=True):
    """A transcript at one moment; its files are open as long as this is referenced."""

    transcript: Transcript
    generation: int
    number: int
    files: list[OpenSource]
    index: ChatIndex | None
    """Up to date where the snapshot was asked to read; else None."""
    until: float = 0.0
    """By `time.monotonic`: before it, an fstat that finds its files unmoved proves it current."""

    @property
    def name(self) -> str:
        """Names the transcript and its generation, for clients."""
        return f"{self.number >> 20:x}"

    @property
    def is_file(self) -> bool:
        """Whether the transcript is lines of a file, not rows."""
        return self.files[-1].rows is None

    @property
    def stat(self) -> FileStat:
        """The stat of the file that grows."""
        return self.files[-1].stat

    def is_current(self) -> bool:
        """Whether a new snapshot would be equal. Called for each small request, so it calls little."""
        transcript, index = self.transcript, self.index
        if self.generation != transcript.generation or (index is not None and index is not transcript.index):
            return False
        try:
            for file in self.files:
                if moves(os.fstat(file.descriptor.fd)) != file.stat[MOVES:]:
                    return False
        except OSError:
            return False
        return True

    def read(self, at: int, count: int) -> bytes:
        """Return *count* bytes of the transcript from *at*.

        Raises Gone where they are not all there, or Unavailable.
        """
        file = self.files[0]
        if file.rows is not None:
            return self.transcript.read(file.rows, at, count)
        if len(self.files) > 1:
            starts = [0, *accumulate(file.end for file in self.files[:-1])]
            number = bisect_right(starts, at) - 1
            file, at = self.files[number], at - starts[number]
        try:
            data = os.pread(file.descriptor.fd, count, at)
        except OSError as error:
            raise Unavailable(str(error)) from error
        if len(data) < count:
            raise Gone("the transcript has shrunk")
        return data


class Transcripts:
    """All transcripts of this run. Their indexes stay within a budget of memory."""

    def __init__(self, numbers: PathNumbers, budget_bytes: int = BUDGET_BYTES) -> None:
        self._numbers = numbers
        self._budget_bytes = budget_bytes
        self._generations = Generations()
        self._known: weakref.WeakValueDictionary[tuple[object, ...], Transcript] = (
            weakref.WeakValueDictionary()
        )
        self._met: OrderedDict[Transcript, None] = OrderedDict()
        """Those that were asked for last, held or not."""
        self._inflated = Inflated()
        self._frames = Frames()
        self._snapshot_cache: SnapshotCache[TranscriptSnapshot] = SnapshotCache()
        self._recent: OrderedDict[Transcript, int] = OrderedDict()
        """Those with an index, the one used last at the end, and the bytes that each holds."""
        self._held_bytes = 0
        self._lock = threading.Lock()

    def snapshot(
        self, session: Session, read: ChatDecoder | None, has_ended: Callable[[], bool] = lambda: False
    ) -> TranscriptSnapshot:
        """Open a session's transcript and take a snapshot of it; with *read* also bring its index up to date.

        *has_ended*: whether no process is writing it, asked where its last line has no newline. A base that
        is not there, or is damaged, is missing. Raises NotFound where the file that grows is not there,
        Denied, Malformed, or Unavailable.
        """
        place = (session.sources, session.missing_base, session.chain)
        cached = self._snapshot_cache.get(place)
        if cached and (read is None or cached.index is not None) and cached.is_current():
            return cached
        until, checked_ns = self._snapshot_cache.expiry(), time.time_ns()
        try:
            files, missing_base = self._open_all(session)
            transcript = self._transcript(session, files, missing_base)
            snapshot = self._check(transcript, files, checked_ns, read, missing_base, has_ended, until)
        except OSError as error:
            raise Unavailable(str(error)) from error
        if snapshot.until:
            self._snapshot_cache.put(place, snapshot, until)
        return snapshot

    def _open_all(self, session: Session) -> tuple[list[OpenSource], str | None]:
        """Open the files in order, from after the last base that cannot be had; return which that is."""
        last = session.sources[-1]
        if last.rows is not None:
            return _open_rows(last.root, last.path, last.rows), None
        files: list[OpenSource] = []
        missing_base = session.missing_base
        for source in session.sources:
            try:
                files.append(self._open(source))
            except (NotFound, Malformed, TooLarge):
                if source is session.sources[-1]:
                    raise
                files, missing_base = [], source.path[-1]
        return files, missing_base

    def _open(self, source: Source) -> OpenSource:
        held, stat = source.root.open_with_stat(source.path)
        if source.framed:
            held, size = self._frames.hold(held.fd, stat)
            return OpenSource(held, stat._replace(size=size), source.limit, True)
        if source.compressed:
            held = self._inflated.open_inflated(
                held.fd, stat, LARGEST if source.limit is None else source.limit
            )
            stat = stat._replace(size=os.fstat(held.fd).st_size)
        return OpenSource(held, stat, source.limit, source.compressed)

    def _transcript(self, session: Session, files: list[OpenSource], missing_base: str | None) -> Transcript:
        rows = session.sources[-1].rows
        key: tuple[object, ...]
        if rows is not None:
            key = (*files[0].stat.identity, rows)
        else:
            key = (missing_base, session.chain, *((*file.stat.identity, file.limit) for file in files))
        with self._lock:
            transcript = self._known.get(key)
            if transcript is None:
                make = _row_transcript() if rows is not None else Transcript
                transcript = self._known[key] = make(key, self._numbers, self._generations)
            self._met[transcript] = None
            self._met.move_to_end(transcript)
            if len(self._met) > MOST_UNHELD:
                oldest, _ = self._met.popitem(last=False)
                self._held_bytes -= self._recent.pop(oldest, 0)
                self._generations.let_go()
        return transcript

    def _check(
        self,
        transcript: Transcript,
        files: list[OpenSource],
        checked_ns: int,
        read: ChatDecoder | None,
        missing_base: str | None,
        has_ended: Callable[[], bool],
        until: float,
    ) -> TranscriptSnapshot:
        if not transcript.lock.acquire(blocking=read is not None):
            # It is being read, so it was just checked: what is known of it now is enough.
            return TranscriptSnapshot(transcript, transcript.generation, transcript.number, files, None)
        try:
            if checked_ns <= transcript.checked_ns:
                checked_ns = time.time_ns()
                files = [file.stat_again() for file in files]
            transcript.checked_ns = time.time_ns()
            transcript.check_generation(files, checked_ns)
            index = None
            if read is not None:
                index = transcript.scan(files, checked_ns, read, missing_base)
                transcript.add_unfinished_line(files, has_ended)
                self._use(transcript, index.nbytes)
            stands = until if transcript.is_conclusive(files) else 0.0
            return TranscriptSnapshot(
                transcript, transcript.generation, transcript.number, files, index, stands
            )
        finally:
            transcript.lock.release()

    def _use(self, transcript: Transcript, nbytes: int) -> None:
        """Count *transcript* as the one used last, and drop indexes that are over the budget."""
        with self._lock:
            self._held_bytes += nbytes - self._recent.pop(transcript, 0)
            self._recent[transcript] = nbytes
            while self._held_bytes > self._budget_bytes and len(self._recent) > 1:
                oldest, dropped_bytes = self._recent.popitem(last=False)
                self._held_bytes -= dropped_bytes
                oldest.index = None
