"""The directory of a session (an agent's, a stored one's, a thread's, a subagent's): facts, chat."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import msgspec

from agents9core.chat.transcript import TranscriptSnapshot
from agents9core.errors import Denied, Gone, NotFound, Unavailable
from agents9core.identity import version_of
from agents9core.node import Directory, File, Node, Reader, Row, Stat
from agents9core.tree.chat_dir import ChatDirectory, TranscriptFile
from agents9core.tree.chat_md import MarkdownFile
from agents9core.tree.facts import BY_NAME, Leaf, SessionFacts, line
from agents9core.tree.fixed import TextReader, listing_stat, present
from agents9core.tree.handle import PinnedTranscript, SessionHandle


class FactFile(File):
    """One leaf of a handle."""

    def __init__(self, name: str, handle: SessionHandle) -> None:
        self.name = name
        self._handle = handle
        self._number, self._leaf = BY_NAME[name]

    def stat(self) -> Stat:
        return self._read()[0]

    def open(self) -> Reader:
        return TextReader(self._read()[1], self._handle.session)

    def _read(self) -> tuple[Stat, bytes]:
        view = view_of(self._handle, scan=self._leaf.in_transcript)
        shown = self._leaf.show(view.known)
        if shown is None:
            raise Gone(self.name)
        text = line(shown)
        return view.fact_stat(self._number, self._leaf, text), text


class SessionView(msgspec.Struct, frozen=True, dict=True):
    """One look behind a handle, for its listing and its facts."""

    handle: SessionHandle
    known: SessionFacts
    snapshot: TranscriptSnapshot | None
    scan: bool
    """Whether it was to read what is new in the transcript."""

    @cached_property
    def number(self) -> int:
        """Block of path numbers of the handle's directory; its facts are leaves of it."""
        return self.handle.context.numbers.block("entry", self.handle.key)

    @property
    def pinned(self) -> PinnedTranscript | None:
        """The handle's transcript, for a node to hold."""
        return (
            PinnedTranscript(self.handle, self.snapshot.transcript, self.snapshot.generation)
            if self.snapshot
            else None
        )

    def require_transcript(self) -> PinnedTranscript:
        """Return the handle's transcript. Raises Gone where there is none."""
        if self.pinned is None:
            raise Gone("there is no transcript")
        return self.pinned

    @cached_property
    def subagents(self) -> Mapping[str, SessionHandle]:
        """The handles of the session's subagents by name; of the side chains those that are indexed.

        Raises Unavailable with *scan*; without, none of them is known then.
        """
        index = self.snapshot.transcript.index if self.snapshot else None
        try:
            return self.handle.subagents(tuple(index.chains) if index is not None else ())
        except Unavailable:
            if self.scan:
                raise
            return {}

    @cached_property
    def record_ns(self) -> int:
        """When the harness's record last moved; never before the process began."""
        return max(self.known.session.record_mtime_ns, self.known.started_ns)

    @cached_property
    def transcript_ns(self) -> int:
        """When the transcript or the record last moved."""
        written = self.snapshot.stat.mtime_ns if self.snapshot else self.record_ns
        return max(written, self.record_ns)

    def fact_stat(self, number: int, leaf: Leaf, text: bytes) -> Stat:
        """Return the stat of a fact's file; its version moves with its text."""
        moved_ns = self.transcript_ns if leaf.in_transcript else self.record_ns
        return Stat(self.number + number, version_of(text), False, len(text), moved_ns)

    def has(self, name: str) -> bool:
        """Whether a member applies."""
        if name not in self.handle.shows:
            return False
        if name in BY_NAME:
            return BY_NAME[name][1].show(self.known) is not None
        return bool(_BRANCHES[name].applies(self))

    def names(self) -> list[str]:
        """Return the members that apply, in the order of the tables."""
        return [name for name in (*BY_NAME, *_BRANCHES) if self.has(name)]

    def stat(self) -> Stat:
        """Return the stat of the handle's directory."""
        index = self.snapshot.transcript.index if self.snapshot else None
        newest_ns = max(self.transcript_ns, index.newest_ns if index else 0)
        version = version_of(self.names(), self.snapshot.number if self.snapshot else 0)
        return Stat(self.number, version, True, 0, newest_ns)


def view_of(handle: SessionHandle, scan: bool) -> SessionView:
    """Look behind a handle. Without *scan* the facts are those that an index happens to hold, and a
    transcript that cannot be read, or is a stale handle, does not cost the listing that the handle is in.
    Raises Gone; with *scan* Unavailable too.
    """
    session = handle.session()
    titles = handle.chat_format.titles if handle.chat_format else ()
    try:
        snapshot = handle.snapshot(scan and session.unreadable is None)
    except (Denied, Gone, Unavailable) as error:
        if scan and not isinstance(error, Denied):
            raise
        snapshot = None
    indexes = (snapshot.index, snapshot.transcript.index) if snapshot else ()
    facts = next((index.facts for index in indexes if index is not None), {})
    known = SessionFacts(session, partial(handle.cwd, session), handle.started_ns, facts, titles)
    return SessionView(handle, known, snapshot, scan)


class SessionDirectory(Directory):
    """An agent, or one of its threads: its facts, and its chat."""

    def __init__(self, name: str, handle: SessionHandle) -> None:
        self.name = name
        self._handle = handle

    def stat(self) -> Stat:
        return view_of(self._handle, scan=False).stat()

    def walk(self, name: str) -> Node:
        view = view_of(self._handle, scan=_asks_transcript(name))
        if not view.has(name):
            raise NotFound(name)
        return FactFile(name, self._handle) if name in BY_NAME else _BRANCHES[name].make(view)

    def members(self) -> Sequence[Row]:
        view = view_of(self._handle, scan=True)
        rows = [
            Row(name, view.fact_stat(number, leaf, line(shown)))
            for name, (number, leaf) in BY_NAME.items()
            if name in self._handle.shows and (shown := leaf.show(view.known)) is not None
        ]
        branches = [branch.make(view) for name, branch in _BRANCHES.items() if view.has(name)]
        return rows + present(branches)

    def media_type_of(self, name: str) -> str:
        return _MEDIA_TYPES.get(name) or super().media_type_of(name)


_MEDIA_TYPES = {"transcript": TranscriptFile.media_type, "chat.md": MarkdownFile.media_type}


def _asks_transcript(name: str) -> bool:
    """Whether a member of a handle is made from its transcript."""
    return name in ("chat", "chat.md", "agents") or (name in BY_NAME and BY_NAME[name][1].in_transcript)


class ChildrenDirectory(Directory):
    """`threads/` or `agents/`: a directory for each child of a handle."""

    def __init__(
        self, name: str, handle: SessionHandle, handles: Callable[[], Mapping[str, SessionHandle]]
    ) -> None:
        self.name = name
        self._handle = handle
        self._handles = handles

    def stat(self) -> Stat:
        return listing_stat(self._handle.context.numbers.block(self.name, self._handle.key), self.members())

    def walk(self, name: str) -> Node:
        handle = self._handles().get(name)
        if handle is None:
            raise NotFound(name)
        return SessionDirectory(name, handle)

    def members(self) -> Sequence[Row]:
        return present(SessionDirectory(name, handle) for name, handle in self._handles().items())


class _Branch(NamedTuple):
    """A member of a handle that is no fact."""

    applies: Callable[[SessionView], object]
    make: Callable[[SessionView], Node]


def _subagents(handle: SessionHandle) -> Mapping[str, SessionHandle]:
    return view_of(handle, scan=True).subagents


def _has_markdown(view: SessionView) -> bool:
    index = view.snapshot.transcript.index if view.snapshot else None
    is_read = view.snapshot is not None and view.handle.chat_format is not None
    return is_read and view.known.session.unreadable is None and not (index and index.overflowed)


_BRANCHES = {
    "transcript": _Branch(
        lambda view: view.snapshot and view.snapshot.is_file,
        lambda view: TranscriptFile(view.require_transcript()),
    ),
    "chat": _Branch(
        lambda view: view.known.session.id is not None and view.handle.chat_format is not None,
        lambda view: ChatDirectory(view.handle, view.pinned, view.known.session.id),
    ),
    "chat.md": _Branch(_has_markdown, lambda view: MarkdownFile(view.require_transcript())),
    "agents": _Branch(
        lambda view: view.subagents,
        lambda view: ChildrenDirectory("agents", view.handle, partial(_subagents, view.handle)),
    ),
    "threads": _Branch(
        lambda view: view.known.session.threads,
        lambda view: ChildrenDirectory("threads", view.handle, view.handle.threads),
    ),
}
