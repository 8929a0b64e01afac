"""`sessions/`: the sessions in the harnesses' stores, of agents that run and of agents that have ended."""

from contextlib import suppress

from agents9core.errors import Gone, NotFound
from agents9core.files.root import NOT_THERE
from agents9core.identity import version_of
from agents9core.node import Node, Row, Stat
from agents9core.session import Source
from agents9core.stored import StoredSessions
from agents9core.tree.context import TreeContext
from agents9core.tree.fixed import ScannedDirectory
from agents9core.tree.handles import StoredHandle
from agents9core.tree.session_dir import SessionDirectory


class StoredHarnessDirectory(ScannedDirectory):
    """`sessions/<harness>/`: the sessions that its stores keep, a directory an id."""

    stat_seconds = 5.0

    def __init__(self, name: str, context: TreeContext, stored: StoredSessions) -> None:
        super().__init__(name, context.numbers.block("sessions", name))
        self._context = context
        self._stored = stored

    def walk(self, name: str) -> Node:
        try:
            return StoredSessionDirectory(name, StoredHandle(self._context, self._stored, self.name, name))
        except Gone as error:
            raise NotFound(name) from error

    def rows(self) -> list[Row]:
        rows = []
        for id, source in sorted(self._stored.all(self.name).items()):
            with suppress(Gone):
                rows.append(Row(id, _stat(self._context, StoredHandle.key_of(self.name, id), source)))
        return rows


class StoredSessionDirectory(SessionDirectory):
    """A session in a store. Its stat is that of its file, so that thousands are listed at once."""

    def __init__(self, name: str, handle: StoredHandle) -> None:
        super().__init__(name, handle)
        self._stored_handle = handle

    def stat(self) -> Stat:
        handle = self._stored_handle
        return _stat(handle.context, handle.key, handle.session().sources[-1])


def _stat(context: TreeContext, key: tuple[object, ...], source: Source) -> Stat:
    if source.rows is not None:
        newest = source.rows.newest
        return Stat(context.numbers.block("entry", key), version_of(*newest), True, 0, newest.time_ns)
    try:
        stat = source.root.stat(source.path)
    except NOT_THERE as error:
        raise Gone(source.path[-1]) from error
    if not stat.is_regular:
        raise Gone(source.path[-1])
    version = version_of(stat.identity, stat.size, stat.mtime_ns, stat.ctime_ns)
    return Stat(context.numbers.block("entry", key), version, True, 0, stat.mtime_ns)
