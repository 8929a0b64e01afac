"""What a transcript is asked that is rows of a database, not lines of a file.

A row is given to the index as one object, its *frame*: a head, then the texts of the row one after the other,
as they stand. A message's place is the id of its row and where in that it stands: the frame of row *id* is
as if at `id << FRAME_BITS` of a file. Pure, but for what implements it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agents9core.files.root import Descriptor, Root
from agents9core.files.statx import FileStat

FRAME_BITS = 32
LARGEST_ID = (1 << FRAME_BITS) - 1


class Rows(ABC):
    """The rows of one transcript, in an open database.

    Every method raises Malformed where the database is damaged, and Unavailable where it cannot be read now.
    May be used from several threads.
    """

    files: Sequence[tuple[Descriptor, FileStat]]
    """The files whose times move when the database does, as they were before anything was read."""

    @abstractmethod
    def count(self, last: int) -> int:
        """Return how many rows there are from id 0 up to *last*."""

    @abstractmethod
    def after(self, last: int, most: int) -> Iterator[tuple[int, bytes | None, bool]]:
        """Yield id and frame of up to *most* later rows in their order, and whether each is a copy.

        A frame is None where a row cannot be read: it is too large, or damaged. Ids that no place can hold
        (negative, or beyond LARGEST_ID) are left out.
        """

    @abstractmethod
    def frame(self, row: int) -> bytes:
        """Return the frame of a row. Raises Gone where there is none."""

    @abstractmethod
    def part(self, row: int, at: int, count: int) -> tuple[bytes, int]:
        """Return *count* bytes of a row's frame from *at*, and how long the frame is.

        Raises Gone where there is no such row.
        """


class Newest(NamedTuple):
    """What the last look found of a transcript, without reading it."""

    row: int
    time_ns: int
    session: object = None
    """What else may move."""


class RowSource(ABC):
    """Which rows are a transcript. Two of the same rows are equal, whatever the *newest* is."""

    newest: Newest

    @abstractmethod
    def open(self, root: Root, path: tuple[str, ...]) -> Rows:
        """Open the database. Raises NotFound, Denied, Malformed or Unavailable."""
