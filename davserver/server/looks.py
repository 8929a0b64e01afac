"""Looking for what comes before sleeping until it is there, as long as that pays.

A client on the same machine that asks one thing at a time asks again some 20 to 60 us after the answer, and a
thread that still looks then need not be woken: up to a fifth more requests a second where a processor is
free, and no fewer where none is. A client that takes longer (a guest's mount, somebody who types) would be
looked for in vain, which would take the processor from it.
"""

import os
from collections.abc import Callable
from typing import TypeVar

LOOKS = 10
"""Twice as many gain as much again where a processor is free, and cost as much where none is."""
MOST_SLEPT_FOR = 63
"""When nothing came while it was looked for, the next is slept for at once, then the next three, seven and
so on, up to this."""
T = TypeVar("T")


class Looks:
    """The looks of one thread, and what came of them."""

    def __init__(self) -> None:
        self._slept_for = self._to_sleep_for = 0
        """Of those that are slept for, how many have come."""

    def find(self, look: Callable[[], T | None]) -> T | None:
        """Return what *look* finds before long. None: it is to be slept for."""
        if self._slept_for < self._to_sleep_for:
            self._slept_for += 1
            return None
        for _ in range(LOOKS):
            found = look()
            if found is not None:
                self._to_sleep_for = 0
                return found
            os.sched_yield()
        self._slept_for, self._to_sleep_for = 0, min(2 * self._to_sleep_for + 1, MOST_SLEPT_FOR)
        return None
