"""How many connections clients may hold that have not authenticated. Used from several threads.

A descriptor is taken before a client can be refused or asked for a password. Without a limit another user of
the machine could take them all; one limit for all would let one client keep out another who has a password.
So each uid or network has its own.
"""

import threading
from collections import Counter

MAX_EACH = 32
"""Of one user or one network, or of all nobodies: more than a mount or a browser opens."""
MAX_ALL = 512
"""Of all together, for whoever comes from many addresses."""


class ConnectionLimits:
    """Counts the connections of each unauthenticated client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def enter(self, name: str) -> bool:
        """Count one more of *name*, or return False where there are as many as may be."""
        with self._lock:
            if self._counts[name] >= MAX_EACH or self._counts.total() >= MAX_ALL:
                return False
            self._counts[name] += 1
            return True

    def leave(self, name: str) -> None:
        """Count one less of *name*."""
        with self._lock:
            self._counts[name] -= 1
            self._counts += Counter()  # keeps no name that holds none
