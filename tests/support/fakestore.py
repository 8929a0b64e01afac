"""The files that the harnesses keep, made up below a home."""

import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import zstandard

from tests.support.fakeproc import BTIME


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


class OmpHome:
    """A home of omp: `<home>/agent/sessions` and `terminal-sessions`."""

    WRITTEN = BTIME + 100_000
    """When its files were written, in seconds since 1970, unless that is said."""

    def __init__(self, path: Path, agent: str = "agent") -> None:
        self.path = path
        self.agent = path / agent
        self.sessions = self.agent / "sessions"
        self.terminals = self.agent / "terminal-sessions"
        self.sessions.mkdir(parents=True)
        self.terminals.mkdir()

    def transcript(
        self,
        directory: str,
        id_: str,
        *,
        cwd: str | None = "/srv/demo",
        title: str | None = None,
        slot: bool = True,
        mtime: float | None = None,
        **header: object,
    ) -> Path:
        """Write a session of one message. *title* goes into the slot; without *slot* there is none."""
        path = self.sessions / directory / f"2026-11-29T10-00-00-000Z_{id_}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        first = [title_slot(title or "")] if slot else []
        said = {"type": "session", "version": 3, "id": id_, "cwd": cwd, **header}
        message = {"type": "message", "id": "a", "message": {"role": "user", "content": "hello"}}
        path.write_text("".join([*first, json.dumps(said) + "\n", json.dumps(message) + "\n"]))
        return aged(path, self.WRITTEN if mtime is None else mtime)

    def subagent(self, of: Path, name: str, mtime: float | None = None) -> Path:
        """Write a subagent's transcript beside its session's, or below another subagent's."""
        path = of.with_suffix("") / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        header = {"type": "session", "version": 3, "id": uuid7(1, 7), "cwd": "/srv/demo"}
        path.write_text(title_slot("") + json.dumps({**header, "parentSession": str(of)}) + "\n")
        return aged(path, self.WRITTEN if mtime is None else mtime)

    def note(self, terminal: str, cwd: str, file: Path | str, *more: str, mtime: float | None = None) -> Path:
        path = self.terminals / terminal
        path.write_text("\n".join([cwd, str(file), *more]) + "\n")
        return aged(path, self.WRITTEN if mtime is None else mtime)


def title_slot(title: str) -> str:
    """Return the line of 256 bytes that omp rewrites in place."""
    bare = json.dumps({"type": "title", "v": 1, "title": title, "source": "auto", "pad": ""})
    return bare[:-2] + " " * (255 - len(bare)) + '"}\n'


def aged(path: Path, mtime: float) -> Path:
    os.utime(path, (mtime, mtime))
    return path


class DshHome:
    """A home of dsh: `<home>/sessions/<project>/<session>/`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions = path / "sessions"
        self.sessions.mkdir(parents=True)

    def session(self, id_: str, *names: str, project: str = "--srv-demo--", **header: object) -> Path:
        """Make a session's directory with transcripts of these names; return the directory."""
        directory = self.sessions / project / id_
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            first = {"type": "session", "version": 4, "id": id_, "cwd": "/srv/demo", **header}
            line = json.dumps(first).encode() + b"\n"
            body = json.dumps({"type": "user/message", "seq": 0}).encode() + b"\n"
            frames = [zstandard.compress(line), zstandard.compress(body)]
            data = b"".join(frames) if name.endswith(".zstd") else line + body
            (directory / name).write_bytes(data)
        return directory

    def lock(self, directory: Path, age_seconds: float = 10) -> Path:
        path = directory / "session.lock"
        path.touch()
        return aged(path, datetime.now(UTC).timestamp() - age_seconds)


def hermes_registry(home: Path, *entries: object) -> Path:
    path = home / "runtime" / "active_sessions.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"entries": list(entries)}))
    return path


class HermesHome:
    """A home of hermes whose writer has the database open, so that every row is in the WAL."""

    SCHEMA = """
    create table sessions (id text primary key, source text not null, model text, model_config text,
      parent_session_id text, started_at real not null, ended_at real, end_reason text, cwd text, title text);
    create table messages (id integer primary key autoincrement, session_id text not null, role text not null,
      content text, tool_call_id text, tool_calls text, tool_name text, timestamp real not null,
      finish_reason text, reasoning text, reasoning_content text, active integer not null default 1,
      compacted integer not null default 0);
    create index idx_messages_session on messages(session_id, timestamp);
    """

    def __init__(self, path: Path, schema: str = SCHEMA) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(path / "state.db", isolation_level=None, check_same_thread=False)
        self.db.execute("pragma journal_mode = wal")
        self.db.execute("pragma wal_autocheckpoint = 0")
        self.db.executescript(schema)
        self.clock = 1796081593.0

    def session(self, id_: str, **more: object) -> str:
        self._insert("sessions", {"id": id_, "source": "cli", "started_at": self.clock, **more})
        return id_

    def row(self, session: str, role: str, content: object = None, **more: object) -> int:
        """Write a row a second after the one before, unless its `timestamp` is said; return its id."""
        self.clock += 1
        row = {"session_id": session, "role": role, "content": content, "timestamp": self.clock, **more}
        return self._insert("messages", row)

    def compress(self, session: str, rows: "list[tuple[str, object]]") -> None:
        """Do what `/compress` does: mark what is active, and insert *rows* microseconds apart."""
        self.clock += 1
        self.db.execute("begin")
        self.db.execute(
            "update messages set active = 0, compacted = 1 where session_id = ? and active = 1", (session,)
        )
        for number, (role, content) in enumerate(rows):
            self.row(session, role, content, timestamp=self.clock + number * 1e-6)
            self.clock -= 1
        self.db.execute("commit")

    def _insert(self, table: str, values: "dict[str, object]") -> int:
        marks = ", ".join("?" * len(values))
        made = self.db.execute(
            f"insert into {table} ({', '.join(values)}) values ({marks})", tuple(values.values())
        )
        return made.lastrowid or 0
