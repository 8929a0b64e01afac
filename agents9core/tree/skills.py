"""`skills/<harness>/<skill>/SKILL.md ...`: a harness's own skills, wherever its homes keep them.

A skill is a directory with a SKILL.md; one that lies in a category (hermes) is listed by its own name. In the
first home, which no process names, a skill that is a symlink is followed once, if it leads to a directory of
this user's outside every transcript store; a link within a skill never is. Of two skills of one name the
first home's counts.
"""

import os
import stat as modes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, islice

from agents9core.errors import NotFound
from agents9core.files.private import may_be_store
from agents9core.identity import PathNumbers
from agents9core.node import Directory, Node, Row, Stat
from agents9core.tree.fixed import listing_stat
from agents9core.tree.mirror import MirrorDirectory, MirroredStore, Parts, shown_name

_MARK = "SKILL.md"


class SkillsDirectory(Directory):
    """The skills of one harness."""

    def __init__(
        self,
        name: str,
        places: tuple[Parts, ...],
        homes: Callable[[], Sequence[str]],
        closed: Callable[[], Sequence[str]],
        numbers: PathNumbers,
    ) -> None:
        """*places*: where below a home the skills are; *closed*: directories that no skill may be in."""
        self.name = name
        self._places = places
        self._homes = homes
        self._closed = closed
        self._numbers = numbers

    def stat(self) -> Stat:
        return listing_stat(self._numbers.block("skills", self.name), self.members())

    def walk(self, name: str) -> Node:
        place = self._skills().get(name)
        if place is None:
            raise NotFound(name)
        return self._skill(name, *place)

    def members(self) -> Sequence[Row]:
        return [Row(name, self._skill(name, *place).stat()) for name, place in sorted(self._skills().items())]

    def _skill(self, name: str, home: str, inside: Parts) -> MirrorDirectory:
        store = MirroredStore(
            f"skills/{self.name}/{name}",
            ((),),
            partial(self._open_homes, home, inside),
            self._numbers,
            inside=inside,
        )
        return MirrorDirectory(name, store)

    def _open_homes(self, home: str, inside: Parts) -> list[str]:
        """Return the place of a skill, if it may still be shown: a link may lead elsewhere by now."""
        return [home] if _may_be_shown(os.path.join(home, *inside), self._real_closed()) else []

    def _real_closed(self) -> list[str]:
        return [os.path.realpath(path) for path in self._closed()]

    def _skills(self) -> dict[str, tuple[str, Parts]]:
        """Return where each skill is, by its name: a directory that may be a link, and names that may not."""
        closed = self._real_closed()
        found: dict[str, tuple[str, Parts]] = {}
        for number, home in enumerate(self._homes()):
            for place in self._places:
                for path in _skills_in(os.path.join(home, *place), closed):
                    inside = tuple(os.path.relpath(path, home).split("/")) if number else ()
                    if _leads_nowhere_else(home, inside):
                        where = (home, inside) if inside else (path, ())
                        found.setdefault(shown_name(os.path.basename(path)), where)
        return found


def _leads_nowhere_else(home: str, inside: Parts) -> bool:
    """Whether none of the names is a link."""
    steps = accumulate(inside, os.path.join, initial=home)
    return not any(os.path.islink(path) for path in islice(steps, 1, None))


def _skills_in(directory: str, closed: Sequence[str], depth: int = 2) -> Iterator[str]:
    """Yield the skills in a directory, and in the categories below it."""
    for path in _directories(directory, closed):
        if _is_plain_file(os.path.join(path, _MARK)):
            yield path
        elif depth > 1 and not os.path.islink(path):
            yield from _skills_in(path, closed, depth - 1)


def _directories(directory: str, closed: Sequence[str]) -> Iterator[str]:
    """Yield the directories in a directory that may be shown."""
    try:
        names = sorted(os.listdir(directory)) if _may_be_shown(directory, closed) else []
    except OSError:
        return
    for name in names:
        path = os.path.join(directory, name)
        if not name.startswith(".") and os.path.isdir(path) and _may_be_shown(path, closed):
            yield path


def _may_be_shown(path: str, closed: Sequence[str]) -> bool:
    """Whether a directory is neither in nor around a transcript store; one linked to must be this user's."""
    real = os.path.realpath(path)
    try:
        own = not os.path.islink(path) or os.stat(real).st_uid == os.getuid()
    except OSError:
        return False
    return (
        own
        and may_be_store(real)
        and not any(os.path.commonpath([real, store]) in (real, store) for store in closed)
    )


def _is_plain_file(path: str) -> bool:
    try:
        return modes.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
