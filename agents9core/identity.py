"""Path numbers: 64 bits that name a node for as long as this server runs.

A number is a block, a hash of what the node stands for, and a leaf within the block: the messages of a
transcript are its leaves, so 200,000 of them cost one hash and one check for collision. The hash is
keyed by a random value of this run, so that nobody can aim at a collision.
"""

import hashlib
import os

LEAVES = 1 << 20
"""Leaves in a block: more than the messages an index holds, and room for a directory's own members."""


class PathNumbers:
    """Gives blocks out, each to one thing only, and the same one to the same thing."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._given: dict[int, int] = {0: 0}
        """Block to a second hash of what it was given to: some 100 bytes for each, also for a big store."""

    def block(self, *key: object) -> int:
        """Return the number of what *key* names, the first of LEAVES that are its own; never 0."""
        attempt = 0
        while True:
            digest = hashlib.blake2b(repr((attempt, key)).encode(), key=self._secret, digest_size=16).digest()
            block = int.from_bytes(digest[:8], "little") & -LEAVES
            owner = int.from_bytes(digest[8:], "little")
            if self._given.setdefault(block, owner) == owner:
                return block
            attempt += 1
