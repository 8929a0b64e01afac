"""The contract between the tree and its front ends.

A front end is a function of three things: `Stat`, `File` and `Directory`. Its rules:

1. `Stat.path` and `Stat.version` are the identity. The same two numbers make the 9P qid and the HTTP ETag, so
the front ends cannot disagree. A path is never reused in one run; a version moves when the content does. 2. A
node holds identity, never an open file. Every operation looks again, and what has ended, or is another thing
now, is `Gone`. 3. A `Reader` never changes bytes that it has already given out. A read below the size that
was reported, of bytes that are no longer there, raises `Gone`; it never returns b"" there, since Linux 6.12's
9P client repeats such a read for ever. 4. `members()` is one look: the sequence it returns is a snapshot and
does not change, in number or in order, whatever the disk does. Making it is cheap also for 200,000 members;
rows are made when asked for, so take slices of a long one. What vanished before the listing is not in it. 5.
Nodes may be used from several threads at once. A Reader belongs to one thread at a time. 6. A front end wraps
what it asks for one request in `root.one_request()`: within it, in that thread, a thing that has been
examined once need not be examined again. A single question needs none. 7. Nobody waits in a node. Who follows
a chat leaves a function with it (`Chat.watch`) and is called.

Pure: no files, no sockets.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple


class Stat(NamedTuple):
    """One look at a node. Immutable, and cheap enough to make 32,000 of for one listing."""

    path: int
    """What the node is: 64 bits, never 0, never given to another thing in this run."""
    version: int
    """Moves when the content does: 64 bits. A directory's moves with its list of members."""
    is_dir: bool
    length: int
    """Bytes that reading gives, exactly; 0 for a directory."""
    mtime_ns: int
    """Nanoseconds since 1970 UTC; a directory's is its newest member's. May be before 1970."""

    @property
    def etag(self) -> str:
        """The entity tag without its quotes (RFC 9110 section 8.8.3), strong."""
        return f"{self.path:x}-{self.version:x}"


class Row(NamedTuple):
    """One member of a directory, as a listing shows it."""

    name: str
    stat: Stat


class Columns(NamedTuple):
    """Rows, a column a field: what a listing of thousands is written from."""

    names: Sequence[str]
    paths: Sequence[int]
    versions: Sequence[int]
    are_dirs: Sequence[bool]
    lengths: Sequence[int]
    mtimes_ns: Sequence[int]
    tools: Sequence[str | None] = ()
    """Of messages: the own name of the tool that is called or has answered, None for others; else empty."""


ROW_COLUMNS = 6
"""The first columns, which are those of `Row`."""


class Reader(ABC):
    """The bytes of one opened file."""

    @abstractmethod
    def read(self, offset: int, count: int) -> bytes:
        """Return up to *count* bytes from *offset*, b"" only at or after the end.

        A short answer is not the end. Raises Gone when the bytes can no longer be served.
        """

    def prepare(self) -> None:  # noqa: B027 - most readers have nothing to prepare
        """Do what makes the first read quick, where that takes time: a front end calls it after it has
        answered.

        From the snapshot that opening took; whether that is still current is checked when it is read. May be
        left out. Raises as `read` does, which then raises the same.
        """

    def close(self) -> None:  # noqa: B027 - most readers hold nothing
        """Release what the reader holds. Called once; the reader is not used after it."""


class Node(ABC):
    """A file or a directory, named by where it was walked to."""

    name: str

    @abstractmethod
    def stat(self) -> Stat:
        """Look at the node now. Raises Gone when it has ended."""


class File(Node):
    """A node with bytes."""

    media_type: str = "text/plain; charset=utf-8"
    """What the bytes are, as a Content-Type."""

    @abstractmethod
    def open(self) -> Reader:
        """Start reading. Raises Gone, or Denied."""

    def start(self) -> tuple[Reader, Stat]:
        """Open the file and return its stat too, in one call where that is cheaper. Raises Gone, or
        Denied."""
        stat = self.stat()
        return self.open(), stat


class Directory(Node):
    """A node with members."""

    @abstractmethod
    def walk(self, name: str) -> Node:
        """Return the member *name*: one spelling, no `.` or `..`. Raises NotFound, or Gone."""

    def step(self, name: str) -> tuple[Node, Stat]:
        """Walk to a member and return its stat too, in one call where that is cheaper. Raises NotFound, or
        Gone."""
        node = self.walk(name)
        return node, node.stat()

    def media_type_of(self, name: str) -> str:
        """Return the media type of the file *name*, if it is a member: its name says it, at no cost."""
        return File.media_type

    def one_request(self) -> AbstractContextManager[object]:
        """Answer what is done within from one snapshot of each thing. Asked of the top of a tree."""
        return nullcontext()

    @abstractmethod
    def members(self) -> Sequence[Row]:
        """Return a snapshot of the members, in listing order. Raises Gone, or TooLarge."""


class Messages(Sequence[Row]):
    """The members of a chat: row *i* is the message with id *i*."""

    transcript: str
    """Names the transcript and its generation: letters, digits and `-`. Ids mean something within one
    transcript only, so a reader that keeps an id keeps this beside it."""

    def columns(self, start: int, stop: int) -> Columns:
        """Return the rows from number *start* up to *stop*, or the last; see `columns`."""
        return _columns(self[start:stop])


def columns(rows: Sequence[Row], start: int, stop: int) -> Columns:
    """Return the rows from number *start* up to *stop*, or the last, without making those of a chat."""
    return rows.columns(start, stop) if isinstance(rows, Messages) else _columns(rows[start:stop])


def _columns(rows: Sequence[Row]) -> Columns:
    names, stats = [name for name, _ in rows], [stat for _, stat in rows]
    return Columns(names, *map(list, zip(*stats, strict=True))) if stats else Columns([], [], [], [], [], [])


class Chat(Directory):
    """A directory of messages: its members only grow within one transcript, and ids never move."""

    @abstractmethod
    def members(self) -> Messages: ...

    @abstractmethod
    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call *wake* whenever the chat of this place may have moved from now on; return what ends that.

        Also when it has another transcript, or has ended: the place is followed, not this node. *wake* is
        called from any thread, sometimes for nothing, and must not block; look after it, and once after this
        call. What ends it may be called from any thread; a wake may still be on its way then.
        """
