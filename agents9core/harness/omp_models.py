"""The model that an omp transcript names last.

Its chat is not read, so this looks for one thing in it and reads each byte once, as the file grows.
"""

import os
import re
import threading
from typing import NamedTuple

from agents9core.errors import TreeError
from agents9core.harness.omp_store import Transcript
from agents9core.remembered import Remembered
from agents9core.statx import FileStat
from agents9core.store import parse_object, text_of

_CHUNK = 4 << 20
_SAYS_MODEL = rb'^\{[^\n]{0,128}"type": ?"(?:model_change|session_init)"[^\n]*$'
_PASSING = "fallback"
"""The role of a model that stands in for another for a moment."""


class Named(NamedTuple):
    """What the first bytes of a transcript say of the model."""

    chosen: str | None = None
    begun_with: str | None = None
    """What a subagent was started with."""


class _Known(NamedTuple):
    file: tuple[int, int]
    covered: int
    named: Named


class Models:
    """The models of transcripts. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Remembered[Transcript, _Known] = Remembered()

    def of(self, transcript: Transcript) -> str | None:
        """Return the model that a transcript names last; None where it names none, or cannot be read."""
        try:
            with transcript.root.opened(transcript.path) as (fd, stat):
                named = self._read(transcript, fd, stat)
        except (TreeError, OSError):
            return None
        return named.chosen or named.begun_with

    def _read(self, transcript: Transcript, fd: int, stat: FileStat) -> Named:
        file = (stat.dev, stat.ino)
        with self._lock:
            known = self._known.get(transcript)
        if known is None or known.file != file or known.covered > stat.size:
            known = _Known(file, 0, Named())
        while known.covered < stat.size:
            data = os.pread(fd, _CHUNK, known.covered)
            end = data.rfind(b"\n") + 1 or (len(data) if len(data) == _CHUNK else 0)
            if not end:
                break
            known = _Known(file, known.covered + end, parse_models(data[:end], known.named))
        with self._lock:
            self._known[transcript] = known
        return known.named


def parse_models(data: bytes, before: Named) -> Named:
    """Return what is named after these lines, by what was named *before*. Pure."""
    for line in re.finditer(_SAYS_MODEL, data, re.MULTILINE):
        record = parse_object(line[0]) or {}
        if record.get("type") == "session_init":
            before = before._replace(begun_with=text_of(record, "resolvedModel") or before.begun_with)
        elif record.get("type") == "model_change" and record.get("role") != _PASSING:
            before = before._replace(chosen=text_of(record, "model") or before.chosen)
    return before
