"""Assigns files to processes where only time and place are evidence, each to one at most. Pure.

A file that fits two processes is given to neither: no answer is better than a wrong one.
"""

from collections.abc import Mapping
from typing import NamedTuple

from agents9core.routes.choice import Key


class Wish(NamedTuple):
    """A process that nothing links to a file, and the files that may be its."""

    key: Key
    started_ms: int
    files: tuple[tuple[str, int | None], ...]
    """The newest first: its path, and when it was born (milliseconds since 1970, None: unknown)."""


def assign_files(wishes: list[Wish]) -> dict[Key, str]:
    """Give each process the newest file that can only be its.

    A file that was born before a process belongs to one that was there then, if there is one. What still fits
    several belongs to none: no answer is better than a wrong one.
    """
    wanted = {wish.key: _without_elders(wish, wishes) for wish in wishes}
    given: dict[Key, str] = {}
    while True:
        taken = set(given.values())
        waiting = [key for key in wanted if key not in given]
        free = {key: [path for path in wanted[key] if path not in taken] for key in waiting}
        sure = {key: files[0] for key, files in free.items() if files and _is_sure(key, free)}
        if not sure:
            return given
        given |= sure


def _without_elders(wish: Wish, wishes: list[Wish]) -> list[str]:
    """Return the files of a process that are not those of one that started before it."""
    return [path for path, born in wish.files if not _is_elders(path, born, wish, wishes)]


def _is_elders(path: str, born: int | None, wish: Wish, wishes: list[Wish]) -> bool:
    return born is not None and any(
        other.started_ms <= born < wish.started_ms and path in dict(other.files) for other in wishes
    )


def _is_sure(key: Key, free: Mapping[Key, list[str]]) -> bool:
    """Return whether no other process may have any of its files, or it has one choice that belongs to none
    only one."""
    mine = free[key]
    others = [files for other, files in free.items() if other != key]
    alone = not any(set(mine) & set(files) for files in others)
    return alone or (len(mine) == 1 and mine not in others)
