"""Who has which file, where nothing but time and place tells. Pure."""

from collections.abc import Collection, Mapping
from itertools import permutations
from typing import NamedTuple

from agents9core.harness.threads import Key


class Wish(NamedTuple):
    """A process that nothing links to a file, and the files that may be its."""

    key: Key
    started_ms: int
    files: tuple[tuple[str, int | None], ...]
    """The newest first: its path, and when it was born (milliseconds since 1970, None: unknown)."""


class Doubt(NamedTuple):
    """A file that fitted two processes at one time."""

    path: str
    key: Key
    other: Key


def doubts(wishes: list[Wish], before: Collection[Doubt], here: Collection[Key]) -> frozenset[Doubt]:
    """Return which files fit two processes, or did *before*: as long as one of the two is *here*."""
    now = {
        Doubt(path, one.key, other.key)
        for one, other in permutations(wishes, 2)
        for path in dict(one.files).keys() & dict(other.files).keys()
    }
    return frozenset(now.union(doubt for doubt in before if doubt.key in here))


def without_doubted(
    given: Mapping[Key, str], doubted: Collection[Doubt], here: Collection[Key]
) -> dict[Key, str]:
    """Return what was given, without what was in doubt between the process and one that has ended."""
    doubtful = {(doubt.key, doubt.path) for doubt in doubted if doubt.other not in here}
    return {key: path for key, path in given.items() if (key, path) not in doubtful}


def share_out(wishes: list[Wish]) -> dict[Key, str]:
    """Give each process the newest file that can only be its.

    A file that was born before a process belongs to one that was there then, if there is one. What still
    fits several is nobody's: no answer is better than a wrong one.
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
    """Say whether nobody else may have any of its files, or it has one choice that is nobody's only one."""
    mine = free[key]
    others = [files for other, files in free.items() if other != key]
    alone = not any(set(mine) & set(files) for files in others)
    return alone or (len(mine) == 1 and mine not in others)
