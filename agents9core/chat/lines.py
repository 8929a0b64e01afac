"""Where the lines of a growing file begin and end.

Fed the file in any cuts, it gives the same lines. An unfinished line waits for its newline and is
never scanned twice; its bytes are not held. Pure.
"""


class LineScanner:
    """Splits on newline bytes alone."""

    def __init__(self, start: int = 0) -> None:
        self.line_start = start
        """Where the unfinished line begins."""
        self.scanned = start
        """Everything before this was examined."""

    def feed(self, data: bytes) -> list[tuple[int, int]]:
        """Return the lines that *data*, the bytes from `scanned` on, completes.

        Each is told by where in *data* it begins, which is before it where it was begun earlier, and where
        its newline stands.
        """
        find = data.find
        start = self.line_start - self.scanned
        spans = []
        newline = find(b"\n")
        while newline >= 0:
            spans.append((start, newline))
            start = newline + 1
            newline = find(b"\n", start)
        self.line_start = self.scanned + start
        self.scanned += len(data)
        return spans
