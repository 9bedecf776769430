"""Proposition C.3: four ensembles with their classes, each of which lacks exactly one assumption of Theorem 4.3.

Tokens: the paper's 1 is 0 here (background) and its 2 is 1 (planted). Every example has k = 2, L_local = 2, background
that is all 0, planted tokens (1, 1) and the label 1. Where the printed example does not do what it says, the example
here does, and docs/interpretations.md says what changed. Beside them: one instance without i.i.d. background.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengen.theory.assumptions import Finding, check_coverage, check_locality, check_realizability, check_relativity
from lengen.theory.attention import AttentionClass
from lengen.theory.ensembles import Iid, MarkovChain, PlantedEnsemble, TokenLaw
from lengen.theory.keys import tabulate_key, tabulate_value
from lengen.theory.position_laws import ListedPositions, PositionLaw, UniformPlacement
from lengen.theory.risk import LengthGeneralization, length_generalization, training_lengths

LOCALITY = 2
SMALLEST_L = 3
"""The smallest L at which each example lacks what it says: with L = 2, every set at distance 2 ends past L."""
COVERAGE_PER_LENGTH = 10.0
"""Coverage "with η_ℓ = O(ℓ)" is checked as η_ℓ ≤ 10 ℓ."""

Rule = Callable[[Int[Tensor, "*N k"], Int[Tensor, "*N k"]], Bool[Tensor, "*N"]]
Support = tuple[Int[np.ndarray, "s k"], Float[np.ndarray, " s"]]


@dataclass(frozen=True)
class ZeroWhere:
    """A key that is 0 on the sets (positions, tokens) where the rule holds and −∞ elsewhere."""

    rule: Rule

    def __call__(self, positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N"]:
        return torch.where(self.rule(positions, tokens), 0.0, -torch.inf).double()


@dataclass(frozen=True)
class Counterexample:
    """An ensemble and a class that lack one assumption."""

    lacks: str
    max_length: int
    ensemble: PlantedEnsemble
    attention_class: AttentionClass

    def findings(self, test_length: int) -> dict[str, Finding]:
        """The four assumptions, checked at all positions and lengths up to L̄ that enter Theorem 4.3."""
        if test_length <= self.max_length:
            raise ValueError(
                f"L_bar={test_length} is not longer than L={self.max_length}; use {2 * self.max_length} up"
            )
        lengths = [*training_lengths(self.max_length, 2), test_length]
        law = self.ensemble.position_law
        at_train, at_test = (
            check_coverage(law, length, LOCALITY, COVERAGE_PER_LENGTH * length)
            for length in (self.max_length, test_length)
        )
        return {
            "locality": check_locality(self.attention_class, 2, test_length, LOCALITY),
            "relative": check_relativity(self.attention_class, 2, test_length),
            "realizability": check_realizability(self.attention_class, self.ensemble, lengths),
            "coverage": at_test if at_train.holds else at_train,
        }

    def outcome(self, test_length: int) -> LengthGeneralization:
        """Every minimiser of eq. (3) with its exact loss at L̄."""
        return length_generalization(self.attention_class, self.ensemble, self.max_length, test_length)


def without_locality(max_length: int) -> Counterexample:
    """A key may look at sets as wide as L, which no training sequence has.

    The paper calls h_{g_00} both the realizing hypothesis and the failing one; g_01 is the one that realizes.
    """
    keys = {
        "g_01": ZeroWhere(lambda s, x: _planted_tokens(x)),
        "g_00": ZeroWhere(lambda s, x: _planted_tokens(x) | (_width(s) >= max_length)),
    }

    def support(length: int) -> Support:
        far = _pairs(length, max_length) if length > max_length else np.empty((0, 2), dtype=np.int64)
        return _uniform(np.concatenate([_pairs(length, 1), far]))

    return _counterexample("locality", max_length, keys, ListedPositions(support, 2, first_length=2), locality=None)


def without_relativity(max_length: int) -> Counterexample:
    """A key may look at absolute positions, and goes astray past L."""
    keys = {
        "g_00": ZeroWhere(lambda s, x: _planted_tokens(x) & (_width(s) == 1)),
        "g_01": ZeroWhere(
            lambda s, x: (_planted_tokens(x) & (_width(s) == 1)) | ((_width(s) == 2) & (s[..., -1] > max_length))
        ),
    }
    law = ListedPositions(lambda length: _uniform(_pairs(length, 1)), 2, first_length=2)
    return _counterexample("relative", max_length, keys, law, locality=LOCALITY)


def without_realizability(max_length: int) -> Counterexample:
    """The planted pair is mostly at distance 1 up to L and mostly at distance 2 beyond; each key knows one distance.

    As printed, no pair is at distance 2 up to L, and so coverage fails as well (see `printed_without_realizability`).
    A tenth of the mass there keeps coverage, the minimiser, and the loss beyond L.
    """
    return _without_realizability(max_length, partial(_mixed_distances, max_length, 0.9))


def printed_without_realizability(max_length: int) -> Counterexample:
    """The paper's own example for realizability, which lacks coverage too: η_ℓ is infinite for ℓ > L."""
    return _without_realizability(max_length, partial(_mixed_distances, max_length, 1.0))


def without_coverage(max_length: int) -> Counterexample:
    """The planted pair is at distance 1 up to L and at distance 2 beyond; one key knows both, the other the first."""
    keys = {
        "g_00": ZeroWhere(lambda s, x: _planted_tokens(x) & (_width(s) == 1)),
        "g_01": ZeroWhere(lambda s, x: _planted_tokens(x) & (_width(s) <= 2)),
    }
    law = ListedPositions(lambda length: _uniform(_pairs(length, 1 if length <= max_length else 2)), 2, first_length=2)
    return _counterexample("coverage", max_length, keys, law, locality=LOCALITY)


def without_iid_background() -> tuple[PlantedEnsemble, AttentionClass]:
    """A background that ages: 0 1 2 3 3 3 …, so that the token 3 shows up past length 4 only. Here k = L_local = 1.

    Planted anywhere: 4, with label 1. One key looks at 4; the other at 3 and 4, where the value is wrong on 3. At L = 4
    both are always right.
    """
    ages = np.eye(5, k=1)
    ages[3] = ages[4] = np.eye(5)[3]
    ensemble = PlantedEnsemble(
        mu=MarkovChain(np.eye(5)[0], ages),
        position_law=UniformPlacement.contiguous(1),
        token_law=TokenLaw.uniform([(4,)]),
        label=lambda planted: np.ones(len(planted)),
    )
    keys = {
        "planted": tabulate_key(lambda s, x: 0.0 if x[0] == 4 else -inf, 1, 1, vocab_size=5),
        "planted or old": tabulate_key(lambda s, x: 0.0 if x[0] >= 3 else -inf, 1, 1, vocab_size=5),
    }
    values = {"is planted": tabulate_value(lambda x: float(x[0] == 4), 1, vocab_size=5)}
    return ensemble, AttentionClass(keys, values, 1, locality=1)


def loss_constant(max_length: int, test_length: int) -> float:
    """The c of Proposition C.3: for L ≥ 3 and L̄ ≥ 2L the four losses are at least 0.84, 3/4, 0.84 and 14/15.

    Of L < L̄ < 2L the proposition does not speak; there they are at least 0.375, 1/2, 0.75 and 5/6.
    """
    return 0.7 if test_length >= 2 * max_length else 0.35


COUNTEREXAMPLES: dict[str, Callable[[int], Counterexample]] = {
    "locality": without_locality,
    "relative": without_relativity,
    "realizability": without_realizability,
    "coverage": without_coverage,
}


def _without_realizability(max_length: int, support: Callable[[int], Support]) -> Counterexample:
    keys = {
        "g_00": ZeroWhere(lambda s, x: _planted_tokens(x) & (_width(s) == 1)),
        "g_01": ZeroWhere(lambda s, x: _planted_tokens(x) & (_width(s) == 2)),
    }
    return _counterexample(
        "realizability", max_length, keys, ListedPositions(support, 2, first_length=2), locality=LOCALITY
    )


def _mixed_distances(max_length: int, near_share_in_training: float, length: int) -> Support:
    near, far = _pairs(length, 1), _pairs(length, 2)
    near_share = near_share_in_training if length <= max_length else 0.1
    if not len(far):
        return _uniform(near)
    weights = [np.full(len(near), near_share / len(near)), np.full(len(far), (1 - near_share) / len(far))]
    return np.concatenate([near, far]), np.concatenate(weights)


def _counterexample(
    lacks: str, max_length: int, keys: dict[str, ZeroWhere], law: PositionLaw, locality: int | None
) -> Counterexample:
    if max_length < SMALLEST_L:
        raise ValueError(f"L={max_length} is too short for these examples; use L={SMALLEST_L} or more")
    values = {"g_1": tabulate_value(lambda x: float(x == (1, 1)), sparsity=2, vocab_size=2)}
    ensemble = PlantedEnsemble(Iid(np.array([1.0, 0.0])), law, TokenLaw.uniform([(1, 1)]), lambda z: np.ones(len(z)))
    return Counterexample(lacks, max_length, ensemble, AttentionClass(keys, values, sparsity=2, locality=locality))


def _pairs(length: int, distance: int) -> Int[np.ndarray, "s k"]:
    firsts = np.arange(1, length - distance + 1)
    return np.stack([firsts, firsts + distance], axis=1)


def _uniform(sets: Int[np.ndarray, "s k"]) -> Support:
    return sets, np.full(len(sets), 1 / len(sets))


def _planted_tokens(tokens: Int[Tensor, "*N k"]) -> Bool[Tensor, "*N"]:
    return (tokens == 1).all(dim=-1)


def _width(positions: Int[Tensor, "*N k"]) -> Int[Tensor, "*N"]:
    return positions[..., -1] - positions[..., 0]
