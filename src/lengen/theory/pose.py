"""Remark 4.2: does training with PoSE position ids (Sec. 2.2) remove the need for locality? Computed exactly.

The objective is eq. (3) with each training sequence's ids drawn by PoSE; the test at L̄ uses the true ids 1, …, L̄.
"""

from dataclasses import dataclass
from itertools import combinations, product
from math import fsum

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.theory.attention import AttentionClass, SparseAttention, attend_all_sets
from lengen.theory.counterexamples import ZeroWhere
from lengen.theory.ensembles import Iid, PlantedEnsemble, TokenLaw
from lengen.theory.keys import tabulate_value
from lengen.theory.position_laws import UniformPlacement
from lengen.theory.risk import (
    Estimate,
    LengthGeneralization,
    expected_loss,
    tied_for_smallest,
    training_lengths,
)

MAX_ID_ROWS = 2**20
"""The most (split, offsets) draws of PoSE that may be enumerated at one length."""


@dataclass(frozen=True, eq=False)
class PoseIds:
    """Every id row that PoSE can give a sequence of one length, with its probability."""

    rows: Int[np.ndarray, "m L"]
    probabilities: Float[np.ndarray, " m"]


def pose_ids(length: int, test_length: int, chunks: int = 2) -> PoseIds:
    """Sec. 2.2: split into chunks uniformly, draw an offset a chunk from [L̄ − ℓ], sort them, and add.

    For two chunks the ids start at min(J_0, J_1), and at max(J_0, J_1) + ℓ_1 for the second chunk. With offsets from
    1 to L̄ − ℓ no id exceeds L̄ − 1.
    """
    offsets = test_length - length
    splits = list(combinations(range(1, length), chunks - 1))
    if offsets < 1 or not splits:
        raise ValueError(f"PoSE cannot split length {length} in {chunks} chunks with offsets up to {offsets}")
    if len(splits) * offsets**chunks > MAX_ID_ROWS:
        raise ValueError(
            f"PoSE with {chunks} chunks from length {length} to {test_length} has {len(splits) * offsets**chunks} "
            f"draws, above the limit of {MAX_ID_ROWS}; use a smaller L_bar"
        )
    draws = np.sort(np.array(list(product(range(1, offsets + 1), repeat=chunks))), axis=1)
    chunk_of = np.array([np.searchsorted(split, np.arange(length), side="right") for split in splits])
    rows = (draws[:, chunk_of] + np.arange(length)).reshape(-1, length)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    return PoseIds(distinct, counts / len(rows))


def pose_training_risk(
    hypothesis: SparseAttention, ensemble: PlantedEnsemble, max_length: int, test_length: int, chunks: int
) -> float:
    """Eq. (3) with PoSE ids: the exact mean over lengths, sequences and ids."""
    lengths = training_lengths(max_length, max(ensemble.sparsity, chunks))
    return fsum(_pose_loss(hypothesis, ensemble, n, pose_ids(n, test_length, chunks)) for n in lengths) / len(lengths)


def pose_length_generalization(
    attention_class: AttentionClass, ensemble: PlantedEnsemble, max_length: int, test_length: int, chunks: int = 2
) -> LengthGeneralization:
    """Minimise the PoSE risk over the class, and measure every minimiser at L̄ with true ids."""
    hypotheses = attention_class.hypotheses()
    risks = {
        name: pose_training_risk(hypothesis, ensemble, max_length, test_length, chunks)
        for name, hypothesis in hypotheses.items()
    }
    losses = {
        name: Estimate.exactly(expected_loss(hypotheses[name], ensemble, test_length))
        for name in tied_for_smallest(risks)
    }
    return LengthGeneralization(risks, losses)


def spread_sets_example(sparsity: int, max_length: int) -> tuple[AttentionClass, PlantedEnsemble]:
    """A non-local class for Remark 4.2: one key also looks at sets whose every gap is at least L.

    Planted neighbours (1, …, 1) on background 0 with label 1. Sets with every gap ≥ L exist from length
    (k − 1) L + 1 on; PoSE with c chunks shows sets with at most c − 1 wide gaps.
    """

    def planted(positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Tensor:
        return (tokens == 1).all(dim=-1)

    def planted_or_spread(positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Tensor:
        return planted(positions, tokens) | (positions.diff(dim=-1) >= max_length).all(dim=-1)

    keys = {"planted": ZeroWhere(planted), "planted or spread": ZeroWhere(planted_or_spread)}
    values = {"all ones": tabulate_value(lambda x: float(all(x)), sparsity, vocab_size=2)}
    ensemble = PlantedEnsemble(
        mu=Iid(np.array([1.0, 0.0])),
        position_law=UniformPlacement.contiguous(sparsity),
        token_law=TokenLaw.uniform([(1,) * sparsity]),
        label=lambda z: np.ones(len(z)),
    )
    return AttentionClass(keys, values, sparsity), ensemble


def _pose_loss(hypothesis: SparseAttention, ensemble: PlantedEnsemble, length: int, ids: PoseIds) -> float:
    total = 0.0
    id_rows = torch.from_numpy(ids.rows)
    for batch in ensemble.enumerate(length):
        for sequence, label, weight in zip(batch.sequences, batch.labels, batch.weights, strict=True):
            tokens = torch.from_numpy(sequence).expand(len(id_rows), length)
            outputs = attend_all_sets(hypothesis.key, hypothesis.value, hypothesis.sparsity, tokens, id_rows).numpy()
            total += float(weight) * float(np.abs(outputs - label).max(axis=1) @ ids.probabilities)
    return total
