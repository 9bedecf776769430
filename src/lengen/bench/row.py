"""What is kept of a benchmark: one row a comparison, one file a benchmark. Standard library only."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lengen.results.store import read_jsonl, write_atomically


@dataclass(frozen=True)
class Spread:
    """The median of a few repeats, and their quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class BenchRow:
    name: str  # the benchmark
    setting: str  # which case of it
    peer: str  # what it is measured against
    threads: int
    ratio: float  # the median over repeats
    low: float  # their first quartile
    high: float  # their third quartile
    bound: Literal["at least", "at most"]
    target: float | None  # None: nothing was promised
    met: bool | None

    @classmethod
    def of(
        cls,
        name: str,
        setting: str,
        peer: str,
        spread: Spread,
        *,
        threads: int = 1,
        target: float | None = None,
        bound: Literal["at least", "at most"] = "at least",
    ) -> "BenchRow":
        ratio, low, high = (float(f"{value:.3g}") for value in (spread.median, spread.low, spread.high))
        met = None if target is None else ratio >= target if bound == "at least" else ratio <= target
        return cls(name, setting, peer, threads, ratio, low, high, bound, target, met)

    @property
    def comparison(self) -> tuple[str, str, int]:
        """Which row of its benchmark this is: a new measurement of it takes its place."""
        return self.setting, self.peer, self.threads

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_rows(folder: Path, benchmark: str, measured: Sequence[BenchRow]) -> list[BenchRow]:
    """Replace the rows of the same comparisons; the others, not measured this time, are kept and returned."""
    comparisons = {row.comparison for row in measured}
    kept = [row for row in read_rows(folder, [benchmark]) if row.comparison not in comparisons]
    lines = "".join(json.dumps(row.to_dict()) + "\n" for row in (*measured, *kept))
    write_atomically(folder / f"{benchmark}.jsonl", lines.encode())
    return kept


def read_rows(folder: Path, benchmarks: Iterable[str]) -> list[BenchRow]:
    """The rows of those benchmarks that have been measured, in the order they are named."""
    files = [folder / f"{benchmark}.jsonl" for benchmark in benchmarks]
    return [BenchRow(**record) for file in files if file.exists() for record in read_jsonl(file)]
