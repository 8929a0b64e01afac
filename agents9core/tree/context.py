"""What all handles of one tree share: path numbers, transcripts, watchers, a request's snapshots."""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager

from agents9core.caches import Expiring
from agents9core.chat.transcript import Transcripts, TranscriptSnapshot
from agents9core.identity import PathNumbers
from agents9core.session import Session
from agents9core.tree.followers import Watchers

SUBAGENTS_SECONDS = 0.05
"""How long the subagents that were found serve: a listing of hundreds asks for each of them."""
MAX_SUBAGENT_ANSWERS = 64


class TreeContext:
    """What every handle of one server shares."""

    def __init__(self, numbers: PathNumbers, transcripts: Transcripts) -> None:
        self.numbers = numbers
        self.transcripts = transcripts
        self.watchers = Watchers()
        self.request = RequestSnapshots()
        self.subagents: Expiring[tuple[object, ...], tuple[Session, Mapping[str, Session]]] = Expiring(
            SUBAGENTS_SECONDS, MAX_SUBAGENT_ANSWERS
        )
        """Of handles: the session that was asked for its subagents, and those."""

    def one_request(self) -> AbstractContextManager[object]:
        """Keep each snapshot until the end, and answer the next one to the same handle from it."""
        return self.request


class RequestSnapshots(threading.local):
    """The request that a thread is answering."""

    snapshots: dict[tuple[object, ...], TranscriptSnapshot] | None = None
    """What it has opened; None: the thread is in no request."""

    def __enter__(self) -> None:
        self.snapshots = {}

    def __exit__(self, *_: object) -> None:
        self.snapshots = None
