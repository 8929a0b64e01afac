"""How much is read of one thing, at most."""

LONGEST = 256 << 20
"""A longer line is skipped, not read."""
