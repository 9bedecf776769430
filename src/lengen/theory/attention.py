"""Sparse functional attention (Def. 3.3), evaluated as the definition says: a softmax over every k-set of positions.

Shape legend: B batch, L length, k sparsity (tokens in a set), d label dimension, N any leading shape.
Tokens are integers from 0, position ids integers from 1, and a set is its positions in increasing order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import comb

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.theory.keys import Key, Value, require_enough_tokens, require_valid_scores
from lengen.theory.local_attention import attend_local_sets, gather_sets

MAX_SET_EVALUATIONS = 2**30
"""The most (sequence, k-set) pairs one call of the definition's sum may visit: about a minute of one core."""

MAX_SET_BYTES = 2**28
"""The most bytes that the list of all k-sets may take. With tokens, positions and scores it is about six times that."""

# (sequence, k-set) pairs held at once, tens of megabytes; the sets of one sequence are never split, however many.
_CHUNK_SETS = 2**18


def attend_all_sets(
    key: Key,
    value: Value,
    sparsity: int,
    tokens: Int[Tensor, "B L"],
    position_ids: Int[Tensor, "B L"] | None = None,
) -> Float[Tensor, "B d"]:
    """Def. 3.3 to the letter, footnote 6 included: O(C(L, k)) a sequence, so this serves short lengths and checks."""
    batch, length = tokens.shape
    require_enough_tokens(sparsity, length)
    num_sets = comb(length, sparsity)
    if batch * num_sets > MAX_SET_EVALUATIONS:
        raise ValueError(
            f"the sum over all {sparsity}-sets of {batch} sequences of length {length} has {batch * num_sets} terms, "
            f"above the limit of {MAX_SET_EVALUATIONS}; give the class a locality, or use shorter or fewer sequences"
        )
    num_bytes = num_sets * sparsity * torch.int64.itemsize
    if num_bytes > MAX_SET_BYTES:
        raise ValueError(
            f"the list of all {sparsity}-sets of {length} positions takes {num_bytes:,} bytes, "
            f"above the limit of {MAX_SET_BYTES:,}; give the class a locality, or use shorter sequences"
        )
    sets = torch.combinations(torch.arange(length), sparsity)  # [C(L, k), k], slots from 0
    rows_at_once = max(1, _CHUNK_SETS // num_sets)
    outputs = []
    for start in range(0, batch, rows_at_once):
        rows = slice(start, start + rows_at_once)
        set_tokens = gather_sets(tokens[rows], sets)
        positions = (sets + 1).expand_as(set_tokens) if position_ids is None else gather_sets(position_ids[rows], sets)
        scores = key(positions, set_tokens)
        top = scores.amax(dim=1, keepdim=True)
        require_valid_scores(top)
        # Footnote 6: where every score is −∞, all sets count alike, which is what equal scores do.
        scores = torch.where(top == -torch.inf, torch.zeros_like(scores), scores)
        outputs.append(torch.einsum("bs,bsd->bd", torch.softmax(scores, dim=1), value(set_tokens)))
    return torch.cat(outputs)


@dataclass(frozen=True)
class SparseAttention:
    """One hypothesis h_{g_0, g_1} of a k-sparse functional attention class.

    `locality` = L_local says that the key is −∞ on every set wider than that (Assumption 3.3, item 1), and makes the
    evaluation linear in the length. It is taken on trust here; `assumptions.check_locality` verifies it.
    """

    key: Key
    value: Value
    sparsity: int
    locality: int | None = None

    def __post_init__(self) -> None:
        if self.sparsity < 1:
            raise ValueError(f"sparsity={self.sparsity} must be at least 1")
        if self.locality is not None and self.locality < self.sparsity - 1:
            raise ValueError(
                f"locality={self.locality} leaves no room for a set of {self.sparsity}; use {self.sparsity - 1} or more"
            )

    def __call__(self, tokens: Int[Tensor, "B L"]) -> Float[Tensor, "B d"]:
        if self.locality is None:
            return attend_all_sets(self.key, self.value, self.sparsity, tokens)
        return attend_local_sets(self.key, self.value, self.sparsity, self.locality, tokens)


@dataclass(frozen=True)
class AttentionClass:
    """H^attn(G^key, G^val) of Def. 3.3 for finite G^key and G^val: every key is paired with every value."""

    keys: Mapping[str, Key]
    values: Mapping[str, Value]
    sparsity: int
    locality: int | None = None

    def __post_init__(self) -> None:
        if not self.keys or not self.values:
            raise ValueError(f"a class needs keys and values; got {len(self.keys)} keys and {len(self.values)} values")

    def hypotheses(self) -> dict[tuple[str, str], SparseAttention]:
        """Every hypothesis by its (key name, value name)."""
        return {
            (key_name, value_name): SparseAttention(key, value, self.sparsity, self.locality)
            for (key_name, key), (value_name, value) in product(self.keys.items(), self.values.items())
        }
