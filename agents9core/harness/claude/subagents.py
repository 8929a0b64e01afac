"""Claude Code's subagents: the transcripts that lie beside a session's.

Since 2.1 they are `<session>/subagents/agent-<id>.jsonl`, and below `workflows/wf_*/` there; from 2.0.28 on
`agent-<id>.jsonl` beside the session's own file, of which the first record names the session; before that
they stand in the session's file itself, as side chains, which its index finds. `agent-a<word>-<hex>`
(acompact, aside_question, ...) are forks that the program makes for itself, and no subagents.
"""

import re
import threading

from agents9core.caches import LRU
from agents9core.errors import TreeError
from agents9core.files.jsonrecord import parse_object, text_of
from agents9core.files.root import Root
from agents9core.session import Session, Source

_NAME = re.compile(r"agent-(?!a[a-z_]+-[0-9a-f]+\.jsonl)([0-9A-Za-z_-]{1,100})\.jsonl", re.ASCII)
_FIRST_LINE_BYTES = 1 << 18

Path = tuple[str, ...]


class Subagents:
    """Finds the subagents of sessions. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: LRU[tuple[str, Path, object], str] = LRU()

    def of(self, session: Session) -> dict[str, Session]:
        """Return the subagents of a session, by an id that never changes."""
        if not session.sources:
            return {}
        root, (project, name) = session.sources[-1].root, session.sources[-1].path
        stem = name.removesuffix(".jsonl")
        found: dict[str, Session] = {}
        for path in (*_own_directory(root, project, stem), *self._beside(root, project, stem)):
            spelled = _NAME.fullmatch(path[-1])
            if spelled and _is_file(root, path):
                found.setdefault(
                    spelled[1], Session("subagent", id=spelled[1], sources=(Source(root, path),))
                )
        return dict(sorted(found.items()))

    def _beside(self, root: Root, project: str, stem: str) -> list[Path]:
        """Return the subagents' files in the project's directory that belong to this session."""
        paths = [(project, name) for name in root.names((project,)) if _NAME.fullmatch(name)]
        return [path for path in paths if self._owner(root, path) == stem]

    def _owner(self, root: Root, path: Path) -> str | None:
        """Return the session that the first record of a file names."""
        try:
            with root.opened(path) as (_, stat):
                key = (root.path, path, stat.identity)
            with self._lock:
                known = self._owners.get(key)
            if known is None:
                record = parse_object(root.read(path, _FIRST_LINE_BYTES).partition(b"\n")[0], first=True)
                known = text_of(record or {}, "sessionId")
        except (TreeError, OSError):
            return None
        if known is not None:
            with self._lock:
                self._owners[key] = known
        return known


def _own_directory(root: Root, project: str, stem: str) -> list[Path]:
    directory = (project, stem, "subagents")
    workflows = (*directory, "workflows")
    runs = [(*workflows, name) for name in sorted(root.names(workflows)) if name.startswith("wf_")]
    return [(*place, name) for place in (directory, *runs) for name in root.names(place)]


def _is_file(root: Root, path: Path) -> bool:
    try:
        return root.stat(path).is_regular
    except (TreeError, OSError):
        return False
