"""Lemmas C.1 and C.2: both sides of each inequality, exactly, on any finite instance.

Lemma C.1 as printed is false; `printed_c1_counterexample` is an instance that breaks it, and `BlockChain.repaired` is
what the argument does prove (docs/theory.md, "What the proof needs").
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

MAX_OUTCOMES = 2**20
"""The most outcomes (Z_0, …, Z_i) an exact expectation may enumerate."""


@dataclass(frozen=True)
class TwoSides:
    """A statement `left` ≤ `right`."""

    left: float
    right: float

    @property
    def holds(self) -> bool:
        """Up to fp64 rounding of sums of numbers near 1."""
        return self.left <= self.right + 1e-12


def lemma_c2(a: Float[np.ndarray, " d"], b: float, q: Float[np.ndarray, "n d"], p: Float[np.ndarray, " n"]) -> TwoSides:
    """Lemma C.2: adding many terms to a ratio a/b moves it by at most the sum of what each one would (sup norm)."""
    if not b > 0 or (p <= 0).any():
        raise ValueError(f"b={b} and p (smallest {p.min()}) must be positive")
    moved = np.abs(a / b - (q.sum(axis=0) + a) / (p.sum() + b)).max()
    single = np.abs(a / b - (q + a) / (p[:, None] + b)).max(axis=1)
    return TwoSides(float(moved), float(single.sum()))


@dataclass(frozen=True)
class BlockChain:
    """The setting of Lemma C.1 for finitely many values: Z_0, and independent Z_1, Z_2, … with one law.

    (A_0, B_0) = start(Z_0), and (A_i, B_i) = step(Z_i, Z_{i−1}). The lemma lets A_0 depend on Z_1 as well; its proof
    and its use do not.
    """

    first_law: Float[np.ndarray, " z0"]
    law: Float[np.ndarray, " z"]
    start: Callable[[int], tuple[float, float]]
    first_step: Callable[[int, int], tuple[float, float]]
    """(A_1, B_1) from (Z_1, Z_0)."""
    step: Callable[[int, int], tuple[float, float]]
    """(A_i, B_i) from (Z_i, Z_{i−1}), i ≥ 2."""

    def movement(self, after: int, before: int = 0) -> float:
        """E |(A_0 + … + A_before) / (B_0 + … + B_before) − (A_0 + … + A_after) / (B_0 + … + B_after)|."""
        outcomes = len(self.first_law) * len(self.law) ** after
        if outcomes > MAX_OUTCOMES:
            raise ValueError(f"i={after} needs {outcomes} outcomes, above the limit of {MAX_OUTCOMES}; use a smaller i")
        total = 0.0
        for blocks in product(range(len(self.first_law)), *[range(len(self.law))] * after):
            probability = self.first_law[blocks[0]] * np.prod(self.law[list(blocks[1:])])
            steps = [self.first_step(blocks[1], blocks[0])] if after else []
            steps += [self.step(blocks[i], blocks[i - 1]) for i in range(2, after + 1)]
            sums = np.cumsum([self.start(blocks[0]), *steps], axis=0)
            total += probability * abs(sums[before, 0] / sums[before, 1] - sums[after, 0] / sums[after, 1])
        return float(total)

    @property
    def epsilon(self) -> float:
        """The smallest ε of eq. (14)."""
        return max(self.movement(1), self.movement(2, before=1))

    @property
    def seam(self) -> float:
        """ρ: the largest B_1 / B_0, what the first appended block can weigh against what is there."""
        pairs = product(np.flatnonzero(self.first_law), np.flatnonzero(self.law))
        return max(self.first_step(int(z), int(z0))[1] / self.start(int(z0))[1] for z0, z in pairs)

    def printed(self, after: int) -> TwoSides:
        """Lemma C.1 as printed: E |A_0/B_0 − (A_0 + … + A_i)/(B_0 + … + B_i)| ≤ 3 i ε."""
        return TwoSides(self.movement(after), 3 * after * self.epsilon)

    def repaired(self, after: int) -> TwoSides:
        """What holds: ε for i = 1, 4ε for i = 2, and 3 (1 + ρ) ε for each further block."""
        steps = {1: 1.0, 2: 4.0}.get(after, 4 + 3 * (1 + self.seam) * (after - 2))
        return TwoSides(self.movement(after), steps * self.epsilon)


def printed_c1_counterexample(heavy: float, rare: float = 0.1) -> BlockChain:
    """An instance on which Lemma C.1 as printed fails at i = 3, by a factor that grows with `heavy`.

    A block is quiet (0) or loud (1, with probability `rare`). A loud block adds wrong mass through its successor, but
    right after the start it also adds `heavy` right mass. Eq. (14) only looks at the first two blocks, where the
    heavy mass hides the wrong; a loud second block, with a quiet first, has nothing to hide behind.
    """

    def first_step(block: int, _: int) -> tuple[float, float]:
        return (0.0, heavy) if block else (0.0, 0.0)

    def step(_: int, previous: int) -> tuple[float, float]:
        return (10.0, 10.0) if previous else (0.0, 0.0)

    law = np.array([1 - rare, rare])
    return BlockChain(np.ones(1), law, lambda _: (0.0, 1.0), first_step, step)
