"""Propositions 3.2 and B.1: an attention head with a fixed query is 1-sparse functional attention, and conversely.

The converse needs more than the paper says. A head reads both its scores and its outputs off d-dimensional embeddings.
So a head computes what a table of scores and a table of outputs do exactly when the outputs have rank at most h, the
attention dimension, and either they are all the same (then the scores do not matter), or the two tables have rank at
most d together, up to a constant added to all scores, which softmax ignores.

Shape legend: d embedding dimension, h attention dimension, V vocabulary, B batch, L length.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.theory.attention import SparseAttention
from lengen.theory.keys import TableKey, TableValue

_RANK_TOLERANCE = 1e-9  # singular values below this, relative to the largest, are rounding


@dataclass(frozen=True, eq=False)
class AttentionHead:
    """One member of AttHeads_{d, h, V} (Def. B.1): embeddings, a query vector, and the four matrices."""

    key_matrix: Float[Tensor, "h d"]
    query_matrix: Float[Tensor, "h d"]
    value_matrix: Float[Tensor, "h d"]
    output_matrix: Float[Tensor, "d h"]
    embedding: Float[Tensor, "d V"]
    query: Float[Tensor, " d"]

    def __call__(self, tokens: Int[Tensor, "B L"]) -> Float[Tensor, "B d"]:
        """The head as App. B.1 computes it, token by token."""
        embedded = self.embedding.T[tokens]  # [B, L, d]
        scores = (embedded @ self.key_matrix.T) @ (self.query_matrix @ self.query)
        attended = torch.einsum("bl,blh->bh", torch.softmax(scores, dim=1), embedded @ self.value_matrix.T)
        return attended @ self.output_matrix.T


def attention_from_head(head: AttentionHead) -> SparseAttention:
    """The 1-sparse functional attention that equals the head (the first half of Prop. B.1)."""
    vocab_size = head.embedding.shape[1]
    scores = (head.query_matrix @ head.query) @ head.key_matrix @ head.embedding
    outputs = (head.output_matrix @ head.value_matrix @ head.embedding).T
    key = TableKey(scores[None], sparsity=1, locality=0, vocab_size=vocab_size)
    return SparseAttention(key, TableValue(outputs, 1, vocab_size), sparsity=1, locality=0)


def head_from_attention(
    scores: Float[Tensor, " V"], outputs: Float[Tensor, "V d"], attention_dim: int
) -> AttentionHead:
    """A head that equals 1-sparse functional attention with these tables (the second half), where there is one."""
    dim = outputs.shape[1]
    if bool((outputs == outputs[0]).all()):
        scores = torch.zeros_like(scores)  # a mean of equal outputs is the same with any weights
    rows, rank = shared_rank(scores, outputs)
    if rank > dim:
        raise ValueError(
            f"scores and outputs have joint rank {rank}, above the embedding dimension {dim}; no head computes them"
        )
    if attention_dim < max(1, _rank(outputs)):
        raise ValueError(
            f"attention_dim={attention_dim} is below the outputs' rank {_rank(outputs)}; no head computes them"
        )
    left, singular, right = torch.linalg.svd(rows, full_matrices=False)
    embedding = torch.zeros(dim, outputs.shape[0], dtype=rows.dtype)
    embedding[:rank] = right[:rank]
    coordinates = torch.zeros(rows.shape[0], dim, dtype=rows.dtype)  # rows = coordinates @ embedding
    coordinates[:, :rank] = left[:, :rank] * singular[:rank]
    value_left, value_singular, value_right = torch.linalg.svd(coordinates[1:])
    value_rank = min(dim, attention_dim)
    value_matrix = torch.zeros(attention_dim, dim, dtype=rows.dtype)
    output_matrix = torch.zeros(dim, attention_dim, dtype=rows.dtype)
    value_matrix[:value_rank] = value_right[:value_rank]
    output_matrix[:, :value_rank] = value_left[:, :value_rank] * value_singular[:value_rank] * _size(outputs)
    key_matrix = torch.zeros(attention_dim, dim, dtype=rows.dtype)
    key_matrix[0] = coordinates[0] * _size(_centred(scores))
    query_matrix = torch.zeros(attention_dim, dim, dtype=rows.dtype)
    query_matrix[0, 0] = 1.0
    query = torch.zeros(dim, dtype=rows.dtype)
    query[0] = 1.0
    return AttentionHead(key_matrix, query_matrix, value_matrix, output_matrix, embedding, query)


def shared_rank(scores: Float[Tensor, " V"], outputs: Float[Tensor, "V d"]) -> tuple[Float[Tensor, "rows V"], int]:
    """The tables [scores + c; outputs^T] with the constant c that gives them the smallest rank, and that rank.

    Scores and outputs are each scaled to size 1, so that neither is taken for the rounding of the other.
    """
    scores, outputs = _centred(scores) / _size(_centred(scores)), outputs / _size(outputs)
    plain = torch.cat([scores[None], outputs.T])
    span = torch.cat([outputs.T, torch.ones_like(scores)[None]]).T  # [V, d + 1]
    solution = torch.linalg.lstsq(span, scores[:, None], driver="gelsd").solution[:, 0]
    shifted = torch.cat([(scores - solution[-1])[None], outputs.T])
    return (shifted, _rank(shifted)) if _rank(shifted) < _rank(plain) else (plain, _rank(plain))


def distance_from_heads(scores: Float[Tensor, " V"], outputs: Float[Tensor, "V d"]) -> float:
    """How far (Euclidean) the scores are from those of any head with these outputs, if these differ and have rank d.

    Such a head's embeddings span exactly the rows of the outputs, and only a constant can be added for free.
    """
    span = torch.cat([outputs.T, torch.ones_like(scores)[None]]).T
    nearest = span @ torch.linalg.lstsq(span, scores[:, None], driver="gelsd").solution
    return float((scores[:, None] - nearest).norm())


def _centred(scores: Float[Tensor, " V"]) -> Float[Tensor, " V"]:
    return scores - scores.mean()


def _size(table: Float[Tensor, "*N"]) -> float:
    """The largest absolute entry; 1 for a table of zeros."""
    return float(table.abs().max()) or 1.0


def _rank(matrix: Float[Tensor, "rows columns"]) -> int:
    return int(torch.linalg.matrix_rank(matrix, rtol=_RANK_TOLERANCE))
