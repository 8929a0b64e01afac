"""The table: rows of samples, each beside its baseline, and whether its target is met."""

import os
import platform
import subprocess
import time
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from statistics import median

HEAD = ("row", "ours", "spread", "baseline", "its spread", "ratio", "target", "met")
DEPENDENCIES = ("cheroot", "defusedxml", "msgspec", "orjson", "wsgidav", "xxhash", "zstandard")


@dataclass(frozen=True)
class Target:
    """A limit: of the value itself, of its ratio to the baseline, or of what it has more than that."""

    text: str
    limit: float
    of: str
    most: bool

    def met(self, row: "Row") -> bool:
        value = {"value": row.value, "ratio": row.ratio, "more": row.value - row.base}[self.of]
        return value <= self.limit if self.most else value >= self.limit


def at_most(limit: float) -> Target:
    return Target(f"≤ {limit:g}", limit, "value", most=True)


def at_most_times(limit: float) -> Target:
    return Target(f"≤ {limit:g} x", limit, "ratio", most=True)


def at_least_times(limit: float) -> Target:
    return Target(f"≥ {limit:g} x", limit, "ratio", most=False)


def at_most_more(limit: float) -> Target:
    return Target(f"≤ +{limit:g}", limit, "more", most=True)


@dataclass(frozen=True)
class Row:
    """One thing that was measured, several times."""

    name: str
    unit: str
    ours: list[float]
    baseline: list[float] = field(default_factory=list)
    """Taken in turns with ours, where there are as many."""
    of: str = ""
    """What the baseline is."""
    target: Target | None = None

    @property
    def value(self) -> float:
        return median(self.ours)

    @property
    def base(self) -> float:
        return median(self.baseline) if self.baseline else 0.0

    @property
    def ratio(self) -> float:
        """The median of the ratios of neighbours, or the ratio of the medians; 0 without a baseline."""
        if not self.baseline:
            return 0.0
        if len(self.ours) == len(self.baseline):
            return median(ours / base for ours, base in zip(self.ours, self.baseline, strict=True) if base)
        return self.value / self.base

    def cells(self) -> tuple[str, ...]:
        """Return what stands in the table, in the order of HEAD."""
        base = its = ratio = ""
        if self.baseline:
            base, its = f"{shown(self.base)} {self.unit} ({self.of})", spread(self.baseline)
            ratio = f"{self.ratio:.2f}"
        target = self.target.text if self.target else "-"
        met = {True: "yes", False: "**no**", None: "-"}[self.target.met(self) if self.target else None]
        return (
            self.name,
            f"{shown(self.value)} {self.unit}",
            spread(self.ours),
            base,
            its,
            ratio,
            target,
            met,
        )


def shown(value: float) -> str:
    """Return a number with three digits that say something."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread(samples: list[float]) -> str:
    return f"{shown(min(samples))} - {shown(max(samples))}"


class Table:
    """The rows so far. Prints each when it comes."""

    def __init__(self) -> None:
        self._rows: list[Row | str] = []
        self._left_out: list[str] = []
        self._began = time.time()
        self._load = os.getloadavg()[0]

    def title(self, text: str) -> None:
        """Begin a group of rows."""
        self._rows.append(text)
        print(f"\n{text}", flush=True)

    def add(self, row: Row) -> None:
        self._rows.append(row)
        name, ours, of_ours, base, of_base, ratio, target, met = row.cells()
        beside = f"{ratio:>6} x {base} [{of_base}]" if base else ""
        print(f"  {name:58} {ours:>12} [{of_ours}]  {target:>9} {met:6} {beside}", flush=True)

    def leave_out(self, what: str, why: str) -> None:
        """Say that rows are missing."""
        self._left_out.append(f"{what}: {why}")
        print(f"  left out: {what}: {why}", flush=True)

    def markdown(self, versions: dict[str, str], runs: int, note: str) -> str:
        """Return RESULTS.md."""
        minutes = (time.time() - self._began) / 60
        lines = [
            "# Results",
            "",
            f"Written by `make bench`; {runs} runs a row, each beside its baseline. {note}",
            "",
        ]
        lines += [f"- {name}: {text}" for name, text in {**machine(), **versions}.items()]
        lines += [
            f"- load before and after: {self._load:.2f}, {os.getloadavg()[0]:.2f}; took {minutes:.0f} minutes"
        ]
        lines += [f"- left out: {text}" for text in self._left_out]
        for row in self._rows:
            if isinstance(row, str):
                lines += ["", f"## {row}", "", _markdown(HEAD), _markdown(["---"] * len(HEAD))]
            else:
                lines.append(_markdown(row.cells()))
        return "\n".join([*lines, ""])


def _markdown(cells: "tuple[str, ...] | list[str]") -> str:
    return f"| {' | '.join(cells)} |"


def machine() -> dict[str, str]:
    """Return what was measured, and on what."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?"
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in DEPENDENCIES)
    return {
        "commit": said("git", "describe", "--always", "--dirty"),
        "machine": f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_version()}; {packages}",
    }


def said(*command: str) -> str:
    """Return the first line that a command prints, "?" where there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    except OSError:
        return "?"
    lines = (done.stdout + done.stderr).splitlines()
    return lines[0].strip() if lines else "?"


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()
