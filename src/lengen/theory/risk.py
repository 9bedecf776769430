"""Risks, their minimisers, and length generalization (Def. 3.1, eq. 3).

The loss is the sup norm |h(X) − Y|, which is at most 1 for labels in [0, 1]^d, as Sec. 3 asks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, fsum, log, sqrt

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.seeding import rng_for
from lengen.theory.attention import AttentionClass
from lengen.theory.ensembles import MAX_SEQUENCES, Ensemble, Sampler

TIE_TOLERANCE = 1e-13
"""Risks closer than this count as equal. An exact risk is a mean of losses, each off by a few fp64 roundings (about
1e-16 apiece, as weights are normalised and lie in [0, 1]), so true ties land far inside it."""

_OUTSIDE_TOLERANCE = 1e-6  # a mean of labels in [0, 1] may leave it by rounding: fp32, where scores are learned

Hypothesis = Callable[[Int[Tensor, "B L"]], Float[Tensor, "B d"]]


@dataclass(frozen=True)
class Estimate:
    """A mean of losses in [0, 1]; exact, or with a 95 % interval that holds at every sample size."""

    value: float
    low: float
    high: float
    exact: bool

    @classmethod
    def exactly(cls, value: float) -> "Estimate":
        return cls(value, value, value, True)


@dataclass(frozen=True)
class LengthGeneralization:
    """Eq. (3) and what comes of it: every minimiser of the training risk, and its loss at L̄."""

    training_risks: dict[tuple[str, str], float]
    minimisers: dict[tuple[str, str], Estimate]
    """The loss at L̄ of each minimiser, by name. There may be several: eq. (3)'s arg min need not be unique."""

    @property
    def worst(self) -> Estimate:
        """The largest loss at L̄ among the minimisers: what Def. 3.1 must bound, whichever one is returned."""
        return max(self.minimisers.values(), key=lambda loss: loss.value)


def training_lengths(max_length: int, sparsity: int) -> range:
    """The integers of [L/2, L] at which a planted set of `sparsity` positions exists."""
    if max_length < sparsity:
        raise ValueError(f"L={max_length} is shorter than a set of {sparsity} positions; use L={sparsity} or more")
    return range(max(sparsity, ceil(max_length / 2)), max_length + 1)


def expected_loss(hypothesis: Hypothesis, ensemble: Ensemble, length: int) -> float:
    """E_{P_ℓ}[L(h(X), Y)], exactly, by enumeration."""
    return fsum(
        float(_losses(hypothesis, batch.sequences, batch.labels) @ batch.weights)
        for batch in ensemble.enumerate(length)
    )


def estimate_loss(hypothesis: Hypothesis, sampler: Sampler, length: int, n: int, rng: np.random.Generator) -> Estimate:
    """E_{P_ℓ}[L(h(X), Y)] from n samples, with an empirical-Bernstein interval (Maurer and Pontil, 2009)."""
    if n < 2:
        raise ValueError(f"n={n} samples give no interval; use 2 or more")
    batch = sampler.sample(length, n, rng)
    losses = _losses(hypothesis, batch.sequences, batch.labels)
    mean, variance, tail = float(losses.mean()), float(losses.var(ddof=1)), log(4 / 0.05)
    radius = sqrt(2 * variance * tail / n) + 7 * tail / (3 * (n - 1))
    return Estimate(mean, max(0.0, mean - radius), min(1.0, mean + radius), False)


def measure_loss(hypothesis: Hypothesis, ensemble: Ensemble, length: int, samples: int = 0, seed: int = 0) -> Estimate:
    """Exact where P_ℓ can be enumerated; beyond, an estimate from `samples` draws, the same for every hypothesis."""
    if not samples or ensemble.num_sequences(length) <= MAX_SEQUENCES:
        return Estimate.exactly(expected_loss(hypothesis, ensemble, length))
    return estimate_loss(hypothesis, ensemble, length, samples, rng_for(seed, "theory/estimate", length))


def training_risk(hypothesis: Hypothesis, ensemble: Ensemble, max_length: int, sparsity: int) -> float:
    """The objective of eq. (3): the mean over ℓ in [L/2, L] of the expected loss at ℓ."""
    lengths = training_lengths(max_length, sparsity)
    return fsum(expected_loss(hypothesis, ensemble, length) for length in lengths) / len(lengths)


def length_generalization(
    attention_class: AttentionClass,
    ensemble: Ensemble,
    max_length: int,
    test_length: int,
    samples: int = 0,
    seed: int = 0,
) -> LengthGeneralization:
    """Minimise eq. (3) over the class exactly, and measure every minimiser at L̄ = `test_length`."""
    hypotheses = attention_class.hypotheses()
    risks = {
        name: training_risk(hypothesis, ensemble, max_length, attention_class.sparsity)
        for name, hypothesis in hypotheses.items()
    }
    losses = {
        name: measure_loss(hypotheses[name], ensemble, test_length, samples, seed) for name in tied_for_smallest(risks)
    }
    return LengthGeneralization(risks, losses)


def tied_for_smallest(risks: dict[tuple[str, str], float]) -> list[tuple[str, str]]:
    """Every name whose risk is the smallest, up to TIE_TOLERANCE."""
    smallest = min(risks.values())
    return [name for name, risk in risks.items() if risk <= smallest + TIE_TOLERANCE]


def _losses(
    hypothesis: Hypothesis, sequences: Int[np.ndarray, "n L"], labels: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, " n"]:
    with torch.no_grad():
        outputs = hypothesis(torch.from_numpy(sequences)).double().numpy()
    if not (outputs.min() >= -_OUTSIDE_TOLERANCE and outputs.max() <= 1 + _OUTSIDE_TOLERANCE):
        raise ValueError(
            f"the hypothesis returns values in [{outputs.min():g}, {outputs.max():g}], outside [0, 1], where "
            "labels and losses lie; give it a g_1 with values in [0, 1]"
        )
    return np.asarray(np.abs(outputs - labels).max(axis=1))
