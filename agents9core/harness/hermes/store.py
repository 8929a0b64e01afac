"""The sessions of a hermes home: rows of `sessions` in `<home>/state.db` (0.19.0; see docs/FORMATS.md).

A session whose context was compressed into a new one has `end_reason` `compression`, and the new one has it
as its parent: both are one conversation, known by either id and listed by the last. A subagent's session has
a parent too, and is no session of its own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agents9core.errors import Malformed, NotFound, TreeError
from agents9core.files.root import Root
from agents9core.files.rows import Newest
from agents9core.harness.hermes.rows import DATABASE, TABLE, SessionRows
from agents9core.session import Session, Source

_TABLE = "sessions"
_TEXTS = {
    "id": 200, "source": 40, "parent_session_id": 200, "end_reason": 40, "title": 4096, "cwd": 4096,
    "model": 400, "model_config": 20_000,
}  # fmt: skip
_NUMBERS = ("started_at", "ended_at")
_DELEGATIONS = "async_delegations"
_DELEGATION = {"owner_pid", "owner_started_at", "parent_session_id", "dispatched_at"}
_LONGEST_CHAIN = 100
_MOST = 100_000
"""Sessions that are listed of a home."""
_MOST_CHILDREN = 1000
_LATEST_SECONDS = 1 << 32


class Kept(NamedTuple):
    """A session's row. None: the column is not there, or empty."""

    id: str
    source: str | None
    parent: str | None
    end_reason: str | None
    title: str | None
    cwd: str | None
    model: str | None
    config: str | None
    started_ns: int
    ended_ns: int

    @property
    def is_delegate(self) -> bool:
        """Whether another session has started it for a task."""
        return self.source in ("subagent", "tool") or _has(self.config, "_delegate_from")

    @property
    def is_branch(self) -> bool:
        """Whether the person has branched it off another."""
        return _has(self.config, "_branched_from")


class Sessions:
    """The sessions in one database, as one look finds them."""

    def __init__(self, home: str) -> None:
        """Raises NotFound, Denied, Malformed or Unavailable."""
        from agents9core.files.database import DATABASES

        self._root = Root(home)
        self._database, self.files = DATABASES.open(self._root, DATABASE)
        present = self._database.columns(_TABLE)
        if not present >= {"id", "started_at"}:
            raise Malformed("no table `sessions` of hermes")
        texts = [f"substr({name}, 1, {most})" if name in present else "null" for name, most in _TEXTS.items()]
        numbers = [name if name in present else "null" for name in _NUMBERS]
        self._sql = f"select {', '.join([*texts, *numbers])} from {_TABLE}"
        self._has_parents = "parent_session_id" in present

    def get(self, id: str) -> Kept | None:
        """Return a session; None where there is none of this id."""
        return next(self._ask("where id = ? limit 1", id), None)

    def children(self, id: str) -> list[Kept]:
        """Return the sessions whose parent it is, the oldest first."""
        if not self._has_parents:
            return []
        where = "where parent_session_id = ? order by started_at, id limit ?"
        return list(self._ask(where, id, _MOST_CHILDREN))

    def delegated_by(self, pid: int, start: int) -> list[str]:
        """Return the sessions in which a process has started subagents, the last first."""
        if not self._database.columns(_DELEGATIONS) >= _DELEGATION:
            return []
        found = self._database.ask(
            f"select substr(parent_session_id, 1, {_TEXTS['id']}) from {_DELEGATIONS} where owner_pid = ?"
            " and owner_started_at = ? order by dispatched_at desc limit ?",
            pid, start, _MOST_CHILDREN,
        )  # fmt: skip
        return list(dict.fromkeys(id for (value,) in found if (id := _str(value))))

    def own(self) -> list[list[Kept]]:
        """Return the conversations that are no subagent's, each as `chain` does."""
        every = {one.id: one for one in self._ask("limit ?", _MOST)}
        own = [one for one in every.values() if _is_own(one, every)]
        continued = {one.parent for one in own if _continues(one, every)}
        alone = [[one] for one in own if one.id not in continued and not _continues(one, every)]
        tips = [one for one in own if one.id not in continued and _continues(one, every)]
        return alone + [self.chain(one) for one in tips]

    def chain(self, one: Kept) -> list[Kept]:
        """Return the sessions of a conversation, the oldest first, that one is in the midst of."""
        before, after = [one], [one]
        while (parent := self._parent(before[-1])) and len(before) < _LONGEST_CHAIN and parent not in before:
            before.append(parent)
        while (child := self._continuation(after[-1])) and len(after) < _LONGEST_CHAIN:
            if child in before or child in after:
                break
            after.append(child)
        return [*reversed(before), *after[1:]]

    def source(self, ids: tuple[str, ...], newest: Newest) -> Source:
        """Return where the messages of a conversation are."""
        return Source(self._root, DATABASE, rows=SessionRows(ids, newest))

    def newest(self, ids: tuple[str, ...]) -> Newest:
        """Return the last row of a conversation."""
        marks = ", ".join("?" * len(ids))
        found = self._database.ask(
            f"select max(id), max(timestamp) from {TABLE} where session_id in ({marks})", *ids
        )
        return _newest(*found[0])

    def all_newest(self) -> dict[str, Newest]:
        """Return the last row of every session."""
        found = self._database.ask(
            f"select session_id, max(id), max(timestamp) from {TABLE} group by session_id limit ?", _MOST
        )
        return {_str(id) or "": _newest(row, time) for id, row, time in found}

    def _parent(self, one: Kept) -> Kept | None:
        """Return the session that one continues."""
        parent = self.get(one.parent) if one.parent else None
        return parent if parent and _continues(one, {parent.id: parent}) else None

    def _continuation(self, one: Kept) -> Kept | None:
        """Return the session that continues one: of several as hermes itself chooses."""
        if one.end_reason != "compression":
            return None
        found = [child for child in self.children(one.id) if _continues(child, {one.id: one})]
        return min(found, key=_preference, default=None)

    def _ask(self, where: str, *values: object) -> Iterator[Kept]:
        for row in self._database.ask(f"{self._sql} {where}", *values):
            id, *texts = (_str(value) for value in row[: len(_TEXTS)])
            started_ns, ended_ns = map(_nanoseconds, row[len(_TEXTS) :])
            if id:
                source, parent, end_reason, title, cwd, model, config = texts
                yield Kept(id, source, parent, end_reason, title, cwd, model, config, started_ns, ended_ns)


def _is_own(one: Kept, every: Mapping[str, Kept]) -> bool:
    if one.is_delegate:
        return False
    parent = every.get(one.parent or "")
    return one.parent is None or one.is_branch or parent is None or parent.end_reason in (
        "branched", "compression",
    )  # fmt: skip


def _continues(one: Kept, every: Mapping[str, Kept]) -> bool:
    parent = every.get(one.parent or "")
    is_own = not one.is_delegate and not one.is_branch
    return parent is not None and parent.end_reason == "compression" and is_own


def _preference(one: Kept) -> tuple[int, int, str]:
    """Return what puts the continuation that hermes itself follows first, of several."""
    order = 0 if one.end_reason == "compression" else 2 if one.ended_ns else 1
    return order, -one.started_ns, one.id


def kept(home: str) -> dict[str, Source]:
    """Return the conversations that a home keeps, by the id of their last session."""
    try:
        sessions = Sessions(home)
    except (NotFound, Malformed):
        return {}
    newest = sessions.all_newest()
    found = {}
    for chain in sessions.own():
        rows = [newest.get(one.id, Newest(0, 0)) for one in chain]
        its = Newest(max(row for row, _, _ in rows), max(time_ns for _, time_ns, _ in rows))
        found[chain[-1].id] = sessions.source(tuple(one.id for one in chain), _seen(its, chain))
    return found


def find(home: str, id: str) -> tuple[Session | None, str]:
    """Return a session by its id, or by that of one that it continues; and say what was seen."""
    try:
        sessions = Sessions(home)
        one = sessions.get(id)
        if one is None:
            return None, "has no session of this id yet"
        chain = sessions.chain(one)
        ids = tuple(each.id for each in chain)
        newest = _seen(sessions.newest(ids), chain)
    except TreeError as error:
        return None, f"{type(error).__name__}: {error}"
    session = Session(
        via="",
        id=ids[-1],
        cwd=_last(each.cwd for each in chain),
        sources=(sessions.source(ids, newest),),
        title=_last(each.title for each in chain),
        model=_last(each.model for each in chain),
        started_ns=chain[0].started_ns,
        status="idle" if chain[-1].ended_ns else None,
    )
    return session, f"{len(ids)} sessions of one conversation" if len(ids) > 1 else "has it"


def has_ended(home: str, id: str, since_ns: int) -> bool:
    """Return whether a conversation is known to have ended since some time: it was left, and another
    begun."""
    try:
        sessions = Sessions(home)
        one = sessions.get(id)
        return one is not None and sessions.chain(one)[-1].ended_ns >= since_ns
    except TreeError:
        return False


def delegated_by(home: str, pid: int, start: int) -> list[str]:
    """Return the sessions in which a process has started subagents, the last first."""
    try:
        return Sessions(home).delegated_by(pid, start)
    except TreeError:
        return []


def subagents(session: Session) -> Iterable[tuple[str, Session]]:
    """Yield the subagents that a conversation has started, by their ids. Raises Unavailable."""
    source = session.sources[-1] if session.sources else None
    if source is None or not isinstance(source.rows, SessionRows):
        return
    try:
        sessions = Sessions(source.root.path)
    except (NotFound, Malformed):
        return
    for id in source.rows.ids:
        for child in sessions.children(id):
            if child.is_delegate:
                newest = sessions.newest((child.id,))
                yield (
                    child.id,
                    Session(
                        "subagent",
                        child.id,
                        sources=(sessions.source((child.id,), newest),),
                        model=child.model,
                    ),
                )


def _last(values: Iterable[str | None]) -> str | None:
    """Return the last that is there."""
    return next(filter(None, reversed(list(values))), None)


def _seen(newest: Newest, chain: Sequence[Kept]) -> Newest:
    """Return what a look found of a conversation, with what else its directory shows."""
    facts = tuple((one.title, one.model, one.cwd) for one in chain)
    return newest._replace(time_ns=newest.time_ns or min(one.started_ns for one in chain), session=facts)


def _newest(row: object, time: object) -> Newest:
    return Newest(row if isinstance(row, int) else 0, _nanoseconds(time))


def _nanoseconds(value: object) -> int:
    is_time = isinstance(value, int | float) and 0 <= value < _LATEST_SECONDS
    return int(float(value) * 1e9) if is_time else 0  # type: ignore[arg-type]


def _str(value: object) -> str | None:
    return str(value, "utf-8", "replace") if isinstance(value, bytes) and value else None


def _has(config: str | None, name: str) -> bool:
    """Whether a JSON object has a field that is not null."""
    if config is None or name not in config:
        return False
    try:
        value = json.loads(config)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get(name) is not None
