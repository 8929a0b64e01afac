"""What every group of rows is handed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.copies import write_messages
from bench.inputs import Inputs, Size
from bench.table import Row, Table, Target
from bench.world import World


@dataclass
class Bench:
    """One run of the bench."""

    base: Path
    inputs: Inputs
    table: Table
    runs: int
    _copies: dict[Path, Path] = field(default_factory=dict)

    @property
    def size(self) -> Size:
        return self.inputs.size

    def row(
        self,
        name: str,
        unit: str,
        ours: list[float],
        baseline: list[float] | None = None,
        of: str = "",
        target: Target | None = None,
    ) -> None:
        """Add a row to the table."""
        self.table.add(Row(name, unit, ours, baseline or [], of, target))

    @contextmanager
    def world(self) -> Iterator[World]:
        """Make a machine for a while."""
        with tempfile.TemporaryDirectory(dir=self.base) as name:
            yield World(Path(name) / "machine")

    def copies(self, rollout: Path) -> Path:
        """Return a directory with a file for each message of *rollout*, as its chat shows them."""
        if rollout not in self._copies:
            directory = self.base / f"{rollout.stem}-copies"
            with self.world() as world:
                world.codex(1, rollout)
                write_messages(world, 1, directory / "chat")
            self._copies[rollout] = directory
        return self._copies[rollout]
