"""Following a chat: an answer that waits for more, and a stream of events (HTML standard, section 9.2).

    long_poll   look ── more than `after`? → the listing
                     └─ Pause, until the chat wakes it or the time is up → look again
    events      look ── new messages → an event each; another transcript → `event: reset`
                     └─ Pause → look again; nothing for 15 s → a comment

Each look walks to the chat anew, so whatever has become of it is seen. Nothing here holds a thread: a Pause
ends the turn (`environ`). Those who wait are counted, since each is a connection and a descriptor.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import orjson

from agents9core.node import Chat, Columns, Messages
from davserver.handlers.listing import message_objects
from davserver.handlers.rows import slices
from davserver.http.chat_query import ChatQuery
from davserver.http.environ import Pause
from davserver.http.response import HTTPError, Later, Response

EVENTS = "text/event-stream"
MAX_WAITERS = 256
HEARTBEAT_SECONDS = 15
"""A proxy, or a client, that hears nothing for longer may take the connection for dead."""
RETRY_MS = 2000
"""How long a client waits before it comes again to a stream that broke."""
RETRY_AFTER_SECONDS = 5

Look = Callable[[], AbstractContextManager[tuple[Chat, Messages]]]
"""Walks to the chat and lists it; good while the context lasts, the list also after it. Raises TreeError."""
Wake = Callable[[], None]


class Followers:
    """Those who wait for something new, in all chats together."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(MAX_WAITERS)

    @contextmanager
    def _one(self) -> Iterator[None]:
        if not self._free.acquire(blocking=False):
            retry = ("Retry-After", str(RETRY_AFTER_SECONDS))
            raise HTTPError(503, "Too many wait already; ask again without waiting", retry)
        try:
            yield
        finally:
            self._free.release()

    def long_poll(
        self, look: Look, asked: ChatQuery, wake: Wake, listed: Callable[[Messages, int], Response]
    ) -> Later:
        """Answer with what *listed* makes of the rows from a number on, once there are any or the time is up.

        Raises HTTPError: what `ChatQuery.first` raises, 503.
        """
        until = time.monotonic() + (asked.wait or 0)
        is_watched = False
        with ExitStack() as stack:
            while True:
                with look() as (chat, rows):
                    asked = asked._replace(transcript=asked.transcript or rows.transcript)
                    first = asked.first(rows)
                    left = until - time.monotonic()
                    if len(rows) > first or left <= 0:
                        return listed(rows, first)
                if is_watched:
                    yield Pause(left)
                else:
                    stack.enter_context(self._one())
                    stack.callback(chat.watch(wake))
                    is_watched = True

    def events(self, look: Look, asked: ChatQuery, wake: Wake, base: str) -> Iterator[bytes]:
        """Yield the messages that are asked for as events, and then each as it comes; never ends by itself.

        *base*: the chat's path with its slash. A place that is not in this transcript is the beginning.
        Raises HTTPError, 503, before the first chunk; TreeError.
        """
        with ExitStack() as stack, ExitStack() as watching:
            stack.enter_context(self._one())
            with look() as (chat, rows):
                transcript, first = _place(asked, rows)
            watching.callback(chat.watch(wake))
            yield f"retry: {RETRY_MS}\n\n".encode()
            heard = time.monotonic()
            while True:
                with look() as (chat, rows):
                    pass
                quiet_until = heard + HEARTBEAT_SECONDS
                if rows.transcript != transcript:
                    transcript, first = rows.transcript, 0
                    watching.close()
                    watching.callback(chat.watch(wake))
                    yield _reset(transcript)
                elif len(rows) > first:
                    for part in slices(rows, first):
                        yield _as_events(part, transcript, base)
                    first = len(rows)
                elif time.monotonic() < quiet_until:
                    yield Pause(quiet_until - time.monotonic())
                    continue
                else:
                    yield b":\n\n"
                heard = time.monotonic()


def _place(asked: ChatQuery, rows: Messages) -> tuple[str | None, int]:
    """Return where a stream begins: the transcript, None where it is another now, and the first message."""
    try:
        return rows.transcript, asked.first(rows)
    except HTTPError:
        return None, 0


def _reset(transcript: str) -> bytes:
    data = orjson.dumps({"transcript": transcript}).decode()
    return f"event: reset\nid: {transcript}/\ndata: {data}\n\n".encode()


def _as_events(rows: Columns, transcript: str, base: str) -> bytes:
    objects = message_objects(rows, base)
    return "".join(
        f"id: {transcript}/{int(name[:8])}\ndata: {written}\n\n"
        for name, written in zip(rows.names, objects, strict=True)
    ).encode()
