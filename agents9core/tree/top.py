"""The tree, declared once.

    /
      version  roots  README
      active/
        claude/  codex/  omp/  pi/  dsh/  hermes/
          <pid>/
            via  session  cwd  title  name  status  waitingfor  model  version  started
            transcript
            chat/00000000-user ...
            chat.md             the same messages as one growing Markdown file
            agents/<name>/      {model,transcript,chat/,chat.md}: its subagents
            threads/<id>/       {title,cwd,status,transcript,chat/,chat.md}: where one process has several
      sessions/
        claude/  codex/  omp/  pi/  dsh/  hermes/
          <session id>/         {title,cwd,model,started,transcript,chat/,chat.md,agents/}: also the ended
      claude/  codex/  omp/  pi/  dsh/  the harness's transcript store, byte for byte
      skills/<harness>/<skill>/SKILL.md ...

A file that does not apply is absent. A new leaf is one row of `facts.LEAVES` and one row of the test of it.
"""

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

from agents9core import __version__
from agents9core.chat.transcript import Transcripts
from agents9core.errors import NotFound
from agents9core.harness.table import HARNESSES
from agents9core.identity import PathNumbers
from agents9core.node import Directory, Node, Row
from agents9core.resolver import Agent, Resolver
from agents9core.stored import StoredSessions
from agents9core.tree.context import TreeContext
from agents9core.tree.fixed import FixedDirectory, ScannedDirectory, TextFile, present
from agents9core.tree.handles import AgentHandle
from agents9core.tree.mirror import MirrorDirectory, MirroredStore
from agents9core.tree.session_dir import SessionDirectory
from agents9core.tree.sessions_dir import StoredHarnessDirectory
from agents9core.tree.skills import SkillsDirectory

README = """\
What the coding agents on this host say, as files. Everything is read-only.

active/HARNESS/PID/      an agent that runs: claude, codex, omp, pi, dsh, hermes
  via                    how its session was found: registry, fd, lock, daemon ... none
  session cwd title name status waitingfor model version started
                         one line each; a file that does not apply is absent
  transcript             what the harness writes, byte for byte, growing
  chat/ID-KIND           one file per message: 00000413-bash, 00000414-bash-result
  chat.md                the same messages as one growing Markdown file
  agents/NAME/           its subagents: model, transcript, chat
  threads/ID/            where one process has several threads of its own
sessions/HARNESS/ID/     a session that the harness's store keeps, also of an agent that has ended:
                         title, cwd, model, started, transcript, chat, chat.md, agents
HARNESS/                 the harness's transcript store, byte for byte
skills/HARNESS/SKILL/    the harness's own skills

Names of messages never change and their text never does. A new message is a new file.
"""


class HarnessDirectory(ScannedDirectory):
    """`active/<harness>/`: the agents of one harness, a directory a pid."""

    stat_seconds = 1.0

    def __init__(self, name: str, context: TreeContext, resolver: Resolver) -> None:
        super().__init__(name, context.numbers.block("harness", name))
        self._context = context
        self._resolver = resolver

    def walk(self, name: str) -> Node:
        if not (name.isascii() and name.isdigit()) or name != str(int(name[:20])):
            raise NotFound(name)
        return self._entry(self._resolver.agent(self.name, int(name)))

    def rows(self) -> list[Row]:
        return present(self._entry(agent) for agent in self._resolver.agents(self.name))

    def _entry(self, agent: Agent) -> SessionDirectory:
        return SessionDirectory(str(agent.pid), AgentHandle(self._context, self._resolver, agent))


class Top(FixedDirectory):
    """The top of the tree."""

    def __init__(self, context: TreeContext, nodes: Sequence[Node]) -> None:
        super().__init__("/", context.numbers.block("top"), nodes)
        self._context = context

    def one_request(self) -> AbstractContextManager[object]:
        return self._context.one_request()


def build_tree(resolver: Resolver) -> Directory:
    """Return the top of the tree over the agents that *resolver* finds."""
    numbers = PathNumbers()
    context = TreeContext(numbers, Transcripts(numbers))
    now_ns = time.time_ns()
    roots = "".join(f"{name}={resolver.root(name)}\n" for name in HARNESSES)
    texts = (("version", f"{__version__}\n"), ("roots", roots), ("README", README))
    files = [TextFile(name, text, numbers.block("top", name), now_ns) for name, text in texts]
    harnesses = [HarnessDirectory(name, context, resolver) for name in HARNESSES]
    active = FixedDirectory("active", numbers.block("active"), harnesses)
    stored = StoredSessions(resolver)
    kept_sessions = [StoredHarnessDirectory(name, context, stored) for name in HARNESSES]
    sessions = FixedDirectory("sessions", numbers.block("sessions"), kept_sessions)
    mirrors = [
        MirrorDirectory(
            name,
            MirroredStore(name, harness.stores, partial(resolver.homes, name), numbers, harness.store_files),
        )
        for name, harness in HARNESSES.items()
    ]
    skills = [
        SkillsDirectory(
            name, harness.skills, partial(resolver.homes, name), partial(_stores, resolver), numbers
        )
        for name, harness in HARNESSES.items()
    ]
    all_skills = FixedDirectory("skills", numbers.block("skills"), skills)
    return Top(context, [*files, active, sessions, *mirrors, all_skills])


def _stores(resolver: Resolver) -> list[str]:
    """Return every transcript store of every harness."""
    return [
        os.path.join(home, *store)
        for name, harness in HARNESSES.items()
        for home in resolver.homes(name)
        for store in harness.stores
    ]
