"""A SQLite database of a harness's store, read beside the program that writes it.

It is opened read-only with the writer's own WAL and shared memory: never copied, never `immutable` (which
would miss what is in the WAL). A transaction ends with each answer, so the writer waits for nothing.

The file is not trusted. What SQLite opened must be the plain file of ours that lies below the pinned root,
and the files beside it plain ones of ours too. Only plain tables are read, a row has at most LONGEST bytes,
and what takes longer than QUESTION_SECONDS is Unavailable.
"""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from fcntl import F_GETFL, fcntl
from typing import Any, TypeVar
from urllib.parse import quote

from agents9core.errors import Denied, Malformed, NotFound, Unavailable
from agents9core.files.limits import LONGEST
from agents9core.files.root import Descriptor, Root
from agents9core.files.statx import FileStat, statx

QUESTION_SECONDS = 5.0
"""Reading a quarter of a million messages takes half of it."""
_STEPS = 20_000
"""SQLite's own steps between two looks at the clock: less than a millisecond."""
_BUSY_SECONDS = 0.2
_OPEN = "/proc/self/fd"
_WAL, _SHM = "-wal", "-shm"
_PLAIN = "select type = 'table' and rootpage > 0 from sqlite_schema where lower(name) = ?"
_UTF8 = [(b"UTF-8",)]
_COLUMNS = "select name from pragma_table_xinfo(?) where hidden = 0"

Row = tuple[Any, ...]
T = TypeVar("T")


class Database:
    """An open database. May be used from several threads; one asks at a time."""

    def __init__(self, place: str, stat: FileStat) -> None:
        """Open what lies at *place*, which is the file of *stat*. Raises Malformed or Unavailable."""
        self.stat = stat
        self._lock = threading.RLock()
        self._deadline = 0.0
        self._memory: dict[str, tuple[object, Any]] = {}
        with _refusals():
            self._connection = self._connect(place)

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a plain table; none where there is no such table, or it is another thing.

        Raises as `ask` does.
        """
        with self.transaction():
            if self.ask(_PLAIN, table) != [(1,)]:
                return frozenset()
            return frozenset(str(name, "utf-8", "replace") for (name,) in self.ask(_COLUMNS, table))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Answer every question in the block from one state of the database. Raises as `ask` does."""
        with self._lock, _refusals():
            if self._connection.in_transaction:
                yield
                return
            self._deadline = time.monotonic() + QUESTION_SECONDS
            self._connection.execute("begin")
            try:
                yield
            finally:
                with suppress(sqlite3.Error):
                    self._connection.rollback()

    def ask(self, sql: str, *values: object) -> list[Row]:
        """Return all rows of an answer; texts are bytes. Raises Malformed (it is damaged) or Unavailable."""
        with self.transaction():
            return self._connection.execute(sql, values).fetchall()

    def remembered(self, name: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return what *make* gave for this *key* last, unless anybody has written since; one key a name.

        For use in a transaction.
        """
        version = self.ask("pragma data_version")
        known = self._memory.get(name)
        if known is None or known[0] != (key, version):
            known = self._memory[name] = ((key, version), make())
        value: T = known[1]
        return value

    def size(self, table: str, column: str, row: int) -> int:
        """Return how many bytes a text has, without reading it; 0 where it is none. Raises as `ask` does."""
        with self.transaction():
            try:
                with self._connection.blobopen(table, column, row, readonly=True) as blob:
                    return len(blob)
            except sqlite3.OperationalError:
                return 0

    def read(self, table: str, column: str, row: int, at: int, count: int) -> bytes:
        """Return bytes of a text from *at*; fewer where it ends. Raises as `ask` does."""
        with self.transaction(), self._connection.blobopen(table, column, row, readonly=True) as blob:
            blob.seek(min(at, len(blob)))
            return blob.read(count)

    def _connect(self, place: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(place)}?mode=ro",
            _BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=32,
            uri=True,
        )
        try:
            self._confine(connection)
            self._deadline = time.monotonic() + QUESTION_SECONDS
            if connection.execute("pragma encoding").fetchall() != _UTF8:
                raise Malformed(f"{place} is not in UTF-8")
            if not self._is_open():
                raise Unavailable(f"{place} was replaced while it was opened")
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_open(self) -> bool:
        """Whether SQLite has opened the very file that lies below the root, so that none led it elsewhere.

        Nobody else in this process opens it to be read (`Databases` has one connection for each).
        """
        for name in os.listdir(_OPEN):
            with suppress(OSError):
                is_read = not fcntl(int(name), F_GETFL) & os.O_PATH
                if is_read and statx(int(name)).identity == self.stat.identity:
                    return True
        return False

    def _confine(self, connection: sqlite3.Connection) -> None:
        connection.text_factory = bytes
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_progress_handler(lambda: time.monotonic() > self._deadline, _STEPS)
        for pragma in ("query_only = on", "trusted_schema = off", "cell_size_check = on", "mmap_size = 0"):
            connection.execute(f"pragma {pragma}")


class Databases:
    """The databases that are open: one connection each, for as long as somebody holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakValueDictionary[str, Database] = weakref.WeakValueDictionary()

    def open(self, root: Root, path: tuple[str, ...]) -> tuple[Database, list[tuple[Descriptor, FileStat]]]:
        """Open a database; return also looks at its file and at its WAL, if there is one.

        Raises NotFound, Denied, Malformed (it is no database, or no plain file of ours) or Unavailable.
        """
        place = os.path.join(root.path, *path)
        files = [_plain(root, path), *_beside(root, path, _WAL)]
        _beside(root, path, _SHM)
        stat = files[0][1]
        with self._lock:
            database = self._open.get(place)
            if database is None or database.stat.identity != stat.identity:
                database = self._open[place] = Database(place, stat)
        return database, files


def _plain(root: Root, path: tuple[str, ...]) -> tuple[Descriptor, FileStat]:
    """Look at a file without opening it: to close a descriptor would end SQLite's locks on the file."""
    held, stat = root.open_with_stat(path, look_only=True)
    if os.fstat(held.fd).st_uid != os.getuid():
        raise Denied("/".join(path))
    return held, stat


def _beside(root: Root, path: tuple[str, ...], suffix: str) -> list[tuple[Descriptor, FileStat]]:
    try:
        return [_plain(root, (*path[:-1], path[-1] + suffix))]
    except NotFound:
        return []


@contextmanager
def _refusals() -> Iterator[None]:
    """Say of SQLite's errors what the tree says."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise Unavailable(f"the database cannot be read: {error}") from error
    except (sqlite3.Error, MemoryError, OverflowError) as error:
        raise Malformed(f"the database is damaged: {error}") from error


DATABASES = Databases()
"""Those of this process. (SQLite's own locks belong to the process too.)"""
