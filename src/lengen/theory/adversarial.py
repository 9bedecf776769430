"""Proposition 3.1: without assumptions on the ensemble, an adversary extends it past L and breaks generalization."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
import torch
from jaxtyping import Float, Int

from lengen.theory.attention import AttentionClass
from lengen.theory.ensembles import Ensemble, LabelledBatch
from lengen.theory.examples import marker_class
from lengen.theory.keys import tabulate_key
from lengen.theory.risk import Hypothesis, tied_for_smallest, training_risk

MAX_SEQUENCES_SEARCHED = 2**20
"""The most sequences of length L̄ among which the adversary looks for the worst."""


@dataclass(frozen=True)
class AdversarialExtension:
    """P_ℓ of a base ensemble below L̄, and at L̄ a point mass on one sequence with its true label."""

    base: Ensemble
    test_length: int
    sequence: Int[np.ndarray, " L"]
    label: Float[np.ndarray, " d"]
    disagreement: float
    """L(h*(x), ĥ(x)) on that sequence: the loss of ĥ at L̄."""

    def num_sequences(self, length: int) -> int:
        return 1 if length == self.test_length else self.base.num_sequences(length)

    def enumerate(self, length: int) -> Iterator[LabelledBatch]:
        if length == self.test_length:
            yield self._point_mass(1)
        else:
            yield from self.base.enumerate(length)

    def sample(self, length: int, n: int, rng: np.random.Generator) -> LabelledBatch:
        return self._point_mass(n) if length == self.test_length else self.base.sample(length, n, rng)

    def _point_mass(self, n: int) -> LabelledBatch:
        return LabelledBatch(
            sequences=np.tile(self.sequence, (n, 1)),
            planted=np.empty((n, 0), dtype=np.int64),  # the adversary plants nothing
            labels=np.tile(self.label, (n, 1)),
            weights=np.full(n, 1 / n),
        )


def extend_adversarially(
    attention_class: AttentionClass, ensemble: Ensemble, vocab_size: int, max_length: int, test_length: int
) -> AdversarialExtension:
    """The worst extension for the class: over pairs (h*, ĥ) of minimisers with zero risk, and all x of length L̄.

    The paper takes the supremum over sequences of length L; it must be L̄, the length that the adversary chooses at.
    """
    if vocab_size**test_length > MAX_SEQUENCES_SEARCHED:
        raise ValueError(
            f"L_bar={test_length} with {vocab_size} tokens has {vocab_size**test_length} sequences, above the limit of "
            f"{MAX_SEQUENCES_SEARCHED}; use a smaller L_bar"
        )
    hypotheses = attention_class.hypotheses()
    risks = {name: training_risk(h, ensemble, max_length, attention_class.sparsity) for name, h in hypotheses.items()}
    tied = tied_for_smallest(risks)
    if min(risks.values()) > 0:
        raise ValueError(f"no hypothesis realizes the ensemble up to L={max_length}: the risk is {min(risks.values())}")
    sequences = torch.cartesian_prod(*[torch.arange(vocab_size)] * test_length).reshape(-1, test_length)
    outputs = {name: _evaluate(hypotheses[name], sequences) for name in tied}
    best: AdversarialExtension | None = None
    for truth in tied:
        for learned in tied:
            gap = np.abs(outputs[truth] - outputs[learned]).max(axis=1)
            at = int(gap.argmax())
            if best is None or gap[at] > best.disagreement:
                best = AdversarialExtension(
                    ensemble, test_length, sequences[at].numpy(), outputs[truth][at], float(gap[at])
                )
    assert best is not None  # some hypothesis is minimal
    return best


def blind_spot_class(locality: int = 2) -> AttentionClass:
    """Two keys that agree on `examples.noisy_marker(2, 0)`: one also looks at neighbours (1, 1), never seen there."""
    base = marker_class(2, locality)

    def rule(shape: tuple[int, ...], tokens: tuple[int, ...]) -> float:
        return 0.0 if shape == (0, 1) and (tokens[0] == 2 or tokens == (1, 1)) else -inf

    keys = {"sharp": base.keys["sharp"], "blind spot": tabulate_key(rule, 2, locality, vocab_size=3)}
    return AttentionClass(keys, {"parity": base.values["parity"]}, 2, locality)


def _evaluate(hypothesis: Hypothesis, sequences: Int[torch.Tensor, "n L"]) -> Float[np.ndarray, "n d"]:
    outputs: Float[np.ndarray, "n d"] = hypothesis(sequences).numpy()
    return outputs
