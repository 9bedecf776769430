"""Ensembles with k-sparse planted correlations (Def. 3.2): sampled, and enumerated exactly where the space is small.

Shape legend: n sequences, L length, k sparsity, m background tokens (L − k), d label dimension.
Tokens are integers from 0; positions are integers from 1, as in the paper.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from lengen.theory.position_laws import PositionLaw, require_distribution

MAX_SEQUENCES = 2**22
"""The most (planted set, planted tokens, background) triples an exact answer may enumerate: seconds, not hours."""

_CHUNK_SEQUENCES = 2**13


@dataclass(frozen=True)
class LabelledBatch:
    """Sequences with their planted sets and labels; `weights` are probabilities (exact) or 1/n (sampled)."""

    sequences: Int[np.ndarray, "n L"]
    planted: Int[np.ndarray, "n k"]
    labels: Float[np.ndarray, "n d"]
    weights: Float[np.ndarray, " n"]


@runtime_checkable
class Sampler(Protocol):
    """Anything that draws labelled sequences of a given length."""

    def sample(self, length: int, n: int, rng: np.random.Generator) -> LabelledBatch: ...


@runtime_checkable
class Ensemble(Sampler, Protocol):
    """A distribution P_ℓ for every length, which can also be enumerated."""

    def num_sequences(self, length: int) -> int: ...

    def enumerate(self, length: int) -> Iterator[LabelledBatch]: ...


class Background(ABC):
    """The law of the tokens outside the planted set, in the order of their positions."""

    @property
    @abstractmethod
    def support(self) -> Int[np.ndarray, " V"]:
        """The tokens that can occur."""

    @abstractmethod
    def sample(self, n: int, num_tokens: int, rng: np.random.Generator) -> Int[np.ndarray, "n m"]: ...

    @abstractmethod
    def probabilities(self, tokens: Int[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]: ...


@dataclass(frozen=True, eq=False)
class Iid(Background):
    """Independent tokens from μ, as Def. 3.2 has it."""

    mu: Float[np.ndarray, " V"]

    def __post_init__(self) -> None:
        require_distribution("mu", self.mu)

    @property
    def support(self) -> Int[np.ndarray, " V"]:
        return np.flatnonzero(self.mu)

    def sample(self, n: int, num_tokens: int, rng: np.random.Generator) -> Int[np.ndarray, "n m"]:
        return rng.choice(len(self.mu), size=(n, num_tokens), p=self.mu)

    def probabilities(self, tokens: Int[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
        return np.asarray(np.prod(self.mu[tokens], axis=1))


@dataclass(frozen=True, eq=False)
class MarkovChain(Background):
    """A Markov chain that runs over the background positions and steps across the planted ones.

    Beyond the paper, which leaves such backgrounds for future work (after Def. 3.2).
    """

    initial: Float[np.ndarray, " V"]
    transition: Float[np.ndarray, "V V"]

    def __post_init__(self) -> None:
        require_distribution("initial", self.initial)
        for token, row in enumerate(self.transition):
            require_distribution(f"transition[{token}]", row)

    @property
    def support(self) -> Int[np.ndarray, " V"]:
        reachable = self.initial > 0
        for _ in range(len(self.initial)):
            reachable = reachable | (self.transition[reachable] > 0).any(axis=0)
        return np.flatnonzero(reachable)

    def sample(self, n: int, num_tokens: int, rng: np.random.Generator) -> Int[np.ndarray, "n m"]:
        tokens = np.empty((n, num_tokens), dtype=np.int64)
        uniforms = rng.random((n, num_tokens))
        rows = np.broadcast_to(np.cumsum(self.initial), (n, len(self.initial)))
        steps = np.cumsum(self.transition, axis=1)
        for place in range(num_tokens):
            tokens[:, place] = (uniforms[:, place, None] >= rows[:, :-1]).sum(axis=1)
            rows = steps[tokens[:, place]]
        return tokens

    def probabilities(self, tokens: Int[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
        steps = np.prod(self.transition[tokens[:, :-1], tokens[:, 1:]], axis=1)
        return steps * self.initial[tokens[:, 0]] if tokens.shape[1] else np.ones(len(tokens))


@dataclass(frozen=True, eq=False)
class TokenLaw:
    """Q^voc of Def. 3.2: a distribution over the k-tuples that are planted."""

    tuples: Int[np.ndarray, "z k"]
    probabilities: Float[np.ndarray, " num"]  # one a tuple

    def __post_init__(self) -> None:
        require_distribution("the token law", self.probabilities)
        if len(self.tuples) != len(self.probabilities):
            raise ValueError(f"{len(self.tuples)} token tuples have {len(self.probabilities)} probabilities")

    @classmethod
    def uniform(cls, tuples: list[tuple[int, ...]]) -> "TokenLaw":
        return cls(np.array(tuples), np.full(len(tuples), 1 / len(tuples)))


@dataclass(frozen=True, eq=False)
class PlantedEnsemble:
    """Def. 3.2: draw S* and Z, put Z at S*, background elsewhere, and label with Y = g*(Z).

    `label` maps an array of token tuples [n, k] to labels [n] in [0, 1], or [n, d] in [0, 1]^d.
    """

    mu: Background
    position_law: PositionLaw
    token_law: TokenLaw
    label: Callable[[Int[np.ndarray, "n k"]], np.ndarray]

    def __post_init__(self) -> None:
        if self.token_law.tuples.shape[1] != self.sparsity:
            raise ValueError(
                f"planted tuples have {self.token_law.tuples.shape[1]} tokens and planted sets {self.sparsity} "
                "positions; they must agree"
            )

    @property
    def sparsity(self) -> int:
        return self.position_law.sparsity

    @property
    def vocab_size(self) -> int:
        """One more than the largest token that can occur."""
        return int(max(self.mu.support.max(), self.token_law.tuples.max())) + 1

    def sample(self, length: int, n: int, rng: np.random.Generator) -> LabelledBatch:
        """n independent draws from P_ℓ."""
        sets = self.position_law.sample(length, n, rng)
        drawn = rng.choice(len(self.token_law.tuples), size=n, p=self.token_law.probabilities)
        tuples = self.token_law.tuples[drawn]
        background = self.mu.sample(n, length - self.sparsity, rng)
        return LabelledBatch(_plant(sets, tuples, background), sets, self._labels(tuples), np.full(n, 1 / n))

    def num_sequences(self, length: int) -> int:
        """How many (S*, Z, background) triples `enumerate` visits."""
        num_sets, num_tuples = len(self.position_law.table(length).sets), len(self.token_law.tuples)
        total: int = num_sets * num_tuples * len(self.mu.support) ** (length - self.sparsity)
        return total

    def enumerate(self, length: int) -> Iterator[LabelledBatch]:
        """Every (X, S*, Y) of positive probability, in chunks whose weights sum to 1 over all chunks."""
        total = self.num_sequences(length)
        if total > MAX_SEQUENCES:
            raise ValueError(
                f"an exact answer at length {length} needs {total} sequences, above the limit of {MAX_SEQUENCES}; "
                "use a shorter length or fewer tokens, or a Monte-Carlo estimate"
            )
        table, support, num_free = self.position_law.table(length), self.mu.support, length - self.sparsity
        num_tuples, num_backgrounds = len(self.token_law.tuples), len(support) ** num_free
        for start in range(0, total, _CHUNK_SEQUENCES):
            index = np.arange(start, min(start + _CHUNK_SEQUENCES, total))
            rest, which_background = np.divmod(index, num_backgrounds)
            which_set, which_tuple = np.divmod(rest, num_tuples)
            place_values = len(support) ** np.arange(num_free)
            background = support[(which_background[:, None] // place_values) % len(support)]
            sets, tuples = table.sets[which_set], self.token_law.tuples[which_tuple]
            weights = table.probabilities[which_set] * self.token_law.probabilities[which_tuple]
            weights = weights * self.mu.probabilities(background)
            yield LabelledBatch(_plant(sets, tuples, background), sets, self._labels(tuples), weights)

    def _labels(self, tuples: Int[np.ndarray, "n k"]) -> Float[np.ndarray, "n d"]:
        labels = np.asarray(self.label(tuples), dtype=np.float64).reshape(len(tuples), -1)
        if labels.size and not (labels.min() >= 0 and labels.max() <= 1):
            raise ValueError(f"labels range over [{labels.min()}, {labels.max()}]; they must lie in [0, 1]")
        return labels


def _plant(
    sets: Int[np.ndarray, "n k"], tuples: Int[np.ndarray, "n k"], background: Int[np.ndarray, "n m"]
) -> Int[np.ndarray, "n L"]:
    num, length = len(sets), sets.shape[1] + background.shape[1]
    sequences = np.empty((num, length), dtype=np.int64)
    is_planted = np.zeros((num, length), dtype=bool)
    np.put_along_axis(is_planted, sets - 1, True, axis=1)
    sequences[~is_planted] = background.ravel()
    np.put_along_axis(sequences, sets - 1, tuples, axis=1)
    return sequences
