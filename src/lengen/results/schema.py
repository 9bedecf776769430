"""What is kept of a measurement: one row for each run, length and metric. Counts, not rates, so that rows can pool."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

METRICS = ("last-token", "exact-tokens", "joint")
Mode = Literal["one-pass", "decode"]


@dataclass(frozen=True)
class Row:
    run: str  # the run's id: config hash and training seed
    step: int
    length: int
    metric: str  # one of METRICS
    correct: int
    total: int
    seed: int  # of the test examples
    mode: Mode
    overrides: dict[str, Any] = field(default_factory=dict)  # settings that differ from training, e.g. task.k_test

    @property
    def rate(self) -> float:
        return self.correct / self.total

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Row":
        expected = {f.name for f in fields(cls)}
        if set(record) != expected:
            odd = sorted(set(record) ^ expected)
            raise ValueError(
                f"a row has missing or unknown fields {', '.join(odd)}; was it written by another version?"
            )
        return cls(**record)
