"""The fact files of a session: one line of text each, declared once.

Pure: from a view to the text of a file.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from agents9core.session import Session

_LONGEST_FACT = 4096


class SessionFacts(NamedTuple):
    """What one look behind a handle found."""

    session: Session
    cwd: Callable[[], str | None]
    started_ns: int
    from_transcript: dict[str, tuple[str, int]]
    """What the transcript states about the session."""
    titles: tuple[str, ...]


class Leaf(NamedTuple):
    """A fact file: a line of text, absent where there is nothing to say."""

    name: str
    show: Callable[[SessionFacts], str | None]
    in_transcript: bool = False
    """Whether the transcript says it, so that it moves with the transcript; else with the record."""


def _title(known: SessionFacts) -> str | None:
    said = (known.from_transcript.get(name, ("", 0))[0] for name in known.titles)
    return known.session.title or next((title for title in said if title), None)


def _status(known: SessionFacts) -> str | None:
    if known.session.status is not None:
        return known.session.status
    turn, when_ns = known.from_transcript.get("turn", (None, 0))
    return turn if turn == "idle" or when_ns >= known.started_ns else None


def _waitingfor(known: SessionFacts) -> str | None:
    return known.session.waitingfor if known.session.status == "waiting" else None


def _model(known: SessionFacts) -> str | None:
    said = (known.from_transcript.get(name, (None, 0))[0] for name in ("model", "begun_with"))
    return known.session.model or next(filter(None, said), None)


def _started(known: SessionFacts) -> str | None:
    if not known.started_ns:
        return None
    return datetime.fromtimestamp(known.started_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


LEAVES = (
    Leaf("via", lambda known: known.session.via),
    Leaf("session", lambda known: known.session.id),
    Leaf("cwd", lambda known: known.cwd()),
    Leaf("title", _title, in_transcript=True),
    Leaf("name", lambda known: known.session.name),
    Leaf("status", _status, in_transcript=True),
    Leaf("waitingfor", _waitingfor),
    Leaf("model", _model, in_transcript=True),
    Leaf("version", lambda known: known.session.version),
    Leaf("started", _started),
)
BY_NAME = {leaf.name: (number, leaf) for number, leaf in enumerate(LEAVES, 1)}
"""Each leaf and its number within the path numbers of its directory."""

_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_BIDI = [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SURROGATES = range(0xD800, 0xE000)
_SAFE = dict.fromkeys([*_CONTROLS, *_BIDI, *_SURROGATES], "\ufffd")


def line(text: str) -> bytes:
    """Return a fact as one line: nothing in it can move a terminal's cursor or turn its text around."""
    return text[:_LONGEST_FACT].translate(_SAFE).encode() + b"\n"


AGENT = frozenset({leaf.name for leaf in LEAVES} | {"transcript", "chat", "chat.md", "agents", "threads"})


THREAD = frozenset({"title", "cwd", "status", "transcript", "chat", "chat.md"})


SUBAGENT = frozenset({"model", "transcript", "chat", "chat.md"})


STORED = frozenset({"title", "cwd", "model", "started", "transcript", "chat", "chat.md", "agents"})
"""What the directory of each kind of handle may have."""
