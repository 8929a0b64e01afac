"""omp's subagents: `<session>/<name>.jsonl` beside `<session>.jsonl`, and below each the subagents of it.

A subagent's subagent is `<session>/Anna/Anna.Bob.jsonl`. `Anna.md` is what Anna answered, and no transcript.
"""

from collections.abc import Iterator

from agents9core.errors import TreeError
from agents9core.files.root import Root
from agents9core.harness.pi_files.store import (
    ADVISOR,
    DEEPEST,
    SUFFIX,
    OmpHead,
    OmpHeadCache,
    OmpTranscript,
    is_file,
)
from agents9core.session import Session, Source

Path = tuple[str, ...]


def subagents(session: Session, heads: OmpHeadCache) -> dict[str, Session]:
    """Return the subagents of a session and theirs, by the names that omp gave their files."""
    found: dict[str, Session] = {}
    for source in session.sources:
        directory = (*source.path[:-1], source.path[-1].removesuffix(SUFFIX))
        for path in _below(source.root, directory):
            name = path[-1].removesuffix(SUFFIX)
            name = name if name not in found else ".".join((*path[len(directory) : -1], name))
            head = _head(heads, source.root, path)
            found[name] = Session(
                "subagent",
                id=head.id or name,
                cwd=head.cwd,
                sources=(Source(source.root, path),),
            )
    return dict(sorted(found.items()))


def _head(heads: OmpHeadCache, root: Root, path: Path) -> OmpHead:
    try:
        return heads.read(OmpTranscript(root, path))[1]
    except (TreeError, OSError):
        return OmpHead()


def _below(root: Root, directory: Path, level: int = 1) -> Iterator[Path]:
    """Yield the subagents' transcripts in a directory, and in the directories of those."""
    names = set(root.names(directory))
    for name in sorted(names):
        path = (*directory, name)
        if not name.endswith(SUFFIX) or name.startswith((".", ADVISOR)) or not is_file(root, path):
            continue
        yield path
        stem = name.removesuffix(SUFFIX)
        if level < DEEPEST and stem in names:
            yield from _below(root, (*directory, stem), level + 1)
