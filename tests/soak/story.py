"""What is written, and the book of it: which names and bytes a client may be told, and which it must be.

A generation of a transcript is a Tale. What was written before a request began must be in its answer, what is
begun after it ended cannot be. Where an agent has changed its session about then, either tale is right.
"""

import json
import os
import random
import threading
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

STALE_SECONDS = 0.15
"""How old the answer to "who is there, in which session" may be: 0.1 s are promised."""
FOREVER = float("inf")
Messages = list[tuple[str, bytes]]
"""Kinds and texts."""
Turn = tuple[dict[str, object], Messages]
START = 5000
TEXT = r'the agent reads a file and says what naïve readers 漢字 🤔 \ " see of </b> it \n `x`'
WORDS = [*TEXT.split(), "\t", "\u2028"]


@dataclass
class Tale:
    """One generation of one transcript."""

    path: Path
    begins: float
    ends: float = FOREVER
    names: list[str] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    said_at: list[float] = field(default_factory=list)
    """When each message was there whole."""
    written_at: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    """How long the file was at each of `written_at`."""

    def said_by(self, moment: float) -> int:
        """Return how many messages were there whole."""
        return bisect_right(self.said_at, moment)

    def length_by(self, moment: float) -> int:
        """Return how many bytes were there."""
        at = bisect_right(self.written_at, moment)
        return self.lengths[at - 1] if at else 0


@dataclass
class Agent:
    """A process, and its tales one after the other."""

    harness: str
    pid: int
    begins: float = FOREVER
    """From when on it may be there, and from when on it must."""
    is_there: float = FOREVER
    leaves: float = FOREVER
    """Until when it must be there, and until when it may."""
    ends: float = FOREVER
    tales: list[Tale] = field(default_factory=list)

    @property
    def tale(self) -> Tale:
        return self.tales[-1]

    @property
    def path(self) -> str:
        return f"active/{self.harness}/{self.pid}"

    def told(self, begun: float, ended: float) -> list[Tale]:
        """Return the tales that a request of then may be about."""
        return [tale for tale in self.tales if tale.begins <= ended and tale.ends >= begun - STALE_SECONDS]

    def stays(self, begun: float, ended: float) -> bool:
        """Whether a request of then must be answered: by one tale, of an agent that is there all the time."""
        return (
            self.is_there <= begun - STALE_SECONDS
            and ended <= self.leaves
            and len(self.told(begun, ended)) == 1
        )


def some_text(dice: random.Random) -> str:
    """Return what somebody might say: mostly short, now and then a megabyte."""
    size = dice.choices((12, 300, 40_000, 250_000), (50, 40, 9, 0.3))[0]
    return " ".join(dice.choices(WORDS, k=dice.randint(1, size)))


def shown(text: str) -> bytes:
    return (text if text.endswith("\n") else text + "\n").encode()


def claude_turn(dice: random.Random, dumps: Callable[[object], str]) -> Iterator[Turn]:
    """Return records of a claude's turn, each with the kinds and texts of its messages.

    A call's input is shown as *dumps* writes it.
    """

    def record(role: str, content: object) -> dict[str, object]:
        return {"type": role, "uuid": str(uuid.uuid4()), "message": {"role": role, "content": content}}

    call = str(uuid.uuid4())
    asked, thought, answer, output = (some_text(dice) for _ in range(4))
    yield record("user", asked), [("user", shown(asked))]
    blocks = [{"type": "thinking", "thinking": thought}, {"type": "text", "text": answer}]
    yield record("assistant", blocks), [("thinking", shown(thought)), ("assistant", shown(answer))]
    argument = {"command": some_text(dice)[:500]}
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": argument}
    yield record("assistant", [use]), [("bash", shown("Bash\n" + dumps(argument)))]
    result = {"type": "tool_result", "tool_use_id": call, "content": output}
    yield record("user", [result]), [("bash-result", shown(output))]


def codex_turn(dice: random.Random, dumps: Callable[[object], str]) -> Iterator[Turn]:
    """Return records of a codex's turn, as `claude_turn`."""

    def record(**payload: object) -> dict[str, object]:
        return {"type": "response_item", "payload": payload}

    call = str(uuid.uuid4())
    asked, answer, output = (some_text(dice) for _ in range(3))
    content = [{"type": "input_text", "text": asked}]
    yield record(type="message", role="user", content=content), [("user", shown(asked))]
    content = [{"type": "output_text", "text": answer}]
    yield record(type="message", role="assistant", content=content), [("assistant", shown(answer))]
    arguments = dumps({"command": some_text(dice)[:500]})
    asks = record(type="function_call", name="shell", call_id=call, arguments=arguments)
    yield asks, [("shell", shown("shell\n" + arguments))]
    gets = record(type="function_call_output", call_id=call, output=output)
    yield gets, [("shell-result", shown(output))]


TURNS = {"claude": claude_turn, "codex": codex_turn}


class Story:
    """The made machine below *base*, its agents, and who writes for them in a thread of its own."""

    def __init__(self, base: Path, seed: int, agents: int = 20) -> None:
        self.proc = base / "proc"
        self.home = base / "home"
        self.ended = base / "ended"
        for directory in (self.proc, self.ended, self.home / ".claude" / "sessions", self._projects):
            directory.mkdir(parents=True)
        (self.proc / "stat").write_text("btime 1795000000\n")
        (self.proc / "locks").write_text("")
        self._dice = random.Random(seed)
        self._pids = iter(range(1000, 1_000_000))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name="story")
        self.failure: BaseException | None = None
        self.counts = {"lines": 0, "/clears": 0, "rewrites": 0, "agents": 0}
        self.agents: list[Agent] = []
        """Those that are there, and those that were a while ago."""
        self.present: list[Agent] = []
        for number in range(agents):
            self._begin("codex" if number % 3 == 2 else "claude")

    @property
    def _projects(self) -> Path:
        return self.home / ".claude" / "projects" / "-srv-soak"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def there(self, harness: str, begun: float, ended: float) -> tuple[set[int], set[int]]:
        """Return the pids that a listing of then must have, and those that it may have."""
        ours = [agent for agent in list(self.agents) if agent.harness == harness]
        must = {
            agent.pid for agent in ours if agent.is_there <= begun - STALE_SECONDS and ended <= agent.leaves
        }
        may = {agent.pid for agent in ours if agent.begins <= ended and begun - STALE_SECONDS <= agent.ends}
        return must, may

    def _write(self) -> None:
        deeds = {self._talk: 84, self._clear: 5, self._rewrite: 3, self._replace: 2, self._succeed: 6}
        try:
            while not self._stop.wait(self._dice.expovariate(25)):
                [deed] = self._dice.choices(list(deeds), list(deeds.values()))
                deed(self._dice.choice(self.present))
        except BaseException as exc:  # noqa: BLE001 - `run` raises it
            self.failure = exc

    # -- what agents do

    def _talk(self, agent: Agent) -> None:
        """Say something: a line at once, or torn in two."""
        tale = agent.tale
        with tale.path.open("ab", buffering=0) as out:
            for line, messages in self._turn(agent):
                self._extract(out, tale, line, messages)

    def _clear(self, agent: Agent) -> None:
        """Begin another session."""
        self.counts["/clears"] += 1
        self._begin_tale(agent)

    def _rewrite(self, agent: Agent) -> None:
        """Write the transcript anew in its place."""
        self.counts["rewrites"] += 1
        old = agent.tale
        tale = Tale(old.path, time.monotonic())
        agent.tales.append(tale)
        with tale.path.open("r+b", buffering=0) as out:
            out.truncate(0)
            for line, messages in [*self._heading(agent), *self._turn(agent)]:
                self._extract(out, tale, line, messages)
        old.ends = time.monotonic()

    def _replace(self, agent: Agent) -> None:
        """Put another file in the place of the transcript."""
        self.counts["rewrites"] += 1
        old = agent.tale
        tale = Tale(old.path, FOREVER)
        other = tale.path.with_suffix(".new")
        with other.open("wb", buffering=0) as out:
            for line, messages in [*self._heading(agent), *self._turn(agent)]:
                self._extract(out, tale, line, messages)
        tale.begins = time.monotonic()
        agent.tales.append(tale)
        other.rename(tale.path)
        if agent.harness == "codex":
            self._hold_open(agent)
        old.ends = time.monotonic()

    def _succeed(self, agent: Agent) -> None:
        """End, and let another agent begin."""
        agent.leaves = time.monotonic()
        (self.proc / str(agent.pid)).rename(self.ended / str(agent.pid))
        agent.ends = time.monotonic()
        self.present.remove(agent)
        self._begin(agent.harness)
        self._forget_ended()

    # -- how it is written

    def _turn(self, agent: Agent) -> list[tuple[bytes, Messages]]:
        dumps = partial(json.dumps, ensure_ascii=self._dice.random() < 0.5)
        turn = TURNS[agent.harness](self._dice, dumps)
        return [(self._line(record, dumps), messages) for record, messages in turn]

    def _heading(self, agent: Agent) -> list[tuple[bytes, Messages]]:
        if agent.harness == "claude":
            return []
        thread = agent.tale.path.stem[-36:]
        return [(self._line({"type": "session_meta", "payload": {"id": thread, "source": "cli"}}), [])]

    def _line(self, record: dict[str, object], dumps: Callable[[object], str] = json.dumps) -> bytes:
        stamp = {"timestamp": f"2026-11-02T10:00:{self._dice.randrange(60):02d}.000Z", **record}
        return dumps(stamp).encode() + b"\n"

    def _extract(self, out, tale: Tale, line: bytes, messages: Messages) -> None:
        """Write a line, and into the book: first that it may be there, at last that it must."""
        self.counts["lines"] += 1
        for kind, text in messages:
            name = f"{len(tale.names):08d}-{kind}"
            tale.texts[name] = text
            tale.names.append(name)
        tale.data += line
        cut = self._dice.randrange(len(line)) if self._dice.random() < 0.2 else 0
        for part in (line[:cut], line[cut:]):
            out.write(part)
        now = time.monotonic()
        tale.said_at += [now] * len(messages)
        tale.lengths.append(len(tale.data))
        tale.written_at.append(now)

    def _begin(self, harness: str) -> None:
        self.counts["agents"] += 1
        agent = Agent(harness, next(self._pids))
        self._make_process(agent)
        self._begin_tale(agent)
        self.agents.append(agent)
        self.present.append(agent)
        agent.begins = time.monotonic()
        (self.ended / f"new-{agent.pid}").rename(self.proc / str(agent.pid))
        agent.is_there = time.monotonic()

    def _begin_tale(self, agent: Agent) -> None:
        session = str(uuid.uuid4())
        if agent.harness == "claude":
            path = self._projects / f"{session}.jsonl"
        else:
            day = self.home / ".codex" / "sessions" / "2026" / "11" / "02"
            day.mkdir(parents=True, exist_ok=True)
            path = day / f"rollout-2026-11-02T10-00-00-{session}.jsonl"
        tale = Tale(path, FOREVER)
        before = agent.tales[-1:]
        agent.tales.append(tale)
        with path.open("wb", buffering=0) as out:
            for line, messages in [*self._heading(agent), *self._turn(agent)]:
                self._extract(out, tale, line, messages)
        tale.begins = time.monotonic()
        if agent.harness == "claude":
            self._register(agent, session)
        else:
            self._hold_open(agent)
        for old in before:
            old.ends = time.monotonic()

    def _register(self, agent: Agent, session: str) -> None:
        """Let a claude's record name its session, at once."""
        record = {"pid": agent.pid, "sessionId": session, "cwd": "/srv/soak", "procStart": str(START)}
        place = self.home / ".claude" / "sessions" / f"{agent.pid}.json"
        other = place.with_suffix(".new")
        other.write_text(json.dumps(record))
        other.rename(place)

    def _hold_open(self, agent: Agent) -> None:
        """Let a codex have its rollout open, and no other."""
        process = self.proc / str(agent.pid)
        if not process.exists():
            process = self.ended / f"new-{agent.pid}"
        (process / "new").symlink_to(agent.tale.path)
        (process / "new").rename(process / "fd" / "20")

    def _make_process(self, agent: Agent) -> None:
        process = self.ended / f"new-{agent.pid}"
        (process / "fd").mkdir(parents=True)
        fields = ["S", "1", *["0"] * 17, str(START), *[str(agent.pid * 100 + n) for n in range(30)]]
        (process / "stat").write_text(f"{agent.pid} ({agent.harness}) {' '.join(fields)}\n")
        (process / "status").write_text(f"Uid:\t{os.getuid()}\t{os.getuid()}\n")
        (process / "cmdline").write_bytes(agent.harness.encode() + b"\0")
        (process / "environ").write_bytes(b"HOME=" + os.fsencode(self.home) + b"\0")
        (process / "cwd").symlink_to("/srv/soak")

    def _forget_ended(self) -> None:
        """Drop what nobody can ask about any more."""
        long_ago = time.monotonic() - 30
        for agent in [agent for agent in self.agents if agent.ends < long_ago]:
            self.agents.remove(agent)
            for tale in agent.tales:
                tale.path.unlink(missing_ok=True)
        for agent in self.present:
            for tale in [tale for tale in agent.tales if tale.ends < long_ago]:
                agent.tales.remove(tale)
                if tale.path != agent.tale.path:
                    with suppress(FileNotFoundError):
                        tale.path.unlink()
