"""k-gram retrieval: what followed this k-gram when it stood earlier? (Sec. 3.1)"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lengen.checks import require
from lengen.tasks.base import Task, rows


@dataclass(frozen=True)
class KgramRetrieval(Task):
    """The last `gram_size` tokens stand somewhere earlier, too; the target is the token that followed them there.

    gram_size=2, length=8:  5 9 4 7 2 0 9 4 7
    ids:                    1 2 3 4 5 6 7 8 4

    The place is drawn uniformly, as in the paper. A k-gram may then occur twice by chance with different successors,
    which bounds any solver's accuracy below 1: choose `num_symbols` large against the length. The answer is coupled
    with the token that it repeats; the prompt keeps its true ids, since coupling the query would give the place away.
    """

    name: ClassVar[str] = "kgram-retrieval"
    length_rule: ClassVar[str] = "length is ℓ, the whole sequence before the answer, with the query k-gram at its end"

    gram_size: int = 2  # the paper's k
    num_symbols: int = 64  # the paper's N

    def __post_init__(self) -> None:
        require(self.gram_size >= 1, f"gram_size={self.gram_size} is too small", "use at least 1")
        require(self.num_symbols >= 2, f"num_symbols={self.num_symbols} is too few", "use at least 2")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(str(symbol) for symbol in range(self.num_symbols))

    def check_length(self, length: int) -> None:
        shortest = 2 * self.gram_size + 2
        require(
            length >= shortest,
            f"length={length} is too short for {self.name} with gram_size={self.gram_size}",
            f"use at least {shortest}",
        )

    def num_tokens(self, length: int) -> int:
        return length + 1

    def num_targets(self, length: int) -> int:
        return 1

    def max_coupled_id(self, length: int) -> int:
        return length

    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        size = self.gram_size
        tokens = rng.integers(0, self.num_symbols, size=(batch_size, length + 1))
        # ℓ' ~ Unif[ℓ − 2k − 1]: the gram stands at (1-based) places ℓ'+1 … ℓ'+k and its successor at ℓ'+k+1.
        before = rng.integers(1, length - 2 * size - 1, size=(batch_size, 1), endpoint=True)
        tokens[:, length - size :] = np.take_along_axis(tokens, before + np.arange(size + 1), axis=1)
        return tokens, np.concatenate([rows(batch_size, range(1, length + 1)), before + size + 1], axis=1)
