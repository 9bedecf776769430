"""Sparse parity: the parity of the few bits that a marker points at (Sec. 5.1, E.1.1, eq. 20)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lengen.checks import require
from lengen.tasks.base import Task, column, require_even_length, rows

BOS, SEP, T0 = 0, 1, 2
FIRST_MARKER = 4  # the token j1; t0 and t1 are 2 and 3


@dataclass(frozen=True)
class SparseParity(Task):
    """Parity of the bits whose marker is at most N/2; length 2ℓ counts ℓ (marker, bit) pairs.

    N=20, length=6, k=2:  <BOS> j3 t1 j17 t0 j10 t1 <SEP> t0
    ids (no coupling):        0  1  2   3  4   5  6     7  8

    The answer depends on 2k tokens in 2k places, so there is nothing to couple it with (footnote 10): the ids are the
    slots.
    """

    name: ClassVar[str] = "sparse-parity"
    length_rule: ClassVar[str] = "length is 2ℓ: ℓ markers, each followed by its bit"

    num_markers: int = 20  # N of Table 2
    k_train: int = 4  # k ~ Unif[min(k_train, ℓ − 1)]: the length is drawn first, then k
    k_test: int = 0  # tests have exactly this many marked bits; 0: draw k as in training

    def __post_init__(self) -> None:
        require(self.num_markers >= 2, f"num_markers={self.num_markers} is too few", "use at least 2")
        require(self.k_train >= 1, f"k_train={self.k_train} is too small", "use at least 1")
        require(self.k_test >= 0, f"k_test={self.k_test} is negative", "use 0 to draw k as in training")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return ("<BOS>", "<SEP>", "t0", "t1", *(f"j{marker}" for marker in range(1, self.num_markers + 1)))

    def check_length(self, length: int) -> None:
        require_even_length(self, length, minimum=4)
        require(
            self.k_test < length // 2,
            f"k_test={self.k_test} does not fit length={length}, which has {length // 2} bits",
            f"use a length of at least {2 * self.k_test + 2} or a smaller k_test",
        )

    def num_tokens(self, length: int) -> int:
        return length + 3

    def num_targets(self, length: int) -> int:
        return 1

    def max_coupled_id(self, length: int) -> int:
        return length + 2

    @property
    def num_stages(self) -> int:
        return self.k_train

    def at_stage(self, stage: int) -> "SparseParity":
        return replace(self, k_train=stage, k_test=0)

    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        num_bits = length // 2
        if self.k_test:
            num_marked = column(batch_size, self.k_test)
        else:
            num_marked = rng.integers(1, min(self.k_train, num_bits - 1), size=(batch_size, 1), endpoint=True)
        # A uniform k-subset: the k smallest of ℓ independent uniforms, by rank.
        ranks = rng.random((batch_size, num_bits)).argsort(axis=1).argsort(axis=1)
        is_marked = ranks < num_marked
        half = self.num_markers // 2
        low = rng.integers(1, half, size=is_marked.shape, endpoint=True)
        high = rng.integers(half + 1, self.num_markers, size=is_marked.shape, endpoint=True)
        markers = np.where(is_marked, low, high) - 1 + FIRST_MARKER
        bits = rng.integers(0, 2, size=is_marked.shape)
        parity = (bits * is_marked).sum(axis=1, keepdims=True) % 2

        pairs = np.stack([markers, T0 + bits], axis=2).reshape(batch_size, length)
        tokens = np.concatenate([column(batch_size, BOS), pairs, column(batch_size, SEP), T0 + parity], axis=1)
        return tokens, rows(batch_size, range(length + 3))
