"""Keys and values (g_0 and g_1 of Def. 3.3): what they must satisfy, and the table-valued ones.

Shape legend: k sparsity (tokens in a set), d label dimension, n shapes of a local set, N any leading shape.
Tokens are integers from 0, position ids integers from 1, and a set is its positions in increasing order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class Key(Protocol):
    """g_0 of Def. 3.3: scores a set from its position ids and its tokens; −∞ means "never attend here"."""

    def __call__(self, positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N"]: ...


@runtime_checkable
class Value(Protocol):
    """g_1 of Def. 3.3: what a set contributes, from its tokens alone."""

    def __call__(self, tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N d"]: ...


def local_shapes(sparsity: int, locality: int) -> Int[Tensor, "n k"]:
    """Every shape (a set shifted to start at 0) of `sparsity` positions with max − min ≤ `locality`."""
    return torch.tensor([(0, *rest) for rest in combinations(range(1, locality + 1), sparsity - 1)])


@dataclass(frozen=True)
class ShapeLookup:
    """Finds the row of a set's shape in `local_shapes(sparsity, locality)`; −1 for a set that is too wide."""

    sparsity: int
    locality: int

    @cached_property
    def _rows(self) -> Int[Tensor, " lookup"]:
        """The row of each shape, by its gaps from the first position read as digits; −1 where no local shape fits."""
        base = self.locality + 1
        rows = torch.full((base ** (self.sparsity - 1),), -1)
        shapes = local_shapes(self.sparsity, self.locality)
        rows[_digits_to_number(shapes[:, 1:], base)] = torch.arange(len(shapes))
        return rows

    def __call__(self, positions: Int[Tensor, "*N k"]) -> Int[Tensor, "*N"]:
        gaps = positions[..., 1:] - positions[..., :1]
        rows = self._rows[_digits_to_number(gaps.clamp(max=self.locality), self.locality + 1)]
        return torch.where(positions[..., -1] - positions[..., 0] > self.locality, -1, rows)


@dataclass(frozen=True, eq=False)
class TableKey:
    """A local and relative key (Assumption 3.3) as a table: one row a shape, one column a token tuple.

    Rows follow `local_shapes(sparsity, locality)`; columns follow `encode_tuples`. Entries may be −∞, and may be a
    learned parameter: the evaluations are differentiable in them.
    """

    scores: Float[Tensor, "n tuples"]
    sparsity: int
    locality: int
    vocab_size: int

    def __post_init__(self) -> None:
        expected = (len(local_shapes(self.sparsity, self.locality)), self.vocab_size**self.sparsity)
        if tuple(self.scores.shape) != expected:
            raise ValueError(f"the table of scores has shape {tuple(self.scores.shape)}; it must be {expected}")

    @cached_property
    def _lookup(self) -> ShapeLookup:
        return ShapeLookup(self.sparsity, self.locality)

    def __call__(self, positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N"]:
        rows = self._lookup(positions)
        scores = self.scores[rows.clamp(min=0), encode_tuples(tokens, self.vocab_size)]
        return torch.where(rows < 0, -torch.inf, scores)


@dataclass(frozen=True, eq=False)
class TableValue:
    """A value as a table: the row of each token tuple (in the order of `encode_tuples`) is what it contributes."""

    rows: Float[Tensor, "tuples d"]
    sparsity: int
    vocab_size: int

    def __post_init__(self) -> None:
        if len(self.rows) != self.vocab_size**self.sparsity:
            raise ValueError(
                f"the table of values has {len(self.rows)} rows; {self.vocab_size} tokens in sets of {self.sparsity} "
                f"need {self.vocab_size**self.sparsity}"
            )

    def __call__(self, tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N d"]:
        return self.rows[encode_tuples(tokens, self.vocab_size)]


def tabulate_key(
    rule: Callable[[tuple[int, ...], tuple[int, ...]], float], sparsity: int, locality: int, vocab_size: int
) -> TableKey:
    """The table of `rule(shape, tokens)`, a plain Python function of one local shape and one token tuple."""
    shapes = local_shapes(sparsity, locality).tolist()
    rows = [[rule(tuple(s), x) for x in product(range(vocab_size), repeat=sparsity)] for s in shapes]
    return TableKey(torch.tensor(rows, dtype=torch.float64), sparsity, locality, vocab_size)


def tabulate_value(rule: Callable[[tuple[int, ...]], float], sparsity: int, vocab_size: int) -> TableValue:
    """The table of `rule(tokens)`, a plain Python function with a label in [0, 1]."""
    rows = [[float(rule(x))] for x in product(range(vocab_size), repeat=sparsity)]
    return TableValue(torch.tensor(rows, dtype=torch.float64), sparsity, vocab_size)


def encode_tuples(tokens: Int[Tensor, "*N k"], vocab_size: int) -> Int[Tensor, "*N"]:
    """The tuple's place in the order of `itertools.product(range(vocab_size), repeat=k)`."""
    if tokens.numel():
        smallest, largest = (int(extreme) for extreme in torch.aminmax(tokens))
        if smallest < 0 or largest >= vocab_size:  # it would be read as another tuple
            outside = smallest if smallest < 0 else largest
            raise ValueError(f"the token {outside} is not in a table of {vocab_size} tokens; use 0 to {vocab_size - 1}")
    return _digits_to_number(tokens, vocab_size)


def require_enough_tokens(sparsity: int, length: int) -> None:
    if sparsity > length:
        raise ValueError(
            f"sparsity={sparsity} is larger than the length {length}; no set of {sparsity} positions exists"
        )


def require_valid_scores(largest: Float[Tensor, "*N"]) -> None:
    """Scores must lie in R ∪ {−∞}. The largest score of a row tells: `amax` passes NaN on, and +∞ is the largest."""
    if bool(torch.isnan(largest).any()):
        raise ValueError("the key returned NaN; a score must be a real number or -inf")
    if bool((largest == torch.inf).any()):
        raise ValueError("the key returned +inf; a score must be a real number or -inf")


def _digits_to_number(digits: Int[Tensor, "*N m"], base: int) -> Int[Tensor, "*N"]:
    if digits.shape[-1] == 0:
        return torch.zeros(digits.shape[:-1], dtype=torch.int64)
    number = digits[..., 0]
    for place in range(1, digits.shape[-1]):
        number = number * base + digits[..., place]
    return number
