"""What the query of a chat's address asks for. Pure.

    ?after=ID         only the messages after that one
    &transcript=T     where ids are those of transcript T; of another they mean nothing
    &wait=SECONDS     where there are none yet, the answer may take so long
    &q=TEXT           only the messages that hold TEXT; not beside wait

Raises HTTPError: 400 for what is no such value, 410 for ids that do not mean what the client thinks.
"""

import re
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

from agents9core.node import Messages, Row
from davserver.http.response import HTTPError

LONGEST_WAIT_SECONDS = 60

_DECIMAL = re.compile(r"[0-9]+", re.ASCII)
_EVENT_ID = re.compile(r"([0-9A-Za-z-]+)/([0-9]*)", re.ASCII)
_LONGEST_ID = 18
"""Digits; an id with more is past the end of any chat."""


class ChatQuery(NamedTuple):
    """What a client wants of a chat; None: not stated."""

    after: str | None = None
    transcript: str | None = None
    wait: int | None = None
    text: str | None = None

    def first(self, rows: Messages) -> int:
        """Return the number of the first row that is asked for. Raises HTTPError, 410."""
        named = transcript_header(rows)
        if self.transcript not in (None, rows.transcript):
            raise HTTPError(410, "The chat has another transcript now", named)
        if self.after is None:
            return 0
        digits = self.after.lstrip("0") or "0"
        if len(digits) > _LONGEST_ID or int(digits) >= len(rows):
            raise HTTPError(410, "The chat does not reach that message", named)
        return int(digits) + 1


def parse_asked(query: str) -> ChatQuery:
    """Return what a query asks for. What it means nothing to is passed over. Raises HTTPError, 400."""
    values = parse_qs(query, keep_blank_values=True)
    after = _only(values, "after", _DECIMAL, "after is the id of a message, in decimal")
    wait = _only(values, "wait", _DECIMAL, f"wait is 0 to {LONGEST_WAIT_SECONDS} seconds, in decimal")
    if wait is not None and (len(wait) > _LONGEST_ID or int(wait) > LONGEST_WAIT_SECONDS):
        raise HTTPError(400, f"wait is 0 to {LONGEST_WAIT_SECONDS} seconds, in decimal")
    transcripts, texts = values.get("transcript", []), values.get("q", [])
    # Of two transcripts one is another than the chat's, whichever that is.
    transcript = transcripts[0] if len(transcripts) == 1 else "".join(transcripts) or None
    if texts and (len(texts) != 1 or not texts[0]):
        raise HTTPError(400, "q is the text that is looked for")
    if texts and wait:
        raise HTTPError(400, "A search does not wait for more")
    return ChatQuery(after, transcript, int(wait) if wait else None, texts[0] if texts else None)


def resumed(asked: ChatQuery, event_id: str | None) -> ChatQuery:
    """Return *asked* as a client means it that has had the event *event_id*: it goes on after that."""
    if not event_id:
        return asked
    match = _EVENT_ID.fullmatch(event_id)
    if match is None:
        raise HTTPError(400, "Last-Event-ID is the id of an event: TRANSCRIPT/ID")
    return asked._replace(transcript=match[1], after=match[2] or None)


def next_link(href: str, asked: ChatQuery, transcript: str, last: Row) -> tuple[str, str]:
    """Return the header that points to what comes after a row that is the last of an answer (RFC 8288)."""
    query = urlencode({"q": asked.text or "", "after": int(last.name[:8]), "transcript": transcript})
    return ("Link", f'<{href}/?{query}>; rel="next"')


def transcript_header(rows: Messages) -> tuple[str, str]:
    """Return the header that names the transcript of a listing."""
    return ("Agents9-Transcript", rows.transcript)


def _only(values: dict[str, list[str]], name: str, form: re.Pattern[str], reason: str) -> str | None:
    found = values.get(name)
    if found is None:
        return None
    if len(found) != 1 or not form.fullmatch(found[0]):
        raise HTTPError(400, reason)
    return found[0]
