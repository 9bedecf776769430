"""An analysis of context sparsity on disk: one file, its settings in the first line, one line an example after it.

No text and no token is stored, only places in the source: rows may be published where the text may not. Standard
library only, so that figures can be drawn where torch is not installed.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from lengen.results.store import append_jsonl, read_jsonl, write_atomically

ORDERS = ("influence", "random", "attended", "recent")  # in which far tokens are unmasked
NUM_DECIMALS = 4


@dataclass(frozen=True)
class ContextSettings:
    """All that decides the rows of an analysis."""

    model: str
    select_with: str  # the model that says which far tokens matter; usually the same
    text: str
    text_sha256: str
    short: int
    long: int
    num_influential: int
    num_examples: int
    num_greedy: int  # greedy forward selection for this many of the first examples
    curve: tuple[int, ...]  # how many far tokens are unmasked at each point of a curve
    seed: int
    num_targets: int = 1  # examples of one window of text: those of the same far tokens

    @property
    def num_far(self) -> int:
        return self.long - self.short - 1

    def target_of(self, example: int) -> int:
        """Which of the tokens that its window predicts: so many more recent ones than `short` it has."""
        return example % self.num_targets


@dataclass(frozen=True)
class GreedySelection:
    tokens: list[int]  # in the order in which they were chosen
    losses: list[float]  # after each choice


@dataclass(frozen=True)
class ContextRow:
    example: int  # windows are counted from 0, and within each its targets
    start: int  # the window's first token, counted from the text's first
    loss_short: float
    loss_long: float
    influential: list[int]  # far tokens J_1 … J_k, the most influential first
    influence: list[float]  # by far token: the selecting model's loss without it minus its loss with all
    losses: dict[str, list[float]]  # by order, at each point of the curve
    greedy: GreedySelection | None

    def to_dict(self) -> dict[str, Any]:
        return {key: _rounded(value) for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "ContextRow":
        greedy = record["greedy"]
        return cls(**record | {"greedy": None if greedy is None else GreedySelection(**greedy)})

    @property
    def gain_long(self) -> float:
        """How much all far tokens help: L_short − L_long."""
        return self.loss_short - self.loss_long

    def gains(self, order: str) -> list[float]:
        """How much the first tokens of an order help: L_short − L_short,sparse at each point of the curve."""
        return [self.loss_short - loss for loss in self.losses[order]]


@dataclass(frozen=True)
class Analysis:
    settings: ContextSettings
    rows: list[ContextRow]
    digests: dict[str, str] = field(default_factory=dict)  # of "model", "select_with", "tokens"; older files have none

    def gains_long(self) -> list[float]:
        return [row.gain_long for row in self.rows]

    def gains_sparse(self, order: str) -> list[float]:
        point = self.settings.curve.index(self.settings.num_influential)
        return [row.gains(order)[point] for row in self.rows]

    @property
    def has_curves(self) -> bool:
        """Whether losses were measured between none, k and all far tokens."""
        settings = self.settings
        return not {*settings.curve} <= {0, settings.num_influential, settings.num_far}

    @property
    def num_windows(self) -> int:
        """Of text: examples of one are not independent."""
        return len(self.rows) // self.settings.num_targets

    def counted(self) -> str:
        return counted(len(self.rows), self.num_windows)


def counted(num_examples: int, num_windows: int) -> str:
    """How many examples there are, in words."""
    examples = f"{num_examples} examples"
    if num_windows == num_examples:
        return examples
    return f"{examples} in {num_windows} {'window' if num_windows == 1 else 'windows'}"


def analysis_file(folder: Path, name: str) -> Path:
    """Where the rows of a named analysis are kept beside those of the sweeps."""
    return folder / "context" / f"{name}.jsonl"


def rows_file_of(path: Path) -> Path:
    """An analysis is named by its folder or by its file."""
    return path / "rows.jsonl" if path.is_dir() else path


def start_analysis(
    path: Path, settings: ContextSettings, provenance: dict[str, Any], digests: dict[str, str] | None = None
) -> None:
    """Write the first line."""
    record = {"settings": asdict(settings), "digests": digests or {}, "provenance": provenance}
    write_atomically(path, (json.dumps(record) + "\n").encode())


def change_settings(path: Path, settings: ContextSettings) -> None:
    """Of an analysis that goes on with more examples: its first line alone changes."""
    first, _, rows = path.read_bytes().partition(b"\n")
    record = json.loads(first) | {"settings": asdict(settings)}
    write_atomically(path, json.dumps(record).encode() + b"\n" + rows)


def append_rows(path: Path, rows: Iterable[ContextRow]) -> None:
    append_jsonl(path, [row.to_dict() for row in rows])


def read_analysis(path: Path) -> Analysis:
    file = rows_file_of(path)
    if not file.is_file():
        missing = f"{path} holds no analysis (no {file.name})" if path.is_dir() else f"there is no analysis {path}"
        raise ValueError(f"{missing}; give the --out of a `lengen context analyze`")
    try:
        header, *records = list(read_jsonl(file)) or [{}]
        names = {field.name for field in fields(ContextSettings)}
        given = {"num_targets": 1} | header["settings"]  # older files have no other
        if set(given) != names:
            raise KeyError(", ".join(sorted(names ^ set(given))))
        settings = ContextSettings(**given | {"curve": tuple(given["curve"])})
        # Sorted, and the newest of an example: two processes may have worked on it.
        rows = {record["example"]: ContextRow.from_dict(record) for record in records}
    except (KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no analysis of this version ({error}); restore it or analyse again") from error
    return Analysis(settings, _whole_windows(rows, settings.num_targets), header.get("digests", {}))


def _whole_windows(rows: dict[int, ContextRow], num_targets: int) -> list[ContextRow]:
    """In order, without those of a window whose other rows are not written yet."""
    firsts = sorted({example - example % num_targets for example in rows})
    windows = [range(first, first + num_targets) for first in firsts]
    return [rows[example] for window in windows if all(e in rows for e in window) for example in window]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, NUM_DECIMALS)
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
