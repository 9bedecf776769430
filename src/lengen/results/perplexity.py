"""Rows of Table 1: a language model's loss at one context length, summed by document, so that rows can be paired."""

import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from lengen.results.store import append_jsonl, read_jsonl

# same-targets: each chosen token predicted from exactly its last `length` tokens. all-positions: the mean over all
# positions of windows of `length` tokens, as the paper averages.
Measure = Literal["same-targets", "all-positions"]
TABLE1 = "table1.jsonl"
USUAL = {"encoder.factor": 2.0, "encoder.trained_max_id": 64}  # L̄ / L and L of Sec. 5.3: a label need not say it


@dataclass(frozen=True)
class PerplexityRow:
    preset: str  # "custom" if the run is no preset's
    scale: str
    run: str
    arm: str
    train_seed: int
    step: int
    num_tokens: int  # read in training, those that were read again included
    wall_seconds: float
    version: str
    commit: str | None
    trained_on: str  # the name of a corpus
    corpus: str  # that of the one that is measured on
    split: str
    measure: Measure
    length: int
    targets: str  # a digest of which tokens were predicted: rows that share it can be paired by document
    overrides: dict[str, Any]  # settings that differ from training, e.g. encoder.interpolation
    losses: list[float]  # summed over the targets of each document, in nats
    counts: list[int]  # targets of each document

    @property
    def loss(self) -> float:
        return math.fsum(self.losses) / sum(self.counts)

    @property
    def perplexity(self) -> float:
        return math.exp(self.loss)

    @property
    def label(self) -> str:
        """The arm in words: a preset, with what differs from training."""
        return "+".join(
            [
                f"custom {self.arm}" if self.preset == "custom" else self.preset,
                *(
                    value if isinstance(value, str) else f"{name.rpartition('.')[2]}={value:g}"
                    for name, value in self.overrides.items()
                    if USUAL.get(name) != value
                ),
            ]
        )


def append_perplexity_rows(path: Path, rows: list[PerplexityRow]) -> None:
    append_jsonl(path, [asdict(row) for row in rows])


def read_perplexity_rows(path: Path) -> list[PerplexityRow]:
    """All rows of a file; of two measurements of the same tokens the newest stands."""
    if not path.exists():
        return []
    expected = {field.name for field in fields(PerplexityRow)}
    latest: dict[str, PerplexityRow] = {}
    for record in read_jsonl(path):
        if set(record) != expected:
            raise ValueError(f"{path} has a line that is no row of perplexity; restore the file")
        row = PerplexityRow(**record)
        overrides = sorted(row.overrides.items())
        place = (row.run, row.corpus, row.split, row.targets, row.measure, row.length, overrides)
        latest[str(place)] = row
    return list(latest.values())
