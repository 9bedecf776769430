"""What is kept of a measurement: one row for each run, length and metric. Counts, not rates, so that rows can pool."""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

METRICS = ("last-token", "exact-tokens", "joint")
Mode = Literal["one-pass", "decode"]
Place = tuple[int, str, str]  # which measurement of a run a row is: length, metric, settings of the test


def place_of(length: int, metric: str, overrides: dict[str, Any]) -> Place:
    return length, metric, json.dumps(overrides, sort_keys=True)


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

    @property
    def place(self) -> Place:
        return place_of(self.length, self.metric, self.overrides)

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
