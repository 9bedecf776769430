"""Addition with position coupling: digits of equal significance share an id (Sec. 2.1; Cho et al., 2024)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lengen.checks import require
from lengen.tasks.base import Task, column, rows

BOS, PLUS, EQUALS = 10, 11, 12


@dataclass(frozen=True)
class Addition(Task):
    """Two zero-padded numbers and their sum, least significant digit first, with one digit for the last carry.

    length=3:  <BOS> 6 5 3 + 0 4 9 = 2 0 7 0
    ids:           0 3 2 1 0 3 2 1 0 1 2 3 4
    """

    name: ClassVar[str] = "addition"
    length_rule: ClassVar[str] = "length is the number of digits of each operand, zero-padded"

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*(str(digit) for digit in range(10)), "<BOS>", "+", "=")

    def check_length(self, length: int) -> None:
        require(length >= 1, f"length={length} is too short for {self.name}", "use at least 1")

    def num_tokens(self, length: int) -> int:
        return 3 * length + 4

    def num_targets(self, length: int) -> int:
        return length + 1

    def max_coupled_id(self, length: int) -> int:
        return length + 1

    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        left, right = rng.integers(0, 10, size=(2, batch_size, length))  # most significant digit first
        digits = np.empty((batch_size, length + 1), dtype=np.int64)  # of the sum, least significant first
        carry = np.zeros(batch_size, dtype=np.int64)
        for place in range(length):
            total = left[:, -1 - place] + right[:, -1 - place] + carry
            digits[:, place] = total % 10
            carry = total // 10
        digits[:, length] = carry

        tokens = np.concatenate(
            [column(batch_size, BOS), left, column(batch_size, PLUS), right, column(batch_size, EQUALS), digits], axis=1
        )
        operand_ids = range(length, 0, -1)
        return tokens, rows(batch_size, [0], operand_ids, [0], operand_ids, [0], range(1, length + 2))
