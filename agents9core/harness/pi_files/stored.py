"""The sessions that lie in a store of omp's or pi's, as the resolver tells them: both keep the same files."""

from collections.abc import Iterable, Iterator

from agents9core.caches import TTLCache
from agents9core.errors import TreeError
from agents9core.harness.pi_files.store import (
    ADVISOR,
    OmpHead,
    OmpHeadCache,
    OmpTranscript,
    is_file,
    stored_transcripts,
)
from agents9core.routes.uuid7 import born_ms, parse_uuid
from agents9core.session import Session, Source

_MOST_HEADS = 100


class PiSessions:
    """Finds sessions by the files that they are written to. May be used from several threads."""

    def __init__(self, *, titled: bool) -> None:
        """*titled*: whether what a file begins with says the title."""
        self.heads = OmpHeadCache()
        self._titled = titled
        self._places: TTLCache[tuple[str, str], OmpTranscript] = TTLCache()

    def head(self, transcript: OmpTranscript) -> OmpHead | None:
        """Return what a transcript begins with; None where there is no such file."""
        try:
            return self.heads.read(transcript)[1]
        except (TreeError, OSError):
            return None

    def session(self, via: str, transcript: OmpTranscript, steps: tuple[str, ...]) -> Session:
        """Return the session that is written to a transcript, also where that is not there yet."""
        head = self.head(transcript)
        told = head or OmpHead()
        return Session(
            via=via,
            id=told.id or transcript.name_id,
            cwd=told.cwd,
            title=told.title if self._titled else None,
            sources=(Source(*transcript),) if head else (),
            steps=steps if head else (*steps, f"transcript: {transcript.full_path} is not written yet"),
        )

    def stored(self, home: str) -> dict[str, Source]:
        """Return the sessions that lie in the stores of a home, by the ids in their names."""
        found = stored_transcripts(home)
        self._places.put({(home, id): transcript for id, transcript in found.items()})
        return {id: Source(*transcript) for id, transcript in found.items()}

    def stored_session(self, home: str, id: str) -> Session | None:
        """Return a session by the id in its name, whether a process has it open or not."""
        transcript = self._places.find(
            (home, id), lambda known: is_file(*known), lambda: stored_transcripts(home, id).get(id)
        )
        head = self.head(transcript) if transcript else None
        if transcript is None or head is None:
            return None
        session = self.session("kept", transcript, ())
        return session._replace(id=id, started_ns=head.started_ns)

    def written_since(
        self, files: Iterable[tuple[OmpTranscript, int]], cwd: str | None, started_ns: int
    ) -> Iterator[tuple[str, int | None, OmpTranscript]]:
        """Yield the sessions of a cwd that were written since a process started, the newest first.

        *files*: what may be one, with the time when each was written. Of each its path, its birth
        (milliseconds since 1970, None: unknown) and its transcript.
        """
        written = [
            (mtime_ns, transcript)
            for transcript, mtime_ns in files
            if mtime_ns >= started_ns and not transcript.path[-1].startswith((".", ADVISOR))
        ]
        for _, transcript in sorted(written, reverse=True)[:_MOST_HEADS]:
            head = self.head(transcript)
            if head and head.cwd is not None and head.cwd == cwd:
                uuid = parse_uuid(head.id)
                yield transcript.full_path, born_ms(uuid) if uuid else None, transcript
