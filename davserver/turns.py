"""Whose turn it is to have a worker: who begins goes before who goes on, but not for ever.

A new request is mostly short, and somebody waits for it; an answer that goes on is long, and its client has
something to read already. Of so many that begin, one that goes on is let in between.
"""

import queue
from collections import deque
from typing import Any

from cheroot.workers.threadpool import ThreadPool

BEGIN_IN_A_ROW = 8


class Turns(queue.Queue[Any]):
    """The connections that want a worker; and what cheroot puts there to end one."""

    def _init(self, _maxsize: int) -> None:
        self._beginning: deque[Any] = deque()
        self._going_on: deque[Any] = deque()
        self._in_a_row = 0

    def _qsize(self) -> int:
        return len(self._beginning) + len(self._going_on)

    def _put(self, item: Any) -> None:  # noqa: ANN401
        goes_on = getattr(item, "request", None) is not None
        (self._going_on if goes_on else self._beginning).append(item)

    def _get(self) -> Any:  # noqa: ANN401
        if self._beginning and (self._in_a_row < BEGIN_IN_A_ROW or not self._going_on):
            self._in_a_row += 1
            return self._beginning.popleft()
        self._in_a_row = 0
        return self._going_on.popleft()


class Workers(ThreadPool):
    """cheroot's workers, who take turns."""

    def __init__(self, server: Any, threads: int) -> None:  # noqa: ANN401
        super().__init__(server, min=threads, max=threads)
        self._queue = Turns()
        self.get = self._queue.get
