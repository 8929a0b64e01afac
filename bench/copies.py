"""What the siblings serve: a directory with the same files as a chat."""

import os
from pathlib import Path

from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from bench.world import World, chat


def write_messages(world: World, pid: int, directory: Path) -> None:
    """Write every message of a codex's chat into a file of its name, with its time."""
    directory.mkdir(parents=True)
    root = build_tree(Resolver(str(world.proc)))
    node = root
    for name in chat("codex", pid).strip("/").split("/"):
        node = node.walk(name)
    with root.one_request():
        for name, stat in node.members():
            reader = node.walk(name).open()
            path = directory / name
            path.write_bytes(reader.read(0, stat.length))
            reader.close()
            os.utime(path, ns=(stat.mtime_ns, stat.mtime_ns))
