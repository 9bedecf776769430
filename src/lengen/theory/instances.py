"""Random instances of the objects that the paper's statements quantify over, for checks and property tests."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.theory.attention import SparseAttention
from lengen.theory.heads import AttentionHead
from lengen.theory.keys import TableKey, TableValue, local_shapes
from lengen.theory.lemmas import BlockChain


def random_attention(
    rng: np.random.Generator, sparsity: int, locality: int, vocab_size: int, dead_share: float
) -> SparseAttention:
    """A local hypothesis with random tables; `dead_share` of the scores is −∞, and the others spread over ±50."""
    num_shapes, num_tuples = len(local_shapes(sparsity, locality)), vocab_size**sparsity
    scores = torch.from_numpy(rng.uniform(-50, 50, size=(num_shapes, num_tuples)))
    scores[torch.from_numpy(rng.random((num_shapes, num_tuples)) < dead_share)] = -torch.inf
    values = torch.from_numpy(rng.random((num_tuples, 2)))
    key = TableKey(scores, sparsity, locality, vocab_size)
    return SparseAttention(key, TableValue(values, sparsity, vocab_size), sparsity, locality)


def random_tokens(rng: np.random.Generator, vocab_size: int, batch: int, length: int) -> Int[Tensor, "B L"]:
    return torch.from_numpy(rng.integers(vocab_size, size=(batch, length)))


def random_chain(rng: np.random.Generator, num_values: int = 3) -> BlockChain:
    """A setting of Lemma C.1: labels in [0, 1], weights over four orders of magnitude, some of them 0."""

    def weights(*shape: int) -> Float[np.ndarray, "..."]:
        return np.where(rng.random(shape) < 0.2, 0.0, 10 ** rng.uniform(-2, 2, size=shape))

    first_law, law = rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(num_values))
    base = 10 ** rng.uniform(-1, 1, size=2)
    first, later = weights(num_values, 2), weights(num_values, num_values)
    base_label, first_label, later_label = rng.random(2), rng.random((num_values, 2)), rng.random(later.shape)
    return BlockChain(
        first_law=first_law,
        law=law,
        start=lambda z0: (float(base[z0] * base_label[z0]), float(base[z0])),
        first_step=lambda z, z0: (float(first[z, z0] * first_label[z, z0]), float(first[z, z0])),
        step=lambda z, y: (float(later[z, y] * later_label[z, y]), float(later[z, y])),
    )


def random_ratio(
    rng: np.random.Generator, num_terms: int, dim: int
) -> tuple[Float[np.ndarray, " d"], float, Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """a, b, q, p of Lemma C.2."""
    positive = 10 ** rng.uniform(-3, 3, size=num_terms)
    return rng.normal(size=dim), float(10 ** rng.uniform(-3, 3)), rng.normal(size=(num_terms, dim)), positive


def random_head(rng: np.random.Generator, dim: int, attention_dim: int, vocab_size: int) -> AttentionHead:
    def matrix(*shape: int) -> Float[Tensor, "..."]:
        return torch.from_numpy(rng.normal(size=shape))

    return AttentionHead(
        key_matrix=matrix(attention_dim, dim),
        query_matrix=matrix(attention_dim, dim),
        value_matrix=matrix(attention_dim, dim),
        output_matrix=matrix(dim, attention_dim),
        embedding=matrix(dim, vocab_size),
        query=matrix(dim),
    )
