"""Parity with a scratchpad of running parities, written every `jump` bits (Sec. 5.2.1, E.2.1, eq. 21)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lengen.checks import require
from lengen.tasks.base import Task, column, require_even_length, rows

ZERO, BOS, SEP = 0, 2, 3


@dataclass(frozen=True)
class ParityScratchpad(Task):
    """Running parity of ℓ bits; with `jump` j, the i-th scratchpad bit is the parity of the first i·j bits.

    jump=1, length=6:  <BOS> 1 0 1 <SEP> 1 1 0
    ids:                   0 1 2 3     0 1 2 3
    jump=2, length=8:  <BOS> 1 0 1 1 <SEP> 1 1
    ids:                   0 1 1 2 2     0 1 2

    The x-axis is 2ℓ whatever the jump; ℓ is rounded down to a multiple of the jump.
    """

    name: ClassVar[str] = "parity-scratchpad"
    length_rule: ClassVar[str] = "length is 2ℓ: ℓ bits and, at jump 1, ℓ scratchpad bits"

    jump: int = 1

    def __post_init__(self) -> None:
        require(self.jump >= 1, f"jump={self.jump} is too small", "use at least 1")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return ("0", "1", "<BOS>", "<SEP>")

    def check_length(self, length: int) -> None:
        require_even_length(self, length, minimum=2 * self.jump)

    def num_bits(self, length: int) -> int:
        return length // 2 - length // 2 % self.jump

    def num_tokens(self, length: int) -> int:
        return self.num_bits(length) + self.num_targets(length) + 2

    def num_targets(self, length: int) -> int:
        return self.num_bits(length) // self.jump

    def max_coupled_id(self, length: int) -> int:
        return self.num_targets(length)

    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        bits = rng.integers(0, 2, size=(batch_size, self.num_bits(length)))
        scratchpad = bits.cumsum(axis=1)[:, self.jump - 1 :: self.jump] % 2
        tokens = np.concatenate([column(batch_size, BOS), bits, column(batch_size, SEP), scratchpad], axis=1)

        step_ids = np.arange(1, self.num_targets(length) + 1)
        return tokens, rows(batch_size, [0], step_ids.repeat(self.jump), [0], step_ids)
