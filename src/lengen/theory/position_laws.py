"""Laws of the planted set (Q_ℓ^pos of Def. 3.2): where the tokens that matter sit in a sequence of length ℓ.

Shape legend: s sets in the support, k sparsity, n draws. Positions are integers from 1, increasing within a set.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class PositionTable:
    """Q_ℓ^pos at one length: the sets of positive probability and their probabilities."""

    sets: Int[np.ndarray, "s k"]
    probabilities: Float[np.ndarray, " s"]


class PositionLaw(ABC):
    """Q_ℓ^pos for every ℓ."""

    @property
    @abstractmethod
    def sparsity(self) -> int:
        """k, the size of every planted set."""

    @property
    def shortest(self) -> int:
        """The shortest length at which the law exists."""
        return self.sparsity

    @abstractmethod
    def _support(self, length: int) -> tuple[Int[np.ndarray, "s k"], Float[np.ndarray, " s"]]:
        """Sets (not necessarily distinct) and their probabilities."""

    def table(self, length: int) -> PositionTable:
        """The exact law at `length`."""
        self.require_length(length)
        sets, probabilities = self._support(length)
        require_distribution(f"the position law at length {length}", probabilities)
        if sets.min() < 1 or sets.max() > length or not (np.diff(sets, axis=1) > 0).all():
            raise ValueError(f"the position law at length {length} has a set that is not increasing in 1..{length}")
        distinct, index = np.unique(sets, axis=0, return_inverse=True)
        merged = np.bincount(index.ravel(), weights=probabilities, minlength=len(distinct))
        return PositionTable(distinct[merged > 0], merged[merged > 0])

    def require_length(self, length: int) -> None:
        if length < self.shortest:
            raise ValueError(f"length={length} is too short for a planted set; use {self.shortest} or more")

    def mass_by_shape(self, length: int) -> dict[tuple[int, ...], Float[np.ndarray, " starts"]]:
        """The law as one array a shape (a set shifted to start at 0), over where the shape starts."""
        table = self.table(length)
        shapes, index = np.unique(table.sets - table.sets[:, :1], axis=0, return_inverse=True)
        mass = {}
        for row, shape in enumerate(shapes):
            mine = index.ravel() == row
            mass[tuple(shape.tolist())] = np.bincount(
                table.sets[mine, 0] - 1, weights=table.probabilities[mine], minlength=length - int(shape[-1])
            )
        return mass

    def sample(self, length: int, n: int, rng: np.random.Generator) -> Int[np.ndarray, "n k"]:
        table = self.table(length)
        return table.sets[rng.choice(len(table.sets), size=n, p=table.probabilities)]


@dataclass(frozen=True, eq=False)
class UniformPlacement(PositionLaw):
    """A shape from a fixed law, placed uniformly at random among all the places where it fits.

    shapes: sets shifted to start at 0, e.g. [[0, 1]] for two neighbours. Shapes that do not fit are left out.
    """

    shapes: Int[np.ndarray, "n k"]
    shape_probabilities: Float[np.ndarray, " n"]

    def __post_init__(self) -> None:
        require_distribution("the shapes' law", self.shape_probabilities)
        if (self.shapes[:, 0] != 0).any() or len(np.unique(self.shapes, axis=0)) != len(self.shapes):
            raise ValueError("shapes are distinct and start at 0, as in [[0, 1]] for two neighbours")

    @classmethod
    def contiguous(cls, sparsity: int) -> "UniformPlacement":
        return cls(np.arange(sparsity)[None], np.ones(1))

    @property
    def sparsity(self) -> int:
        return int(self.shapes.shape[1])

    @property
    def shortest(self) -> int:
        return int(self.shapes[self.shape_probabilities > 0, -1].min()) + 1

    def mass_by_shape(self, length: int) -> dict[tuple[int, ...], Float[np.ndarray, " starts"]]:
        self.require_length(length)
        fits = self.shapes[:, -1] < length
        shares = self.shape_probabilities[fits] / self.shape_probabilities[fits].sum()
        places = length - self.shapes[fits, -1]
        return {
            tuple(shape.tolist()): np.full(num, share / num)
            for shape, share, num in zip(self.shapes[fits], shares, places, strict=True)
            if share > 0
        }

    def _support(self, length: int) -> tuple[Int[np.ndarray, "s k"], Float[np.ndarray, " s"]]:
        by_shape = self.mass_by_shape(length)
        sets = [np.arange(1, len(mass) + 1)[:, None] + np.array(shape) for shape, mass in by_shape.items()]
        return np.concatenate(sets), np.concatenate(list(by_shape.values()))


@dataclass(frozen=True, eq=False)
class RandomShift(PositionLaw):
    """The paper's natural choice (after Assumption 4.2): a set from a law on [L_local], shifted by a uniform Δ.

    It has η_ℓ ≤ ℓ when the local law is uniform over the places of each of its shapes, as `of_neighbours` is; a local
    law that leaves out a place where its shape fits has no coverage at all.
    """

    local_sets: Int[np.ndarray, "n k"]
    local_probabilities: Float[np.ndarray, " n"]
    locality: int

    def __post_init__(self) -> None:
        require_distribution("the local law", self.local_probabilities)
        if self.local_sets.min() < 1 or self.local_sets.max() > self.locality:
            raise ValueError(f"the local law has a set outside 1..{self.locality}")

    @classmethod
    def of_neighbours(cls, sparsity: int, locality: int) -> "RandomShift":
        """Neighbours anywhere in [L_local], each place alike."""
        firsts = np.arange(1, locality - sparsity + 2)
        return cls(firsts[:, None] + np.arange(sparsity), np.full(len(firsts), 1 / len(firsts)), locality)

    @property
    def sparsity(self) -> int:
        return int(self.local_sets.shape[1])

    @property
    def shortest(self) -> int:
        return self.locality

    def _support(self, length: int) -> tuple[Int[np.ndarray, "s k"], Float[np.ndarray, " s"]]:
        shifts = np.arange(length - self.locality + 1)
        sets = (self.local_sets[None] + shifts[:, None, None]).reshape(-1, self.sparsity)
        return sets, np.tile(self.local_probabilities / len(shifts), len(shifts))


@dataclass(frozen=True, eq=False)
class KGramPositions(PositionLaw):
    """k-gram retrieval (Sec. 3.1): k + 1 neighbours anywhere, and the query, the last k positions."""

    gram: int

    @property
    def sparsity(self) -> int:
        return 2 * self.gram + 1

    @property
    def shortest(self) -> int:
        return 2 * self.gram + 2

    def _support(self, length: int) -> tuple[Int[np.ndarray, "s k"], Float[np.ndarray, " s"]]:
        num = length - 2 * self.gram - 1
        firsts = np.arange(1, num + 1)[:, None]  # the paper's ℓ'
        window = firsts + np.arange(1, self.gram + 2)
        query = np.broadcast_to(np.arange(length - self.gram + 1, length + 1), (num, self.gram))
        return np.concatenate([window, query], axis=1), np.full(num, 1 / num)


@dataclass(frozen=True, eq=False)
class ListedPositions(PositionLaw):
    """Any law, as a function from the length to its sets and probabilities."""

    listing: Callable[[int], tuple[Int[np.ndarray, "s k"], Float[np.ndarray, " s"]]]
    set_size: int
    first_length: int
    """The shortest length at which `listing` may be asked."""

    @property
    def sparsity(self) -> int:
        return self.set_size

    @property
    def shortest(self) -> int:
        return self.first_length

    def _support(self, length: int) -> tuple[Int[np.ndarray, "s k"], Float[np.ndarray, " s"]]:
        return self.listing(length)


def require_distribution(name: str, probabilities: Float[np.ndarray, " n"]) -> None:
    """Probabilities must be in [0, 1] and sum to 1 (to 1e-9: they are often written as decimals)."""
    if not np.isfinite(probabilities).all() or (probabilities < 0).any():
        raise ValueError(f"{name} has the entry {probabilities.min()}; probabilities are finite and not negative")
    if abs(float(probabilities.sum()) - 1) > 1e-9:
        raise ValueError(f"{name} sums to {float(probabilities.sum())}; probabilities must sum to 1")
