"""The kinds of handle: a running agent's, a stored session's, and a child's (subagent or thread)."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping

from agents9core.chat.decoder import ChatFormat
from agents9core.chat.transcript import TranscriptSnapshot
from agents9core.errors import Gone
from agents9core.harness.base import Harness
from agents9core.harness.table import HARNESSES
from agents9core.resolver import Agent, Resolver
from agents9core.session import Session, side_chain
from agents9core.stored import StoredSessions
from agents9core.tree.context import TreeContext
from agents9core.tree.facts import AGENT, STORED, SUBAGENT, THREAD
from agents9core.tree.handle import Children, SessionHandle


class _HarnessHandle(SessionHandle):
    """A handle that is no other handle's child."""

    def __init__(self, context: TreeContext, harness: Harness) -> None:
        self.context = context
        self.chat_format = harness.chat_format
        self._harness = harness

    @abstractmethod
    def _subagents(self) -> Mapping[str, Session]:
        """Return the subagents that have files of their own, by name. Raises Gone."""

    def _found_subagents(self) -> Mapping[str, Session]:
        """Return the subagents; an answer serves for a moment, for hundreds of questions. Raises Gone."""
        session = self.session()
        known = self.context.subagents.get(self.key)
        if known is None or known[0] != session:
            known = session, self._subagents()
            self.context.subagents.put(self.key, known)
        return known[1]

    def subagents(self, chains: Iterable[str]) -> Mapping[str, SessionHandle]:
        found, chat_format = self._found_subagents(), self._harness.subagent_format

        def make(name: str) -> SessionHandle:
            if name not in found:
                return self._side_chain(name, self.session())
            return ChildHandle(
                self, "agents", name, found[name].id, self._found_subagents, chat_format, SUBAGENT
            )

        return Children(dict.fromkeys((*found, *chains)), make)

    def _side_chain(self, chain: str, session: Session) -> SessionHandle:
        read = self._harness.side_chain
        chat_format = ChatFormat(read(chain)) if read else None

        def find() -> Mapping[str, Session]:
            now = self.session()
            return {chain: side_chain(now, chain)} if now.id == session.id else {}

        return ChildHandle(self, "agents", chain, chain, find, chat_format, SUBAGENT)


class AgentHandle(_HarnessHandle):
    """A process that is an agent."""

    shows = AGENT

    def __init__(self, context: TreeContext, resolver: Resolver, agent: Agent) -> None:
        super().__init__(context, HARNESSES[agent.harness])
        self.key = ("agent", agent)
        self.started_ns = resolver.started_ns(agent)
        self._resolver = resolver
        self._agent = agent

    def session(self) -> Session:
        return self._resolver.session(self._agent)

    def reusable_until(self) -> float:
        return self._resolver.reusable_until(self._agent)

    def cwd(self, session: Session) -> str | None:
        return self._resolver.cwd(self._agent)

    def threads(self) -> Mapping[str, SessionHandle]:
        return {
            id_: ChildHandle(self, "threads", id_, id_, self._threads, self.chat_format, THREAD)
            for id_ in self._threads()
        }

    def _subagents(self) -> Mapping[str, Session]:
        return self._resolver.finder(self._agent.harness).subagents(self.session())

    def _threads(self) -> Mapping[str, Session]:
        return {session.id: session for session in self.session().threads if session.id}


class StoredHandle(_HarnessHandle):
    """A stored session, by its id, whether an agent is in it or not."""

    shows = STORED

    def __init__(self, context: TreeContext, stored: StoredSessions, harness: str, id: str) -> None:
        """Raises Gone where there is no such session."""
        super().__init__(context, HARNESSES[harness])
        self.key = self.key_of(harness, id)
        self._stored = stored
        self._id = id
        self.started_ns = self.session().started_ns

    @staticmethod
    def key_of(harness: str, id: str) -> tuple[object, ...]:
        """Return the key of the handle of a session."""
        return ("kept", harness, id)

    def session(self) -> Session:
        return self._stored.session(self._harness.name, self._id)

    def reusable_until(self) -> float:
        return self._stored.reusable_until(self._harness.name, self._id)

    def has_ended(self) -> bool:
        return not self._stored.is_running(self._harness.name, self.session())

    def fresh_snapshot(self, scan: bool) -> TranscriptSnapshot:
        snapshot = super().fresh_snapshot(scan)
        if snapshot is None:
            raise Gone(self._id)
        return snapshot

    def _subagents(self) -> Mapping[str, Session]:
        return self._stored.subagents(self._harness.name, self.session())


class ChildHandle(SessionHandle):
    """A thread or a subagent of another handle: one of the sessions that *find* gives, by name."""

    def __init__(
        self,
        parent: SessionHandle,
        kind: str,
        name: str,
        id_: str | None,
        find: Callable[[], Mapping[str, Session]],
        chat_format: ChatFormat | None,
        shows: frozenset[str],
    ) -> None:
        """*kind*: the directory that it is listed in; *id_*: the session that its name stands for."""
        self.context = parent.context
        self.chat_format = chat_format
        self.key = (*parent.key, kind, name, id_)
        self.started_ns = parent.started_ns
        self.shows = shows
        self._parent = parent
        self._name = name
        self._id = id_
        self._find = find

    def has_ended(self) -> bool:
        return self._parent.has_ended()

    def session(self) -> Session:
        session = self._find().get(self._name)
        if session is None or session.id != self._id:
            raise Gone(self._name)
        return session
