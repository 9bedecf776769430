"""Copying a string and reversing it: position coupling at its simplest (Sec. 2.1, eqs. 1 and 2)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lengen.checks import require
from lengen.tasks.base import Task, column, rows


@dataclass(frozen=True)
class Copy(Task):
    """The input once more.

    length=3:  4 7 1 <SEP> 4 7 1
    ids:       1 2 3     0 1 2 3
    """

    name: ClassVar[str] = "copy"
    length_rule: ClassVar[str] = "length is the number of symbols to copy"

    num_symbols: int = 10

    def __post_init__(self) -> None:
        require(self.num_symbols >= 1, f"num_symbols={self.num_symbols} is too few", "use at least 1")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*(str(symbol) for symbol in range(self.num_symbols)), "<SEP>")

    def check_length(self, length: int) -> None:
        require(length >= 1, f"length={length} is too short for {self.name}", "use at least 1")

    def num_tokens(self, length: int) -> int:
        return 2 * length + 1

    def num_targets(self, length: int) -> int:
        return length

    def max_coupled_id(self, length: int) -> int:
        return length

    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        symbols = rng.integers(0, self.num_symbols, size=(batch_size, length))
        ids = rows(batch_size, range(1, length + 1))
        separator = column(batch_size, self.num_symbols)
        return (
            np.concatenate([symbols, separator, self._rewrite(symbols)], axis=1),
            np.concatenate([ids, column(batch_size, 0), self._rewrite(ids)], axis=1),
        )

    def _rewrite(self, values: np.ndarray) -> np.ndarray:
        return values


@dataclass(frozen=True)
class StringReversal(Copy):
    """The input backwards (eq. 1), each symbol with the id of the one it repeats (eq. 2).

    length=3:  4 7 1 <SEP> 1 7 4
    ids:       1 2 3     0 3 2 1
    """

    name: ClassVar[str] = "string-reversal"
    length_rule: ClassVar[str] = "length is the number of symbols to reverse"

    def _rewrite(self, values: np.ndarray) -> np.ndarray:
        return values[:, ::-1]
