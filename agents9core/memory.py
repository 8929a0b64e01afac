"""A tree in memory: the smallest one that keeps the contract of `node`, for tests and as an example."""

from collections.abc import Callable, Sequence
from typing import overload

from agents9core.errors import Gone, NotFound, TooLarge
from agents9core.node import Chat, Directory, File, Messages, Node, Reader, Row, Stat

_paths = iter(range(1, 1 << 62))


class MemoryReader(Reader):
    """Reads the file as it is now, since a memory file only grows or goes."""

    def __init__(self, file: "MemoryFile") -> None:
        self._file = file

    def read(self, offset: int, count: int) -> bytes:
        return self._file.content()[offset : offset + count]


class MemoryFile(File):
    """A file whose bytes are given; `append` makes it grow, `remove` ends it."""

    def __init__(
        self, name: str, data: bytes = b"", mtime_ns: int = 0, media_type: str = File.media_type
    ) -> None:
        self.name = name
        self.media_type = media_type
        self.mtime_ns = mtime_ns
        self._path = next(_paths)
        self._data: bytes | None = data

    def append(self, data: bytes) -> None:
        """Add *data* at the end."""
        self._data = self.content() + data

    def remove(self) -> None:
        """End the file: every handle is Gone."""
        self._data = None

    def content(self) -> bytes:
        """Return all bytes. Raises Gone."""
        if self._data is None:
            raise Gone(self.name)
        return self._data

    def stat(self) -> Stat:
        length = len(self.content())
        return Stat(self._path, length, False, length, self.mtime_ns)

    def open(self) -> Reader:
        self.content()
        return MemoryReader(self)


class MemoryDirectory(Directory):
    """A directory whose members are given."""

    def __init__(self, name: str, nodes: Sequence[Node] = ()) -> None:
        self.name = name
        self._path = next(_paths)
        self._nodes: dict[str, Node] | None = {node.name: node for node in nodes}
        self._changes = 0

    def add(self, node: Node) -> None:
        """Add a member."""
        self._present()[node.name] = node
        self._changes += 1

    def remove(self) -> None:
        """End the directory: every handle is Gone."""
        self._nodes = None

    def _present(self) -> dict[str, Node]:
        if self._nodes is None:
            raise Gone(self.name)
        return self._nodes

    def stat(self) -> Stat:
        newest = max((stat.mtime_ns for _, stat in self._rows()), default=0)
        return Stat(self._path, self._changes, True, 0, newest)

    def walk(self, name: str) -> Node:
        try:
            return self._present()[name]
        except KeyError:
            raise NotFound(name) from None

    def members(self) -> Sequence[Row]:
        return self._rows()

    def media_type_of(self, name: str) -> str:
        node = (self._nodes or {}).get(name)
        return node.media_type if isinstance(node, File) else super().media_type_of(name)

    def _rows(self) -> list[Row]:
        rows = []
        for name, node in list(self._present().items()):
            try:
                rows.append(Row(name, node.stat()))
            except Gone:
                continue
        return rows


class MemoryMessages(Messages):
    """A frozen list of messages."""

    def __init__(self, transcript: str, rows: Sequence[Row]) -> None:
        self.transcript = transcript
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)


class MemoryChat(MemoryDirectory, Chat):
    """A chat: `say` adds a message, `clear` starts another transcript, *cap* limits the listing."""

    def __init__(self, name: str = "chat", cap: int = 1 << 18) -> None:
        super().__init__(name)
        self.transcript = "t0"
        self._cap = cap
        self._wakes: dict[object, Callable[[], None]] = {}

    def say(self, kind: str, text: bytes, mtime_ns: int = 0) -> MemoryFile:
        """Add the next message and return it."""
        file = MemoryFile(f"{len(self._present()):08d}-{kind}", text, mtime_ns)
        self.add(file)
        self._wake()
        return file

    def clear(self) -> None:
        """Begin another transcript: the messages so far are Gone."""
        for node in self._present().values():
            if isinstance(node, MemoryFile):
                node.remove()
        self._nodes = {}
        self.transcript = f"t{int(self.transcript[1:]) + 1}"
        self._changes += 1
        self._wake()

    def remove(self) -> None:
        super().remove()
        self._wake()

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        mark = object()
        self._wakes[mark] = wake

        def end() -> None:
            self._wakes.pop(mark, None)

        return end

    def _wake(self) -> None:
        for wake in list(self._wakes.values()):
            wake()

    def members(self) -> Messages:
        if len(self._present()) > self._cap:
            raise TooLarge(f"more than {self._cap} messages")
        return MemoryMessages(self.transcript, self._rows())
