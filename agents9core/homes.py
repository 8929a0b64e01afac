"""The homes of a harness's processes that have ended: what they wrote stays.

A home is remembered as the directory that it was, by device and inode. Where there are too many, one goes of
the directory that has most of them below it: who plants homes by the dozen drives out his own.
"""

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

MOST = 64
"""Homes of a harness that are remembered."""

Identity = tuple[int, int]
"""Device and inode of a directory."""


class Homes:
    """The remembered homes of one harness. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Identity] = {}
        """The one that was seen last at the end."""

    def remember(self, homes: Iterable[str]) -> None:
        """Remember those that are there."""
        for home in homes:
            identity = _identity(home)
            if identity is None:
                continue
            with self._lock:
                self._known.pop(home, None)
                self._known[home] = identity
                if len(self._known) > MOST:
                    del self._known[crowding(self._known)]

    def known(self) -> list[str]:
        """Return those that are still the directories that they were; the others are forgotten."""
        with self._lock:
            known = list(self._known.items())
        gone = [home for home, identity in known if _identity(home) != identity]
        with self._lock:
            for home in gone:
                self._known.pop(home, None)
        return [home for home, _ in known if home not in gone]


def crowding(homes: Iterable[str]) -> str:
    """Return the first of *homes* in the directory that has most of them at each level. Pure."""
    crowd = [home.split("/") for home in homes]
    for level in count():
        if len(crowd) == 1:
            break
        groups: dict[tuple[str, ...], list[list[str]]] = {}
        for parts in crowd:
            groups.setdefault(tuple(parts[level : level + 1]), []).append(parts)
        crowd = max(groups.values(), key=len)
    return "/".join(crowd[0])


def _identity(path: str) -> Identity | None:
    with suppress(OSError, ValueError):
        stat = os.stat(path)
        return (stat.st_dev, stat.st_ino) if os.path.isdir(path) else None
    return None
