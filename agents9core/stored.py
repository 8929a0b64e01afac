"""The sessions in the harnesses' stores, of agents that run and of agents that have ended.

A session is known by its id. Where several homes of a harness have one of the same id, the first home's
counts. A listing reads the stores anew; a single session is searched for by itself.
"""

import logging
import threading
import time
from collections.abc import Mapping

from agents9core.caches import LRU
from agents9core.errors import Gone, TreeError
from agents9core.resolver import REUSE_SECONDS, Resolver
from agents9core.session import Session, Source

log = logging.getLogger(__name__)


class StoredSessions:
    """Finds sessions in the stores. May be used from several threads."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._lock = threading.Lock()
        self._answers: LRU[tuple[str, str], tuple[float, Session]] = LRU()

    def all(self, harness: str) -> Mapping[str, Source]:
        """Return every session of a harness by its id, with the file that grows, or that grew last.

        Raises Unavailable.
        """
        found: dict[str, Source] = {}
        for home in self._resolver.homes(harness):
            found = {**self._stored(harness, home), **found}
        return found

    def session(self, harness: str, id: str) -> Session:
        """Return the session of this id. Raises Gone where no store keeps it, or Unavailable."""
        asked = time.monotonic()
        with self._lock:
            known = self._answers.get((harness, id))
        if known and asked - known[0] < REUSE_SECONDS:
            return known[1]
        for home in self._resolver.homes(harness):
            if session := self._stored_session(harness, home, id):
                with self._lock:
                    self._answers[harness, id] = (asked, session)
                return session
        raise Gone(f"{harness}/{id}")

    def reusable_until(self, harness: str, id: str) -> float:
        """Return until when the last answer about a session may be used again, by `time.monotonic`."""
        with self._lock:
            known = self._answers.get((harness, id))
        return known[0] + REUSE_SECONDS if known else 0.0

    def subagents(self, harness: str, session: Session) -> Mapping[str, Session]:
        """Return the subagents that a session has started, by a name that never changes."""
        return self._resolver.finder(harness).subagents(session)

    def is_running(self, harness: str, stored: Session) -> bool:
        """Whether an agent that runs now is in this session, or has it open."""
        for agent in self._resolver.agents(harness):
            try:
                session = self._resolver.session(agent)
            except Gone:
                continue
            if any(_is_same(one, stored) for one in (session, *session.threads)):
                return True
        return False

    # A fault of a finder costs its answer, and nothing else.

    def _stored(self, harness: str, home: str) -> Mapping[str, Source]:
        try:
            return self._resolver.finder(harness).stored(home)
        except TreeError:
            raise
        except Exception:
            log.exception("%s: the sessions in %s cannot be listed", harness, home)
            return {}

    def _stored_session(self, harness: str, home: str, id: str) -> Session | None:
        try:
            return self._resolver.finder(harness).stored_session(home, id)
        except TreeError:
            raise
        except Exception:
            log.exception("%s: session %s in %s cannot be read", harness, id, home)
            return None


def _is_same(session: Session, stored: Session) -> bool:
    """Whether an agent's session is the stored one: of this id, and not in another home's file."""
    files = session.sources[-1:], stored.sources[-1:]
    return session.id == stored.id and (files[0] == files[1] or not all(files))
