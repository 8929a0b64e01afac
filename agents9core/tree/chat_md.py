"""`chat.md`: a whole chat as one growing Markdown file, made as it is read.

Its size is known from the index. A read at any offset renders the sections that it returns, and of a
message in a long object a piece or two (`markdown` has the form, `render` the pieces).
"""

from bisect import bisect_right

from agents9core.chat import markdown
from agents9core.chat.index import ChatIndex, MessageLocation
from agents9core.chat.render import Segment, segment_at
from agents9core.chat.transcript import TranscriptSnapshot
from agents9core.errors import Gone
from agents9core.identity import LEAVES
from agents9core.node import File, Reader, Stat
from agents9core.tree.chat_dir import chat_index, rendered, segment_bytes
from agents9core.tree.handle import PinnedTranscript

_MARKDOWN_LEAF = LEAVES - 2


class MarkdownFile(File):
    """`chat.md`: the whole chat as one growing file."""

    name = "chat.md"
    media_type = "text/markdown; charset=utf-8"

    def __init__(self, pinned: PinnedTranscript) -> None:
        self._pinned = pinned

    def stat(self) -> Stat:
        snapshot = self._pinned.snapshot()
        return markdown_stat(snapshot, chat_index(snapshot))

    def open(self) -> Reader:
        self.stat()
        return MarkdownReader(self._pinned)


def markdown_stat(snapshot: TranscriptSnapshot, index: ChatIndex) -> Stat:
    """Return what a chat's Markdown file looks like. Raises Gone where the chat is too long for one."""
    if index.overflowed:
        raise Gone("the chat has more messages than its index")
    size = index.markdown_size
    return Stat(snapshot.number + _MARKDOWN_LEAF, size + 1, False, size, index.newest_ns)


class MarkdownReader(Reader):
    """Renders sections as they are read. The last one made is held, so reading on is linear."""

    def __init__(self, pinned: PinnedTranscript) -> None:
        self._pinned = pinned
        self._start = 0
        self._made = b""

    def read(self, offset: int, count: int) -> bytes:
        out = bytearray()
        snapshot = self._pinned.snapshot()
        index = chat_index(snapshot)
        while len(out) < count and offset + len(out) < index.markdown_size:
            at = offset + len(out)
            if not self._start <= at < self._start + len(self._made):
                self._start, self._made = section_part(snapshot, index, at)
                if not self._start <= at < self._start + len(self._made):
                    raise Gone("the transcript was rewritten")
            out += self._made[at - self._start :][: count - len(out)]
        return bytes(out)


def section_part(snapshot: TranscriptSnapshot, index: ChatIndex, offset: int) -> tuple[int, bytes]:
    """Return a part of the Markdown file that holds the byte at *offset*, and where the part begins.

    It is a whole section, or a piece of one whose message stands in a long object.
    """
    id_ = index.section_at(offset)
    start, mark = index.section(id_)
    kind, location = index.kind(id_), index.location(id_)
    before = markdown.opening(id_, kind, index.time(id_), mark)
    after = markdown.closing(kind, mark)
    is_prose = kind in markdown.PROSE
    if location.segments is None:
        text = rendered(snapshot, index, location)
        return start, before + (markdown.escaped(text) if is_prose else text) + after
    within = offset - start - len(before)
    end = location.size + (mark if is_prose else 0)
    if within < 0:
        return start, before
    if within >= end:
        return start + len(before) + end, after
    piece_start, made = _piece_part(snapshot, location, location.segments, within, is_prose)
    return start + len(before) + piece_start, made


def _piece_part(
    snapshot: TranscriptSnapshot,
    location: MessageLocation,
    segments: list[Segment],
    within: int,
    is_prose: bool,
) -> tuple[int, bytes]:
    """Return the piece that holds the byte at *within* of a section's text, and where it begins."""
    if not is_prose:
        segment = segment_at(segments, within)
        return segment.start, segment_bytes(snapshot, location, segment)
    number = bisect_right(segments, within, key=lambda segment: segment.start + segment.forged) - 1
    segment = segments[number]
    following = bytearray()
    for other in segments[number + 1 :]:
        if len(following) >= markdown.LOOKAHEAD:
            break
        following += segment_bytes(snapshot, location, other)
    made = markdown.escaped(segment_bytes(snapshot, location, segment), segment.at_line, bytes(following))
    return segment.start + segment.forged, made
