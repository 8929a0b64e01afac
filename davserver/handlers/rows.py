"""Members a slice at a time, so that a listing of 200,000 costs the memory of a few hundred rows. Pure."""

import re
from collections.abc import Iterator, Sequence

from agents9core.node import Columns, Row, columns

SLICE_ROWS = 256
"""About 100 KB of XML: some milliseconds to make, so the first byte is early and other threads get a turn."""

PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+").fullmatch
"""Matches a name that URLs, XML and JSON all write as it is: nearly every one."""


def bounds(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of slices of the rows from *start* up to *stop*: the same for every *start*."""
    while start < stop:
        end = min(start - start % SLICE_ROWS + SLICE_ROWS, stop)
        yield start, end
        start = end


def slices(rows: Sequence[Row], start: int = 0) -> Iterator[Columns]:
    """Yield the rows from number *start* on, some at a time."""
    for first, end in bounds(start, len(rows)):
        yield columns(rows, first, end)
