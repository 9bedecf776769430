"""Rows of a sweep: one file a figure, each line a row with the run it came from."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lengen.results.schema import Row
from lengen.results.store import append_jsonl, read_jsonl


@dataclass(frozen=True)
class SweepRow:
    figure: str
    preset: str
    scale: str
    arm: str  # the config hash: all that decides results but the seed
    train_seed: int
    wall_seconds: float  # of training
    version: str
    commit: str | None
    row: Row

    def to_dict(self) -> dict[str, Any]:
        record = asdict(self)
        return record | record.pop("row")

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "SweepRow":
        own = {name: record[name] for name in cls.__dataclass_fields__ if name != "row"}
        rest = {name: value for name, value in record.items() if name not in own}
        return cls(**own, row=Row.from_dict(rest))


def sweep_file(folder: Path, figure: str) -> Path:
    return folder / f"{figure}.jsonl"


def append_sweep_rows(folder: Path, figure: str, rows: list[SweepRow]) -> None:
    append_jsonl(sweep_file(folder, figure), [row.to_dict() for row in rows])


def read_sweep_rows(folder: Path, figure: str) -> list[SweepRow]:
    path = sweep_file(folder, figure)
    try:
        return [SweepRow.from_dict(record) for record in read_jsonl(path)] if path.exists() else []
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} has a line that is no row ({error}); restore the file") from error
