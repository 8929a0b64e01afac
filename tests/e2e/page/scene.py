"""Made agents for the page: each says what a test lets it say, where its harness would write it."""

import json
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.machine import Machine


def stamp(seconds_ago: float = 0) -> str:
    when = datetime.fromtimestamp(time.time() - seconds_ago, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Claude:
    """A claude that talks into a transcript; its messages are *step* seconds apart and end now."""

    def __init__(self, transcript: Path, model: str = "opus-made-up") -> None:
        transcript.parent.mkdir(parents=True, exist_ok=True)
        self.transcript = transcript
        self.model = model
        self.ago = 0.0
        self.step = 0.0
        self._calls = 0

    def begins(self, seconds_ago: float, step: float) -> "Claude":
        self.ago, self.step = seconds_ago, step
        return self

    def writes(self, *records: dict) -> None:
        with self.transcript.open("a") as out:
            out.write("".join(json.dumps(record) + "\n" for record in records))

    def record(self, role: str, content: object) -> dict:
        self.ago = max(0.0, self.ago - self.step)
        message = {"role": role, "content": content}
        if role == "assistant":
            message["model"] = self.model
        return {"type": role, "timestamp": stamp(self.ago), "message": message}

    def prompt(self, text: str) -> None:
        self.writes(self.record("user", text))

    def says(self, text: str) -> None:
        self.writes(self.record("assistant", [{"type": "text", "text": text}]))

    def thinks(self, text: str) -> None:
        self.writes(self.record("assistant", [{"type": "thinking", "thinking": text}]))

    def calls(self, name: str, /, **arguments: object) -> None:
        self._calls += 1
        block = {"type": "tool_use", "id": f"call{self._calls}", "name": name, "input": arguments}
        self.writes(self.record("assistant", [block]))

    def gets(self, text: object) -> None:
        """Let the last call have its result."""
        block = {"type": "tool_result", "tool_use_id": f"call{self._calls}", "content": text}
        self.writes(self.record("user", [block]))

    def told(self, text: str) -> None:
        """Let the program itself say something."""
        self.writes(self.record("user", text) | {"isMeta": True})

    def titled(self, title: str) -> None:
        self.writes({"type": "custom-title", "customTitle": title})


class Scene(Machine):
    """A machine whose agents are the test's own; none at first."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        for pid in (601, 611):
            shutil.rmtree(self.proc / str(pid))

    def claude(self, pid: int, cwd: str = "/srv/shop", **record: object) -> Claude:
        """Start a claude; *record* is what it says of itself: status, waitingFor, name ..."""
        self.start(pid, "claude")
        (self.proc / str(pid) / "cwd").unlink()
        (self.proc / str(pid) / "cwd").symlink_to(cwd)
        session = session_of(pid)
        self.register(pid, session, cwd=cwd, **record)
        return Claude(self.home / ".claude" / "projects" / cwd.replace("/", "-") / f"{session}.jsonl")

    def subagent(self, pid: int, name: str, cwd: str = "/srv/shop") -> Claude:
        project = self.home / ".claude" / "projects" / cwd.replace("/", "-")
        path = project / session_of(pid) / "subagents" / f"agent-{name}.jsonl"
        return SideClaude(path, "haiku-made-up")

    def codex(self, pid: int, cwd: str, title: str = "") -> "Codex":
        thread = f"01a19bb3-9500-7000-8000-{pid:012d}"
        day = self.home / ".codex" / "sessions" / "2026" / "11" / "02"
        codex = Codex(day / f"rollout-2026-11-02T10-00-00-{thread}.jsonl", thread, cwd)
        self.start(pid, "codex")
        (self.proc / str(pid) / "cwd").unlink()
        (self.proc / str(pid) / "cwd").symlink_to(cwd)
        (self.proc / str(pid) / "fd").mkdir()
        (self.proc / str(pid) / "fd" / "20").symlink_to(codex.rollout)
        if title:
            with (self.home / ".codex" / "session_index.jsonl").open("a") as out:
                out.write(json.dumps({"id": thread, "thread_name": title}) + "\n")
        return codex


class SideClaude(Claude):
    """A subagent."""

    def record(self, role: str, content: object) -> dict:
        return super().record(role, content) | {"isSidechain": True, "agentId": self.transcript.stem[6:]}


class Codex:
    """A codex that talks into a rollout."""

    def __init__(self, rollout: Path, thread: str, cwd: str) -> None:
        self.rollout = rollout
        self.ago = 0.0
        self.rolls("session_meta", {"id": thread, "cwd": cwd, "source": "cli"})

    def rolls(self, kind: str, payload: object) -> None:
        with self.rollout.open("a") as out:
            out.write(json.dumps({"timestamp": stamp(self.ago), "type": kind, "payload": payload}) + "\n")

    def prompt(self, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        self.rolls("response_item", {"type": "message", "role": "user", "content": content})

    def says(self, text: str) -> None:
        content = [{"type": "output_text", "text": text}]
        self.rolls("response_item", {"type": "message", "role": "assistant", "content": content})

    def patches(self, patch: str) -> None:
        self.rolls(
            "response_item",
            {"type": "custom_tool_call", "call_id": "p", "name": "apply_patch", "input": patch},
        )


def session_of(pid: int) -> str:
    return f"0d0f6c1e-1111-4222-8333-{pid:012d}"


def shop(scene: Scene) -> Claude:
    """Let several agents be at work, and one of them wait; return that one. So the pictures show it."""
    waits = scene.claude(601, status="waiting", waitingFor="permission to run Bash")
    checkout(waits)
    busy = scene.claude(602, status="busy", name="catalog").begins(900, 40)
    busy.titled("Move the product search to the new index")
    busy.prompt("Move the product search to the new index.")
    busy.says("I let two helpers look first.")
    for name, task in (("explore", "Where is the old index still used?"), ("measure", "Measure both")):
        helper = scene.subagent(602, name).begins(300, 60)
        helper.prompt(task)
        helper.says("Three places: `search.py`, `feed.py` and the nightly job.")
    docs = scene.claude(603, "/srv/handbook", status="idle").begins(9000, 30)
    docs.titled("Chapter 4: restoring from a backup")
    docs.prompt("Read chapter 4 as somebody who has never restored a backup.")
    docs.says("Done; four steps were missing. They are in now.")
    codex = scene.codex(611, "/srv/infra", "Rotate the ingress certificates")
    codex.ago = 65
    codex.prompt("Rotate the ingress certificates.")
    codex.patches(PATCH)
    codex.says("The certificates now renew 30 days before they end.")
    return waits


PATCH = """*** Begin Patch
*** Update File: ingress/certificates.yaml
@@ spec:
   issuer: internal-ca
-  renewBefore: 72h
+  renewBefore: 720h
   dnsNames:
*** End Patch
"""

TEST_RUN = """\x1b[1m==================== test session starts ====================\x1b[0m
collected 214 items

tests/test_cart.py \x1b[32m..............................\x1b[0m    [ 14%]
tests/test_checkout.py \x1b[32m..........\x1b[31mF\x1b[0m\x1b[32m...............\x1b[0m    [ 26%]
tests/test_payment.py \x1b[32m...........................\x1b[0m    [ 39%]

\x1b[31m\x1b[1m__________ test_two_customers_take_the_last_one __________\x1b[0m
    \x1b[33massert\x1b[0m stock.left(\x1b[36m"mug"\x1b[0m) == \x1b[35m0\x1b[0m
\x1b[31mE   AssertionError: -1 != 0 (heisenbug-7731)\x1b[0m
\x1b[31m1 failed\x1b[0m, \x1b[32m213 passed\x1b[0m in 4.31s
"""

FINDING = """The test is right and the shop is wrong: **two customers can take the last mug**.

`reserve` reads the stock, decides, and only then writes. Between the two another worker does the same:

```python
def reserve(self, item: str) -> bool:
    left = self.stock.left(item)   # both workers see 1
    if left < 1:
        return False
    self.stock.set(item, left - 1)  # both write 0, both return True
    return True
```

| worker | reads | writes | answer |
|---|---:|---:|---|
| A | 1 | 0 | reserved |
| B | 1 | 0 | reserved |

I make it one conditional update, so that the database decides."""


def checkout(agent: Claude) -> None:
    """Say what somebody sees who opens the chat of the agent that waits."""
    agent.begins(1000, 42)
    agent.titled("Fix the flaky checkout test")
    agent.prompt(
        "test_checkout fails about once in twenty runs. Find out why, and fix the cause, not the test."
    )
    agent.thinks("Once in twenty smells of a race. The test first, then what it calls.")
    agent.says("I run the test until it fails.")
    agent.calls(
        "Bash", command="pytest -q --count 40 tests/test_checkout.py", description="Run the test 40 times"
    )
    agent.gets("Exit code 1\n" + TEST_RUN)
    agent.calls("Grep", pattern="def reserve", path="shop/")
    agent.gets("shop/stock.py:41:    def reserve(self, item: str) -> bool:")
    agent.calls("Read", file_path="/srv/shop/shop/stock.py", offset=30, limit=40)
    agent.gets("".join(f"{n:5}→    line {n} of stock.py\n" for n in range(30, 70)))
    agent.says(FINDING)
    agent.calls("Edit", file_path="/srv/shop/shop/stock.py", old_string=OLD, new_string=NEW)
    agent.gets("The file /srv/shop/shop/stock.py has been updated.")
    agent.calls("Write", file_path="/srv/shop/tests/test_stock.py", content=FRESH)
    agent.gets("File created successfully at: /srv/shop/tests/test_stock.py")
    agent.prompt("Good. Does it hold with eight workers?")
    agent.says(QUESTION)
    agent.calls("Bash", command="DATABASE_URL=$STAGING pytest -n 8 --count 2000 tests/test_checkout.py")


QUESTION = """It should: the condition and the write are one statement now. I would like to run it with eight
workers for five minutes, against the staging database. **May I?**"""

OLD = """        left = self.stock.left(item)
        if left < 1:
            return False
        self.stock.set(item, left - 1)
        return True
"""
NEW = """        taken = self.database.execute(
            "UPDATE stock SET left = left - 1 WHERE item = ? AND left > 0", (item,)
        )
        return taken.rowcount == 1
"""
FRESH = """def test_the_last_one_is_sold_once(shop):
    shop.stock.set("mug", 1)
    assert [shop.reserve("mug") for _ in range(2)] == [True, False]
"""


def long_chat(agent: Claude, many: int) -> None:
    """Write a chat of *many* messages: a prompt, a text, a call and a result by turns."""
    records = []
    for number in range(many // 4):
        call = {
            "type": "tool_use",
            "id": f"c{number}",
            "name": "Bash",
            "input": {"command": f"step {number}"},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": f"c{number}",
            "content": f"done {number}\n" * (number % 9 + 1),
        }
        for role, content in (
            ("user", f"Prompt {number}. " + "Some words that wrap. " * (number % 20)),
            (
                "assistant",
                [{"type": "text", "text": f"Answer **{number}**.\n\n" + "- a point\n" * (number % 7)}],
            ),
            ("assistant", [call]),
            ("user", [result]),
        ):
            records.append(agent.record(role, content))
    agent.writes(*records)
