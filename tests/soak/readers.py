"""Clients that ask at random, and hold every answer against the book of the story."""

import errno
import http.client
import random
import struct
import threading
import time
from collections.abc import Callable

from bench import client9p as wire
from tests.soak.story import Agent, Story

ABSENT = frozenset({404, 410, errno.ENOENT, errno.ESTALE})
"""What a front end says of what is not there, or not there any more."""
PAUSE_SECONDS = 0.04


class Wrong(Exception):
    """The server said what it may not have said."""


class Absent(Exception):
    """The server said that there is no such thing now."""


class Door:
    """What both front ends are asked; each raises Absent, and Wrong for any other refusal."""

    def names(self, path: str) -> list[str]:
        """List a directory."""
        raise NotImplementedError

    def data(self, path: str, start: int = 0, count: int | None = None) -> bytes:
        """Read a file from *start*, *count* bytes or to its end."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave."""
        raise NotImplementedError


class Http(Door):
    """Over HTTP, on one connection for as long as it stays."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def names(self, path: str) -> list[str]:
        return self._get(path + "/").decode().split()

    def data(self, path: str, start: int = 0, count: int | None = None) -> bytes:
        if not start and count is None:
            return self._get(path)
        end = "" if count is None else start + count - 1
        return self._get(path, Range=f"bytes={start}-{end}")

    def _get(self, path: str, **headers: str) -> bytes:
        try:
            self._connection.request("GET", f"/{path}", headers=headers)
            reply = self._connection.getresponse()
            body = reply.read()
        except (http.client.HTTPException, ConnectionError) as exc:
            self._connection.close()
            raise Absent(repr(exc)) from exc  # it went while it was sent, which must have a reason
        if reply.status in ABSENT:
            raise Absent(str(reply.status))
        if reply.status == 416:
            return b""
        if reply.status not in (200, 206):
            raise Wrong(f"{reply.status} {body[:200]!r}")
        return body

    def close(self) -> None:
        self._connection.close()


class NineP(Door):
    """Over 9P2000.L."""

    def __init__(self, port: int) -> None:
        self._client = wire.Client(port)

    def names(self, path: str) -> list[str]:
        found: list[str] = []
        offset = 0
        with self._opened(path):
            while body := bytes(self._ask(wire.readdir(1, offset, 8000)))[4:]:
                at = 0
                while at < len(body):
                    offset, kind, length = struct.unpack_from("<QBH", body, at + 13)
                    name = body[at + 24 : at + 24 + length].decode()
                    found.append(name + "/" * (kind == 4 and not name.startswith("0")))
                    at += 24 + length
        return [name for name in found if name not in ("./", "../")]

    def data(self, path: str, start: int = 0, count: int | None = None) -> bytes:
        found = bytearray()
        with self._opened(path):
            while count is None or len(found) < count:
                wanted = 60_000 if count is None else min(60_000, count - len(found))
                piece = bytes(self._ask(wire.read(1, start + len(found), wanted)))[4:]
                if not piece:
                    break
                found += piece
        return bytes(found)

    def _opened(self, path: str) -> "_Opened":
        return _Opened(self._ask, path)

    def _ask(self, request: bytes) -> memoryview:
        try:
            return self._client.ask(request)
        except OSError as exc:
            if exc.errno in ABSENT:
                raise Absent(str(exc)) from exc
            raise Wrong(repr(exc)) from exc

    def close(self) -> None:
        self._client.close()


class _Opened:
    """Fid 1 at a path, opened; walked to a name at a time, so that an error is that of the name."""

    def __init__(self, ask: Callable[[bytes], memoryview], path: str) -> None:
        self._ask, self._path = ask, path

    def __enter__(self) -> None:
        self._ask(wire.walk(0, 1, ""))
        try:
            for name in self._path.split("/"):
                self._ask(wire.walk(1, 1, name))
            self._ask(wire.lopen(1))
        except BaseException:
            self._ask(wire.clunk(1))
            raise

    def __exit__(self, *_: object) -> None:
        self._ask(wire.clunk(1))


class Reader(threading.Thread):
    """One client. `wrong` has what it may not have been told, `took` how long each answer took."""

    def __init__(
        self, story: Story, front_end: Callable[[], Door], seed: int, enough: threading.Event
    ) -> None:
        super().__init__(name=f"reader-{seed}")
        self._story = story
        self._make_door = front_end
        self._dice = random.Random(seed)
        self._enough = enough
        self.took: list[float] = []
        self.checked_bytes = 0
        self.checked_names = 0
        self.absent = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        asks = {self.ask_agents: 1, self.ask_chat: 4, self.ask_message: 12, self.ask_transcript: 2}
        try:
            front_end = self._make_door()
            while not self._enough.wait(self._dice.uniform(0, 2 * PAUSE_SECONDS)):
                [ask] = self._dice.choices(list(asks), list(asks.values()))
                ask(front_end)
            front_end.close()
        except Exception as exc:  # noqa: BLE001 - it is what is looked for
            self.wrong.append(f"{type(exc).__name__}: {exc}")

    def ask_agents(self, front_end: Door) -> None:
        """Each agent that is there all the time is listed, and none that is not."""
        harness = self._dice.choice(("claude", "codex"))
        begun = time.monotonic()
        names = front_end.names(f"active/{harness}")
        ended = self._clock(begun)
        must, may = self._story.there(harness, begun, ended)
        listed = {int(name.removesuffix("/")) for name in names}
        self.checked_names += len(names)
        if not must <= listed <= may:
            self._note(f"active/{harness}: missing {must - listed}, surplus {listed - may}")

    def ask_chat(self, front_end: Door) -> None:
        """The names are the first of a tale that is told about then: as many as had been said, or more."""
        agent = self._dice.choice(self._story.present)
        told = self._told(agent, lambda: front_end.names(f"{agent.path}/chat"))
        if told is None:
            return
        names, begun, ended = told
        self.checked_names += len(names)
        for tale in agent.told(begun, ended):
            if names == tale.names[: len(names)] and len(names) >= tale.said_by(begun):
                return
        self._note(
            f"{agent.path}/chat: {len(names)} names, the last {names[-1:]}; {self._book(agent, begun, ended)}"
        )

    def ask_message(self, front_end: Door) -> None:
        """A message's bytes are those that were written; it is there if it was before it was asked for."""
        agent = self._dice.choice(self._story.present)
        tale = agent.tale
        count = len(tale.names)
        if not count:
            return
        at = count - 1 if self._dice.random() < 0.4 else self._dice.randrange(count)
        name, was_said = tale.names[at], at < tale.said_by(time.monotonic())
        start, length = self._part(len(tale.texts[name]))
        told = self._told(
            agent, lambda: front_end.data(f"{agent.path}/chat/{name}", start, length), lambda: was_said
        )
        if told is None:
            return
        data, begun, ended = told
        self.checked_bytes += len(data)
        end = None if length is None else start + length
        if not any(data == now.texts.get(name, b"\0")[start:end] for now in agent.told(begun, ended)):
            self._note(f"{agent.path}/chat/{name} {start}+{length}: {data[:80]!r}")

    def ask_transcript(self, front_end: Door) -> None:
        """A transcript is a beginning of the file: as much as was there, or more."""
        agent = self._dice.choice(self._story.present)
        start = self._dice.randrange(len(agent.tale.data) + 1)
        told = self._told(agent, lambda: front_end.data(f"{agent.path}/transcript", start))
        if told is None:
            return
        data, begun, ended = told
        self.checked_bytes += len(data)
        for tale in agent.told(begun, ended):
            if start + len(data) >= tale.length_by(begun) and data == tale.data[start : start + len(data)]:
                return
        self._note(f"{agent.path}/transcript from {start}: {len(data)} bytes, {data[:80]!r}")

    def _part(self, size: int) -> tuple[int, int | None]:
        if self._dice.random() < 0.7 or size < 2:
            return 0, None
        start = self._dice.randrange(size - 1)
        return start, self._dice.randint(1, size - start)

    def _told(
        self, agent: Agent, ask: Callable[[], object], must: Callable[[], bool] = lambda: True
    ) -> tuple[object, float, float] | None:
        """Return the answer, and when it was asked for and there; None where it is rightly absent."""
        begun = time.monotonic()
        try:
            answer = ask()
        except Absent as exc:
            ended = self._clock(begun)
            self.absent += 1
            if must() and agent.stays(begun, ended):
                self._note(f"{agent.path}: absent ({exc}); {self._book(agent, begun, ended)}")
            return None
        return answer, begun, self._clock(begun)

    def _clock(self, begun: float) -> float:
        ended = time.monotonic()
        self.took.append(ended - begun)
        return ended

    def _book(self, agent: Agent, begun: float, ended: float) -> str:
        tales = [(len(tale.names), tale.said_by(begun)) for tale in agent.told(begun, ended)]
        return f"the book has {tales} (begun, whole) after {ended - begun:.3f} s"

    def _note(self, what: str) -> None:
        self.wrong.append(what)
