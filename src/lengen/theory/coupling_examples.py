"""Proposition D.2 at work: an ensemble whose planted set spans the whole sequence, and a coupling that gathers it."""

from dataclasses import dataclass
from math import inf

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.theory.attention import AttentionClass
from lengen.theory.coupling import CoupledPositions, PositionCoupler
from lengen.theory.ensembles import Iid, PlantedEnsemble, TokenLaw
from lengen.theory.keys import Key, TableValue, tabulate_value
from lengen.theory.position_laws import ListedPositions

KEY_TOKEN, ZERO_TOKEN, ONE_TOKEN, ZERO_QUERY, ONE_QUERY = 1, 2, 3, 4, 5
VOCAB_SIZE = 6


@dataclass(frozen=True)
class TokenKey:
    """A position-independent key: 0 where the i-th token is among the i-th set of tokens for every i, else −∞."""

    allowed: tuple[frozenset[int], ...]

    def __call__(self, positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N"]:
        matches = torch.ones(tokens.shape[:-1], dtype=torch.bool)
        for place, tokens_allowed in enumerate(self.allowed):
            matches &= torch.isin(tokens[..., place], torch.tensor(sorted(tokens_allowed)))
        return torch.where(matches, 0.0, -torch.inf).double()


@dataclass(frozen=True)
class WithinDistance:
    """A key cut to sets with max − min ≤ locality: what Theorem 4.3 would have us use."""

    key: Key
    locality: int

    def __call__(self, positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N"]:
        width = positions[..., -1] - positions[..., 0]
        return torch.where(width > self.locality, -inf, self.key(positions, tokens))


def far_retrieval(noise: float = 0.0) -> PlantedEnsemble:
    """A key token, the bit after it, and a query bit at the very end; the label is the xor of the two bits.

    0 0 [K 1] 0 0 0 [Q0]  has the label 1 xor 0 = 1. With `noise`, background tokens are stray one-bits.
    """
    mu = np.zeros(VOCAB_SIZE)
    mu[0], mu[ONE_TOKEN] = 1 - noise, noise

    def support(length: int) -> tuple[np.ndarray, np.ndarray]:
        firsts = np.arange(1, length - 1)
        sets = np.stack([firsts, firsts + 1, np.full(len(firsts), length)], axis=1)
        return sets, np.full(len(sets), 1 / len(sets))

    bits = [(b, q) for b in (ZERO_TOKEN, ONE_TOKEN) for q in (ZERO_QUERY, ONE_QUERY)]
    return PlantedEnsemble(
        mu=Iid(mu),
        position_law=ListedPositions(support, 3, first_length=3),
        token_law=TokenLaw.uniform([(KEY_TOKEN, b, q) for b, q in bits]),
        label=lambda z: ((z[:, 1] == ONE_TOKEN) != (z[:, 2] == ONE_QUERY)).astype(float),
    )


def gather_query(length: int) -> CoupledPositions:
    """Give the query the key token's id, and put the pair {id, id + 1} anywhere in [ℓ]; the rest keeps its order."""
    sets, ids = [], []
    for first in range(1, length - 1):
        for target in range(1, length):
            planted = [first, first + 1, length]
            mapping = np.zeros(length, dtype=np.int64)
            mapping[[first - 1, length - 1]] = target
            mapping[first] = target + 1
            free_ids = [i for i in range(1, length + 1) if i not in (target, target + 1)]
            others = [p for p in range(1, length + 1) if p not in planted]
            mapping[np.array(others, dtype=np.int64) - 1] = free_ids[: len(others)]
            sets.append(planted)
            ids.append(mapping)
    return CoupledPositions(np.array(sets), np.array(ids), np.full(len(sets), 1 / len(sets)))


def far_retrieval_class(locality: int | None = None) -> AttentionClass:
    """Position-independent 3-sparse keys and values for far retrieval; with a locality, cut to local sets."""
    anything = frozenset(range(VOCAB_SIZE))
    bit, query = frozenset({ZERO_TOKEN, ONE_TOKEN}), frozenset({ZERO_QUERY, ONE_QUERY})
    keys: dict[str, Key] = {
        "key, bit, query": TokenKey((frozenset({KEY_TOKEN}), bit, query)),
        "key and query": TokenKey((frozenset({KEY_TOKEN}), anything, query)),
        "anything": TokenKey((anything, anything, anything)),
    }
    if locality is not None:
        keys = {name: WithinDistance(key, locality) for name, key in keys.items()}
    values = {"xor": _value_of(True), "bit alone": _value_of(False)}
    return AttentionClass(keys, values, sparsity=3, locality=locality)


def far_retrieval_coupler(noise: float = 0.0, locality: int = 2) -> PositionCoupler:
    return PositionCoupler(far_retrieval(noise), gather_query, structure=((1, 3), (2,)), locality=locality)


def reordering_coupler(locality: int = 2) -> tuple[PositionCoupler, AttentionClass]:
    """Prop. D.2 as printed fails here: PC[·] lets g_0 see background in orders that the sequences never have.

    Planted (1, 2) in the last two places, background 0, label 1. The key is finite on (1, 2) and on (1, 0), but 1 is
    followed by nothing except 2: the ensemble is strongly realizable with δ = 0. The coupling moves the pair anywhere;
    then a background 0 with rank 2 may stand near the 1, expand(·) reads (1, 0), and the value there is wrong.
    """

    def support(length: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array([[length - 1, length]]), np.ones(1)

    def coupling(length: int) -> CoupledPositions:
        targets = np.arange(1, length)
        ids = np.array(
            [
                [i for i in range(1, length + 1) if i not in (target, target + 1)] + [target, target + 1]
                for target in targets
            ]
        )
        sets = np.tile([length - 1, length], (len(targets), 1))
        return CoupledPositions(sets, ids, np.full(len(targets), 1 / len(targets)))

    ensemble = PlantedEnsemble(
        mu=Iid(np.array([1.0, 0.0, 0.0])),
        position_law=ListedPositions(support, 2, first_length=2),
        token_law=TokenLaw.uniform([(1, 2)]),
        label=lambda planted: np.ones(len(planted)),
    )
    keys = {"after 1": TokenKey((frozenset({1}), frozenset({0, 2})))}
    values = {"is 2": tabulate_value(lambda x: float(x[1] == 2), 2, vocab_size=3)}
    return PositionCoupler(ensemble, coupling, ((1,), (2,)), locality), AttentionClass(keys, values, sparsity=2)


def _value_of(uses_query: bool) -> TableValue:
    def rule(tokens: tuple[int, ...]) -> float:
        bit = tokens[1] == ONE_TOKEN
        return float(bit != (tokens[2] == ONE_QUERY)) if uses_query else float(bit)

    return tabulate_value(rule, 3, VOCAB_SIZE)
