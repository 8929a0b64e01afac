"""Path numbers: 64 bits that name a node for as long as this server runs.

A number is a block, a hash of what the node stands for, and a leaf within the block: the messages of a
transcript are its leaves, so 200,000 of them cost one hash and one check for collision. The hash is
Python's own of bytes (SipHash, PEP 456), over a random prefix of this run: nobody can aim at a collision,
also where PYTHONHASHSEED is set, and no module with a cryptographic one is loaded.
"""

import os

import xxhash

LEAVES = 1 << 20
"""Leaves in a block: more than the messages an index holds, and room for a directory's own members."""
_BLOCKS = (1 << 64) - LEAVES


class PathNumbers:
    """Gives blocks out, each to one thing only, and the same one to the same thing."""

    def __init__(self) -> None:
        self._secret = os.urandom(16)
        self._given: dict[int, int] = {0: 0}
        """Block to a second hash of what it was given to: some 100 bytes for each, also for a big store."""

    def block(self, *key: object) -> int:
        """Return the number of what *key* names, the first of LEAVES that are its own; never 0."""
        attempt = 0
        while True:
            block, owner = _hashes(self._secret, repr((attempt, key)).encode())
            block &= _BLOCKS
            if self._given.setdefault(block, owner) == owner:
                return block
            attempt += 1


def _hashes(secret: bytes, data: bytes) -> tuple[int, int]:
    """Return two hashes that know nothing of each other."""
    return hash(b"block" + secret + data), hash(b"owner" + secret + data)


def version_of(*values: object) -> int:
    """Return a version that moves when one of *values* does."""
    return int(xxhash.xxh3_64_intdigest(repr(values).encode("utf-8", "backslashreplace")))
