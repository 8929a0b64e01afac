"""Path numbers: 64 bits that name a node for as long as this server runs.

A number is a block, a hash of what the node stands for, and a leaf within the block: the messages of a
transcript are its leaves, so 200,000 of them cost one hash and one check for collision. The hash is
keyed by a random value of this run, so that nobody can aim at a collision.
"""

import hashlib
import os
import threading

LEAVES = 1 << 20
"""Leaves in a block: more than the messages an index holds, and room for a directory's own members."""


class PathNumbers:
    """Gives blocks out, each to one thing only, and the same one to the same thing."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._blocks: dict[tuple[object, ...], int] = {}
        self._given: set[int] = {0}
        self._lock = threading.Lock()

    def block(self, *key: object) -> int:
        """Return the number of what *key* names, the first of LEAVES that are its own; never 0."""
        block = self._blocks.get(key)
        if block is None:
            with self._lock:
                block = self._blocks.get(key) or self._new(key)
        return block

    def _new(self, key: tuple[object, ...]) -> int:
        block = attempt = 0
        while block in self._given:
            digest = hashlib.blake2b(repr((attempt, key)).encode(), key=self._secret, digest_size=8).digest()
            block = int.from_bytes(digest, "little") & -LEAVES & ((1 << 64) - 1)
            attempt += 1
        self._given.add(block)
        self._blocks[key] = block
        return block
