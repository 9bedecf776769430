"""Sparse functional attention for local keys, in time linear in the length: O(L · C(L_local, k − 1)).

A set with max − min ≤ L_local is its first position and a choice of k − 1 among the next L_local ones, so the softmax
of Def. 3.3 runs over (first position, shape) pairs. They are visited in chunks and summed in log space (a running
maximum and the two sums relative to it), so memory does not grow with the length and no score over- or underflows.
"""

from math import comb

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengen.theory.keys import Key, Value, local_shapes, require_enough_tokens, require_valid_scores

MAX_TUPLES = 2**20
"""The most token tuples (distinct tokens to the power k) that footnote 6's average over all sets may count."""

_CHUNK_SETS = 2**16  # (sequence, set) pairs held at once: a few MB, so that a chunk stays in the processor's cache


def attend_local_sets(
    key: Key, value: Value, sparsity: int, locality: int, tokens: Int[Tensor, "B L"]
) -> Float[Tensor, "B d"]:
    """Def. 3.3 for a key that is −∞ on every set with max − min > `locality`; differentiable in key and value.

    A sequence on which every score is −∞ gets the average of g_1 over *all* k-sets (footnote 6), local or not.
    """
    batch, length = tokens.shape
    require_enough_tokens(sparsity, length)
    shapes = local_shapes(sparsity, min(locality, length - 1))  # [n, k]
    firsts_at_once = max(1, _CHUNK_SETS // (batch * len(shapes)))
    top = torch.full((batch, 1), -torch.inf, dtype=torch.float64)
    total: Float[Tensor, "B 1"] | None = None
    weighted: Float[Tensor, "B d"] | None = None
    for start in range(0, length - sparsity + 1, firsts_at_once):
        firsts = torch.arange(start, min(start + firsts_at_once, length - sparsity + 1))
        slots = (firsts[:, None, None] + shapes).flatten(0, 1)  # [sets, k], from 0
        if int(firsts[-1] + shapes[-1, -1]) >= length:  # only the last chunks reach past the end
            slots = slots[slots[:, -1] < length]
        set_tokens = gather_sets(tokens, slots)
        scores = key((slots + 1).expand_as(set_tokens), set_tokens)
        chunk_top = scores.detach().amax(dim=1, keepdim=True)
        require_valid_scores(chunk_top)
        new_top = torch.maximum(top.to(scores.dtype), chunk_top)
        reference = torch.where(new_top == -torch.inf, 0.0, new_top)  # −∞ − (−∞) would be NaN
        weights = torch.exp(scores - reference)
        chunk_weighted = torch.einsum("bs,bsd->bd", weights, value(set_tokens))
        chunk_total = weights.sum(dim=1, keepdim=True)
        if total is None or weighted is None:
            total, weighted = chunk_total, chunk_weighted
        else:
            shrink = torch.exp(top - reference)
            total, weighted = total * shrink + chunk_total, weighted * shrink + chunk_weighted
        top = new_top
    assert total is not None
    assert weighted is not None  # length >= sparsity: there was a first chunk
    dead = top[:, 0] == -torch.inf
    if not bool(dead.any()):
        return weighted / total
    return _fill_dead_rows(weighted / torch.where(dead[:, None], 1.0, total), dead, value, sparsity, tokens)


def average_over_all_sets(value: Value, sparsity: int, tokens: Int[Tensor, "B L"]) -> Float[Tensor, "B d"]:
    """Footnote 6's mean of g_1(x_S) over every k-set S, without visiting them: O(L · distinct^k).

    How often each token tuple occurs as a subsequence follows from running counts: a tuple (…, x) grows at each slot
    that holds x by the number of times its prefix occurred before that slot.
    """
    batch, length = tokens.shape
    require_enough_tokens(sparsity, length)
    present, tokens = torch.unique(tokens, return_inverse=True)
    distinct = len(present)
    if distinct**sparsity > MAX_TUPLES:
        raise ValueError(
            f"every score is -inf, and footnote 6's average needs the counts of {distinct}^{sparsity} token tuples, "
            f"above the limit of {MAX_TUPLES}; use a key with a finite score, fewer tokens, or the sum over all sets"
        )
    slots_at_once = max(1, _CHUNK_SETS // (batch * distinct**sparsity))
    # before[j][b, tuple of j tokens] = occurrences of the tuple as a subsequence before the current chunk
    before = [torch.zeros(batch, distinct**j, dtype=torch.float64) for j in range(sparsity + 1)]
    before[0] += 1.0
    for start in range(0, length, slots_at_once):
        here = torch.nn.functional.one_hot(tokens[:, start : start + slots_at_once], distinct).double()  # [B, c, U]
        prefix = before[0][:, None, :].expand(-1, here.shape[1], -1)
        for j in range(1, sparsity + 1):
            grown = (prefix[..., :, None] * here[..., None, :]).flatten(-2)  # [B, c, U^j]
            running = grown.cumsum(dim=1)
            prefix = before[j][:, None, :] + running - grown
            before[j] = before[j] + running[:, -1]
    tuples = torch.cartesian_prod(*[present] * sparsity).reshape(-1, sparsity)
    contributions = value(tuples)
    return (before[sparsity].to(contributions.dtype) @ contributions) / comb(length, sparsity)


def gather_sets(values: Int[Tensor, "B L"], slots: Int[Tensor, "s k"]) -> Int[Tensor, "B s k"]:
    """`values[:, slots]`, several times faster."""
    return values.index_select(1, slots.flatten()).view(len(values), *slots.shape)


def _fill_dead_rows(
    alive: Float[Tensor, "B d"], dead: Bool[Tensor, " B"], value: Value, sparsity: int, tokens: Int[Tensor, "B L"]
) -> Float[Tensor, "B d"]:
    average = average_over_all_sets(value, sparsity, tokens[dead])
    return alive.index_put((dead.nonzero()[:, 0],), average.to(alive.dtype))
