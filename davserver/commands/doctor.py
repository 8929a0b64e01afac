"""`agents9 doctor`: why an agent has the chat that it has, or none.

For each agent every route of its harness and what it saw, the files of its transcript, and the lines
of them that could not be read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from os import scandir
from os.path import join

import orjson

from agents9core.chat.decoder import ChatDecoder
from agents9core.chat.transcript import Transcripts
from agents9core.errors import TreeError
from agents9core.harness.table import HARNESSES
from agents9core.identity import PathNumbers
from agents9core.resolver import Examination, Resolver
from agents9core.session import Session, Source
from agents9core.tree.facts import line

OFFSETS_SHOWN = 10
DIRECTORIES_SHOWN = 10
STORE_LEVELS = 3
"""How deep the directories of a store lie that hold transcripts: codex's are year, month and day."""
_INDENT = 12


@dataclass(slots=True)
class RouteReport:
    """What one route saw; `transcript` is none, and says what there is to say of the file."""

    route: str
    answered: bool
    observed: list[str]


@dataclass(slots=True)
class FileReport:
    """A file of a transcript."""

    path: str
    bytes: int | None
    """Its size; None: it is not to be read."""
    limit: int | None
    """How many bytes from its start belong to the transcript; None: all."""


@dataclass(slots=True)
class TranscriptReport:
    """What a session's files hold."""

    session: str | None
    files: list[FileReport]
    messages: int | None
    """None: there is nothing to read, or transcripts of this harness are not read."""
    skipped: int | None
    """Lines that could not be read, whole or in part."""
    skipped_at: list[int]
    """Where the first of them begin in the transcript, in bytes."""
    trouble: str | None
    """Why the files are not read."""


@dataclass(slots=True)
class Diagnosis:
    """All there is to say about one process."""

    pid: int
    harness: str | None
    home: str | None
    home_is_guessed: bool
    """Whether that is a guess: its environment may not be read."""
    refused: list[str]
    """The first directories of its stores that may not be read: what is in them is not shown."""
    via: str | None
    session: str | None
    why: str | None
    """Why it is no agent; None: it is one."""
    routes: list[RouteReport]
    transcript: TranscriptReport | None
    threads: list[TranscriptReport]


class Doctor:
    """Looks at processes as the server would."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._transcripts = Transcripts(PathNumbers())
        self._known_refused: dict[str, list[str]] = {}
        """By home."""

    def agents(self) -> list[Diagnosis]:
        """Return what is to be said of each agent that runs."""
        return list(self._agents())

    def process(self, pid: int) -> Diagnosis:
        """Return what is to be said of a process, an agent or not. Raises NotFound: there is none."""
        return self._diagnosis(self._resolver.examine(pid))

    def _agents(self) -> Iterator[Diagnosis]:
        for harness in HARNESSES:
            for agent in self._resolver.agents(harness):
                try:
                    yield self.process(agent.pid)
                except TreeError:
                    continue

    def _diagnosis(self, found: Examination) -> Diagnosis:
        session = found.session
        chat_format = HARNESSES[found.harness].chat_format if found.harness else None
        read = chat_format.read if chat_format else None
        return Diagnosis(
            pid=found.pid,
            harness=found.harness,
            home=_clean(found.home),
            home_is_guessed=found.home_is_guessed,
            refused=[_clean(path) or "" for path in self._refused(found)],
            via=session.via if session else None,
            session=_clean(session.id) if session else None,
            why=_clean(found.why) if session is None else None,
            routes=list(_ladder(session)) if session else [],
            transcript=self._transcript(session, read) if session else None,
            threads=[self._transcript(thread, read) for thread in session.threads] if session else [],
        )

    def _refused(self, found: Examination) -> list[str]:
        """Return the directories of a home's stores that may not be read, the first of them."""
        if found.harness is None or found.home is None:
            return []
        if found.home not in self._known_refused:
            stores = [join(found.home, *store) for store in HARNESSES[found.harness].stores]
            refused = chain(_unreadable(found.home, 0), *map(_unreadable, stores))
            self._known_refused[found.home] = list(islice(dict.fromkeys(refused), DIRECTORIES_SHOWN))
        return self._known_refused[found.home]

    def _transcript(self, session: Session, read: ChatDecoder | None) -> TranscriptReport:
        found = TranscriptReport(_clean(session.id), list(map(_file, session.sources)), None, None, [], None)
        if not session.sources:
            return found
        try:
            index = self._transcripts.snapshot(session, read).index
            if index is None:
                found.trouble = "transcripts of this harness are not read into messages"
            else:
                found.messages, found.skipped = len(index), index.skipped
                found.skipped_at = index.skipped_at[:OFFSETS_SHOWN]
        except TreeError as error:
            found.trouble = _clean(f"{type(error).__name__}: {error}")
        return found


def _unreadable(path: str, levels: int = STORE_LEVELS) -> Iterator[str]:
    """Yield a directory, and those in it, that are there and may not be read."""
    try:
        with scandir(path) as entries:
            inner = [entry.path for entry in entries if levels and entry.is_dir(follow_symlinks=False)]
    except PermissionError:
        yield path
    except OSError:
        return
    else:
        for directory in inner:
            yield from _unreadable(directory, levels - 1)


def as_json(diagnoses: Sequence[Diagnosis]) -> str:
    """Return the diagnoses as a JSON array."""
    return orjson.dumps(diagnoses, option=orjson.OPT_INDENT_2).decode()


def as_text(diagnoses: Sequence[Diagnosis]) -> str:
    """Return the diagnoses as paragraphs for a person to read."""
    return "\n\n".join("\n".join(_paragraph(diagnosis)) for diagnosis in diagnoses)


def _paragraph(found: Diagnosis) -> Iterator[str]:
    if found.why is not None:
        yield f"{found.pid}  {found.harness or 'no agent'}: {found.why}"
        return
    yield f"{found.pid}  {found.harness}, session {found.session or 'not known'}, via {found.via}"
    guess = " (a guess: its environment may not be read)" if found.home_is_guessed else ""
    yield _row("home", f"{found.home or ''}{guess}")
    for path in found.refused:
        yield _row("refused", f"{path}: may not be read, and looks empty")
    for route in found.routes:
        for saw in route.observed:
            yield _row(route.route, saw)
    if found.transcript is not None:
        yield from _rows(found.transcript)
    for thread in found.threads:
        yield _row("thread", thread.session or "not known")
        yield from _rows(thread)


def _rows(transcript: TranscriptReport) -> Iterator[str]:
    for file in transcript.files:
        size = "not readable" if file.bytes is None else f"{file.bytes} bytes"
        part = "" if file.limit is None else f", of which the first {file.limit} count"
        yield _row("file", f"{file.path}: {size}{part}")
    if transcript.trouble is not None:
        yield _row("messages", transcript.trouble)
    elif transcript.messages is not None:
        offsets = " ".join(map(str, transcript.skipped_at))
        more = " ..." if len(transcript.skipped_at) < (transcript.skipped or 0) else ""
        where = f", at bytes {offsets}{more}" if offsets else ""
        yield _row("messages", f"{transcript.messages}; lines skipped: {transcript.skipped}{where}")


def _row(name: str, text: str) -> str:
    return f"  {name:<{_INDENT}}{text}".rstrip()


def _ladder(session: Session) -> Iterator[RouteReport]:
    said = (text.partition(": ") for text in session.steps)
    for route, steps in groupby(said, key=lambda step: step[0]):
        yield RouteReport(
            _clean(route) or "", route == session.via, [_clean(saw) or "" for _, _, saw in steps]
        )


def _file(source: Source) -> FileReport:
    try:
        size = source.root.stat(source.path).size
    except (TreeError, OSError):
        size = None
    return FileReport(_clean(join(source.root.path, *source.path)) or "", size, source.limit)


def _clean(text: str | None) -> str | None:
    """Return text as the facts of the tree are shown: nothing in it moves a terminal's cursor."""
    return None if text is None else line(text).decode().removesuffix("\n")
