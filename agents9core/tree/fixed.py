"""Nodes that know no agent: the server's own texts, and directories whose members are given."""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from agents9core.errors import Gone, NotFound
from agents9core.identity import version_of
from agents9core.node import Directory, File, Node, Reader, Row, Stat


class TextReader(Reader):
    """Text that was made when the file was opened; *check* raises Gone when its file has ended."""

    def __init__(self, text: bytes, check: Callable[[], object]) -> None:
        self._text = text
        self._check = check

    def read(self, offset: int, count: int) -> bytes:
        self._check()
        return self._text[offset : offset + count]


class TextFile(File):
    """A file of the server's own, such as the README."""

    def __init__(self, name: str, text: str, number: int, mtime_ns: int) -> None:
        self.name = name
        self._text = text.encode()
        self._stat = Stat(number, 1, False, len(self._text), mtime_ns)

    def stat(self) -> Stat:
        return self._stat

    def open(self) -> Reader:
        return TextReader(self._text, self.stat)


class FixedDirectory(Directory):
    """A directory whose members are always there."""

    def __init__(self, name: str, number: int, nodes: Sequence[Node]) -> None:
        self.name = name
        self._number = number
        self._nodes = {node.name: node for node in nodes}

    def stat(self) -> Stat:
        return listing_stat(self._number, self.members())

    def walk(self, name: str) -> Node:
        try:
            return self._nodes[name]
        except KeyError:
            raise NotFound(name) from None

    def members(self) -> Sequence[Row]:
        return present(self._nodes.values())

    def media_type_of(self, name: str) -> str:
        node = self._nodes.get(name)
        return node.media_type if isinstance(node, File) else super().media_type_of(name)


class ScannedDirectory(Directory):
    """A directory whose members are scanned for at each listing, and whose stat is made from them."""

    stat_seconds: float
    """How long its stat is reused: every walk passes here. A listing always scans."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self._number = number
        self._scanned = (float("-inf"), Stat(0, 0, True, 0, 0))

    @abstractmethod
    def rows(self) -> list[Row]:
        """Scan for the members."""

    def stat(self) -> Stat:
        looked, stat = self._scanned
        if time.monotonic() - looked > self.stat_seconds:
            self.members()
            stat = self._scanned[1]
        return stat

    def members(self) -> Sequence[Row]:
        asked = time.monotonic()
        rows = self.rows()
        self._scanned = (asked, listing_stat(self._number, rows))
        return rows


def present(nodes: Iterable[Node]) -> list[Row]:
    """Return the rows of the nodes that are still there."""
    rows = []
    for node in nodes:
        with suppress(Gone):
            rows.append(Row(node.name, node.stat()))
    return rows


_STARTED_NS = time.time_ns()


def listing_stat(number: int, rows: Sequence[Row]) -> Stat:
    """Return a directory's stat from its members: as new as the newest of them, or as the server."""
    newest_ns = max((row.stat.mtime_ns for row in rows), default=_STARTED_NS)
    return Stat(number, version_of([(row.name, row.stat.path) for row in rows]), True, 0, newest_ns)
