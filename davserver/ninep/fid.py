"""What a fid stands for: a place in the tree, and what was opened there. Pure.

A connection may have hundreds of thousands of them, so both classes are as small as they can be, and places
are shared: a clone has the place of its fid, and a walk adds one place a name.
"""

from agents9core.errors import NotADirectory
from agents9core.node import Directory, File, Node, Reader, Stat
from davserver.ninep.dirlist import Listing


class WalkedNode:
    """A node, and the place that it was walked from: what `..` needs."""

    __slots__ = ("node", "parent")

    def __init__(self, node: Node, parent: "WalkedNode | None") -> None:
        self.node = node
        self.parent = parent

    def step(self, name: str) -> "tuple[WalkedNode, Stat]":
        """Walk one name; `..` at the root stays there. Raises NotADirectory, NotFound, Gone."""
        directory = self._directory()
        if name == "..":
            there = self.parent or self
            return there, there.node.stat()
        node, stat = directory.step(name)
        return WalkedNode(node, self), stat

    def open(self) -> tuple[Reader | Listing, Stat]:
        """Start reading what is here, and look at it. Raises Gone, Denied."""
        if isinstance(self.node, File):
            return self.node.start()
        stat = self.node.stat()
        return Listing(self._directory()), stat

    def _directory(self) -> Directory:
        if not isinstance(self.node, Directory):
            raise NotADirectory(self.node.name)
        return self.node


class Fid:
    """What a client's number stands for."""

    __slots__ = ("opened", "walked")

    def __init__(self, place: WalkedNode) -> None:
        self.walked = place
        self.opened: Reader | Listing | None = None

    def prepare(self) -> None:
        """Prepare the file that was opened, if it still is open. Raises as reading it does."""
        if self.opened is not None and not isinstance(self.opened, Listing):
            self.opened.prepare()

    def let_go(self) -> None:
        """Close what was opened: the client is done with the fid."""
        opened, self.opened = self.opened, None
        if opened is not None and not isinstance(opened, Listing):
            opened.close()
