"""The files that claude and codex keep, made up below a home."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path


def claude_record(home: Path, pid: int, **fields: object) -> Path:
    path = home / "sessions" / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pid": pid, **fields}))
    return path


def claude_transcript(home: Path, project: str, session: str, *types: str, text: str = "hello") -> Path:
    path = home / "projects" / project / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"type": type_, "message": {"content": text}}) for type_ in types]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def uuid7(ms: int, tail: int = 1) -> str:
    """Return the id that codex would give at this time (milliseconds since 1970)."""
    text = f"{ms:012x}"
    return f"{text[:8]}-{text[8:]}-7000-8000-{tail:012x}"


class CodexHome:
    """A home of codex."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "sessions").mkdir(parents=True)
        (path / "archived_sessions").mkdir()
        (path / "thread-writer-locks").mkdir()

    def rollout(
        self,
        thread: str,
        *,
        ms: int | None = None,
        segment: str | None = None,
        archived: bool = False,
        first: str | None = None,
        **meta: object,
    ) -> Path:
        """Write a rollout of one line, filed by *ms*. *first* goes in place of its `session_meta`."""
        when = datetime.fromtimestamp((int(thread[:8] + thread[9:13], 16) if ms is None else ms) / 1000, UTC)
        day = self.path / "sessions" / when.strftime("%Y/%m/%d")
        directory = self.path / "archived_sessions" if archived else day
        directory.mkdir(parents=True, exist_ok=True)
        own = f"_{segment}" if segment else ""
        path = directory / f"rollout-{when.strftime('%Y-%m-%dT%H-%M-%S')}-{thread}{own}.jsonl"
        record = {"timestamp": when.isoformat(), "type": "session_meta", "payload": {"id": thread, **meta}}
        path.write_text((json.dumps(record) if first is None else first) + "\n")
        return path

    def lock(self, thread: str, age_seconds: float = 10) -> Path:
        path = self.path / "thread-writer-locks" / f"{thread}.lock"
        path.touch()
        made = datetime.now(UTC).timestamp() - age_seconds
        os.utime(path, (made, made))
        return path

    def name(self, thread: object, name: object) -> None:
        with (self.path / "session_index.jsonl").open("a") as index:
            index.write(json.dumps({"id": thread, "thread_name": name}) + "\n")


SUBAGENT = {
    "source": {"subagent": {"thread_spawn": {"parent_thread_id": "x", "depth": 1}}},
    "thread_source": "subagent",
}
