"""The tree, declared once.

    /
      version  roots  README
      active/
        claude/  codex/  omp/  dsh/  hermes/
          <pid>/
            via  session  cwd  title  name  status  waitingfor  model  version  started
            transcript
            chat/00000000-user ...
            chat.md             the same messages as one growing Markdown file
            agents/<name>/      {model,transcript,chat/,chat.md}: its subagents
            threads/<id>/       {title,cwd,status,transcript,chat/,chat.md}: where one process has several
      claude/  codex/  omp/  dsh/       the harness's transcript store, byte for byte
      skills/<harness>/<skill>/SKILL.md ...

A file that does not apply is absent. A new leaf is one row of `facts.LEAVES` and one row of the test of it.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

from agents9core import __version__
from agents9core.entry import AGENT, SUBAGENT, THREAD, ChildSeat, SeatDirectory
from agents9core.errors import NotFound
from agents9core.harness import HARNESSES
from agents9core.identity import PathNumbers
from agents9core.mirror import MirrorDirectory, Store
from agents9core.node import Directory, Node, Row, Stat
from agents9core.nodes import FixedDirectory, TextFile, listing_stat, present
from agents9core.resolver import Agent, Resolver
from agents9core.seat import Desk, Reading, Seat
from agents9core.session import Session, side_chain
from agents9core.skills import SkillsDirectory
from agents9core.transcript import Transcripts

LISTING_SECONDS = 1.0
"""How long the look of a harness's directory stands. A listing, and a walk to an agent, always look anew."""
README = """\
What the coding agents on this host say, as files. Everything is read-only.

active/HARNESS/PID/      an agent that runs: claude, codex, omp, dsh, hermes
  via                    how its session was found: registry, fd, lock, daemon ... none
  session cwd title name status waitingfor model version started
                         one line each; a file that does not apply is absent
  transcript             what the harness writes, byte for byte, growing
  chat/ID-KIND           one file per message: 00000413-bash, 00000414-bash-result
  chat.md                the same messages as one growing Markdown file
  agents/NAME/           its subagents: model, transcript, chat
  threads/ID/            where one process has several threads of its own
HARNESS/                 the harness's transcript store, byte for byte
skills/HARNESS/SKILL/    the harness's own skills

Names of messages never change and their text never does. A new message is a new file.
"""


class AgentSeat(Seat):
    """A process that is an agent."""

    shows = AGENT

    def __init__(self, desk: Desk, resolver: Resolver, agent: Agent) -> None:
        self.desk = desk
        self.reading = HARNESSES[agent.harness].reading
        self.key = ("agent", agent)
        self.started_ns = resolver.started_ns(agent)
        self._resolver = resolver
        self._agent = agent

    def session(self) -> Session:
        return self._resolver.session(self._agent)

    def cwd(self, session: Session) -> str | None:
        return self._resolver.cwd(self._agent)

    def subagents(self, chains: Iterable[str]) -> Mapping[str, Seat]:
        reading = HARNESSES[self._agent.harness].subagent_reading
        seats: dict[str, Seat] = {
            name: ChildSeat(self, "agents", name, session.id, self._subagents, reading, SUBAGENT)
            for name, session in self._subagents().items()
        }
        return seats | {chain: self._side_chain(chain, self.session()) for chain in chains}

    def _side_chain(self, chain: str, session: Session) -> Seat:
        read = HARNESSES[self._agent.harness].side_chain
        reading = Reading(read(chain)) if read else None

        def find() -> Mapping[str, Session]:
            now = self.session()
            return {chain: side_chain(now, chain)} if now.id == session.id else {}

        return ChildSeat(self, "agents", chain, chain, find, reading, SUBAGENT)

    def threads(self) -> Mapping[str, Seat]:
        return {
            id_: ChildSeat(self, "threads", id_, id_, self._threads, self.reading, THREAD)
            for id_ in self._threads()
        }

    def _subagents(self) -> Mapping[str, Session]:
        return self._resolver.subagents(self._agent, self.session())

    def _threads(self) -> Mapping[str, Session]:
        return {session.id: session for session in self.session().threads if session.id}


class HarnessDirectory(Directory):
    """`active/<harness>/`: the agents of one harness, a directory a pid."""

    def __init__(self, name: str, desk: Desk, resolver: Resolver) -> None:
        self.name = name
        self._desk = desk
        self._resolver = resolver
        self._looked = (float("-inf"), Stat(0, 0, True, 0, 0))

    def stat(self) -> Stat:
        """Look at the directory. Every walk passes here, so the last listing serves for a while."""
        looked, stat = self._looked
        if time.monotonic() - looked > LISTING_SECONDS:
            self.members()
            stat = self._looked[1]
        return stat

    def walk(self, name: str) -> Node:
        if not (name.isascii() and name.isdigit()) or name != str(int(name[:20])):
            raise NotFound(name)
        return self._entry(self._resolver.agent(self.name, int(name)))

    def members(self) -> Sequence[Row]:
        asked = time.monotonic()
        rows = present(self._entry(agent) for agent in self._resolver.agents(self.name))
        self._looked = (asked, listing_stat(self._desk.numbers.block("harness", self.name), rows))
        return rows

    def _entry(self, agent: Agent) -> SeatDirectory:
        return SeatDirectory(str(agent.pid), AgentSeat(self._desk, self._resolver, agent))


class Top(FixedDirectory):
    """The top of the tree."""

    def __init__(self, desk: Desk, nodes: Sequence[Node]) -> None:
        super().__init__("/", desk.numbers.block("top"), nodes)
        self._desk = desk

    def one_request(self) -> AbstractContextManager[object]:
        return self._desk.one_request()


def build_tree(resolver: Resolver) -> Directory:
    """Return the top of the tree over the agents that *resolver* finds."""
    numbers = PathNumbers()
    desk = Desk(numbers, Transcripts(numbers))
    now_ns = time.time_ns()
    roots = "".join(f"{name}={resolver.root(name)}\n" for name in HARNESSES)
    texts = (("version", f"{__version__}\n"), ("roots", roots), ("README", README))
    files = [TextFile(name, text, numbers.block("top", name), now_ns) for name, text in texts]
    harnesses = [HarnessDirectory(name, desk, resolver) for name in HARNESSES]
    active = FixedDirectory("active", numbers.block("active"), harnesses)
    mirrors = [
        MirrorDirectory(name, Store(name, harness.stores, partial(resolver.homes, name), numbers))
        for name, harness in HARNESSES.items()
    ]
    skills = [
        SkillsDirectory(
            name, harness.skills, partial(resolver.homes, name), partial(_stores, resolver), numbers
        )
        for name, harness in HARNESSES.items()
    ]
    all_skills = FixedDirectory("skills", numbers.block("skills"), skills)
    return Top(desk, [*files, active, *mirrors, all_skills])


def _stores(resolver: Resolver) -> list[str]:
    """Return every transcript store of every harness."""
    return [
        os.path.join(home, *store)
        for name, harness in HARNESSES.items()
        for home in resolver.homes(name)
        for store in harness.stores
    ]
