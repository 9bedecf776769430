"""Theorem 4.3: its hypotheses checked, its bound computed with the proof's own constant, and the loss measured.

Three bounds are reported, because the printed proof has gaps (docs/theory.md, "What the proof needs"):
the headline η_L η_L̄ L L̄² δ; the same with the constant that the proof's steps add up to; and one whose proof holds.
"""

from dataclasses import dataclass
from math import inf

import torch

from lengen.theory.assumptions import (
    Finding,
    check_coverage,
    check_locality,
    check_realizability,
    check_relativity,
    dead_mass,
    planted_mass_beyond,
)
from lengen.theory.attention import AttentionClass, SparseAttention
from lengen.theory.ensembles import Iid, PlantedEnsemble
from lengen.theory.keys import local_shapes
from lengen.theory.risk import Estimate, length_generalization, training_lengths


@dataclass(frozen=True)
class TheoremReport:
    """What Theorem 4.3 says of one ensemble, class, L and L̄, beside what happens."""

    max_length: int
    test_length: int
    findings: tuple[Finding, ...]
    conditions: dict[str, bool]
    """What the theorem asks besides its assumptions: i.i.d. background (Def. 3.2) and the lengths' conditions."""
    delta: float
    eta_train: float
    eta_test: float
    headline_bound: float
    """η_L η_L̄ L L̄² δ, as the theorem prints it."""
    bound: float
    """The headline with the constant that the proof's steps add up to."""
    repaired_bound: float
    """The bound whose proof holds: see `repaired_bound`."""
    measured: Estimate
    """The loss at L̄ of the worst minimiser of eq. (3)."""

    @property
    def hypotheses_hold(self) -> bool:
        return all(finding.holds for finding in self.findings) and all(self.conditions.values())

    @property
    def constant(self) -> float:
        """bound / headline: the constant that the theorem's O(·) hides."""
        return self.bound / self.headline_bound if 0 < self.headline_bound < inf else 1.0

    @property
    def holds(self) -> bool:
        """Do the hypotheses hold and the loss stay within the proof's bound?"""
        return self.hypotheses_hold and self.measured.low <= self.bound

    @property
    def repaired_holds(self) -> bool:
        return self.measured.low <= self.repaired_bound

    def describe(self) -> str:
        """Every hypothesis with its constant and witness, then the loss beside the bounds."""
        lines = []
        for finding in self.findings:
            verdict = "holds" if finding.holds else "FAILS"
            lines.append(f"{verdict}  {finding.assumption}: {finding.constant.value:g}; {finding.witness}")
        lines += [f"{'holds' if true else 'FAILS'}  {condition}" for condition, true in self.conditions.items()]
        spread = "" if self.measured.exact else f" in [{self.measured.low:.4g}, {self.measured.high:.4g}] (95 %)"
        lines.append(
            f"loss {self.measured.value:.4g}{spread} at L_bar = {self.test_length}; bound {self.bound:.4g} with the "
            f"proof's constant, {self.headline_bound:.4g} as printed, {self.repaired_bound:.4g} repaired"
        )
        return "\n".join(lines)


def check_theorem(
    ensemble: PlantedEnsemble,
    attention_class: AttentionClass,
    max_length: int,
    test_length: int,
    samples: int = 0,
    seed: int = 0,
) -> TheoremReport:
    """Check Theorem 4.3 at L = `max_length` and L̄ = `test_length` for a class with a stated locality.

    Keys are inspected at all positions up to L̄, since an error past L is what the theorem excludes. δ is the smallest
    that holds at the training lengths and at L̄, the only lengths whose loss enters the proof.
    """
    locality = attention_class.locality
    if locality is None:
        raise ValueError("Theorem 4.3 needs a local class; give the AttentionClass its locality")
    if locality < 1:
        raise ValueError(f"L_local={locality} makes blocks without positions; state L_local=1 or more (L_local >= k)")
    if test_length <= max_length:
        raise ValueError(f"L_bar={test_length} is not longer than L={max_length}; nothing to generalize to")
    local = check_locality(attention_class, ensemble.vocab_size, test_length, locality)
    if not local.holds:  # the losses below would leave out its wider sets
        raise ValueError(f"the class states locality={locality}, but {local.witness}; state {local.constant.value:g}")
    relative = check_relativity(attention_class, ensemble.vocab_size, test_length)
    outcome = length_generalization(attention_class, ensemble, max_length, test_length, samples, seed)
    lengths = [*training_lengths(max_length, ensemble.sparsity), test_length]
    realizability = check_realizability(attention_class, ensemble, lengths, 1.0, samples, seed)
    coverage = {
        length: check_coverage(ensemble.position_law, length, locality)
        for length in (max_length - locality, max_length, test_length)
    }
    delta = realizability.constant.value
    eta_train = max(coverage[max_length].constant.value, coverage[max_length - locality].constant.value)
    eta_test = coverage[test_length].constant.value
    conditions = {
        "i.i.d. background": isinstance(ensemble.mu, Iid),
        "L_local >= k": locality >= ensemble.sparsity,
        "L >= 4 L_local": max_length >= 4 * locality,
        "L_local divides L_bar - L": (test_length - max_length) % locality == 0,
    }
    minimisers = [attention_class.hypotheses()[name] for name in outcome.minimisers]
    repaired = repaired_bound(ensemble, minimisers, max_length, test_length, locality, eta_test, delta)
    return TheoremReport(
        max_length=max_length,
        test_length=test_length,
        findings=(local, relative, realizability, *coverage.values()),
        conditions=conditions,
        delta=delta,
        eta_train=eta_train,
        eta_test=eta_test,
        headline_bound=_times(eta_train * eta_test * max_length * test_length**2, delta),
        bound=_times(proof_factor(max_length, test_length, locality, eta_train, eta_test), delta),
        repaired_bound=repaired if relative.holds and all(conditions.values()) else inf,
        measured=outcome.worst,
    )


def proof_factor(max_length: int, test_length: int, locality: int, eta_train: float, eta_test: float) -> float:
    """What the steps of App. C.1 multiply δ by, with every O(·) written out.

    Eq. (12) is (7) plus (11): Lδ (1 + 6 η_L T) for T = t_0 + t_1 + 2 appended blocks; eq. (13) and the sum over the
    T + 1 splits of T into t_0 and t_1 + 2 multiply this by η_L̄ (T + 1).
    """
    blocks = appended_blocks(max_length, test_length, locality)
    return eta_test * (blocks + 1) * max_length * (1 + 6 * eta_train * blocks)


def repaired_bound(
    ensemble: PlantedEnsemble,
    minimisers: list[SparseAttention],
    max_length: int,
    test_length: int,
    locality: int,
    eta_test: float,
    delta: float,
) -> float:
    """A bound on the loss at L̄ that has a proof (docs/theory.md): β + δ times `repaired_factor`.

    β is the mass of planted sets wider than L_local. The bound is infinite where a minimiser can meet a base window
    with no finite score (footnote 6). Its proof needs the theorem's other hypotheses as well.
    """
    base = max_length - 2 * locality
    if base < ensemble.position_law.shortest or any(dead_mass(h, ensemble, base) > 0 for h in minimisers):
        return inf
    num_lengths = len(training_lengths(max_length, ensemble.sparsity))
    blocks = appended_blocks(max_length, test_length, locality)
    seam = max(seam_ratio(h, locality, ensemble.vocab_size) for h in minimisers)
    beyond = planted_mass_beyond(ensemble.position_law, test_length, locality)
    return beyond + _times(repaired_factor(eta_test, num_lengths, blocks, seam), delta)


def repaired_factor(eta_test: float, num_lengths: int, blocks: int, seam: float) -> float:
    """η_L̄ n_L (T + 1)(1 + 4 (1 + ρ) T) for n_L training lengths, T appended blocks and the seam ratio ρ.

    ρ bounds the weight that a block can add at a seam by the weight already there.
    """
    return eta_test * num_lengths * (blocks + 1) * (1 + 4 * (1 + seam) * blocks)


def seam_ratio(hypothesis: SparseAttention, locality: int, vocab_size: int) -> float:
    """ρ: the largest weight of all sets that end in one block of L_local positions, over the smallest finite weight."""
    shapes = local_shapes(hypothesis.sparsity, locality)
    tuples = torch.cartesian_prod(*[torch.arange(vocab_size)] * hypothesis.sparsity).reshape(-1, hypothesis.sparsity)
    grid = (len(shapes), len(tuples), hypothesis.sparsity)
    scores = hypothesis.key((shapes + 1)[:, None].expand(grid), tuples[None].expand(grid)).double()
    smallest = float(scores[torch.isfinite(scores)].min())
    return float(locality * torch.exp(scores.amax(dim=1) - smallest).sum())


def appended_blocks(max_length: int, test_length: int, locality: int) -> int:
    """T: blocks of L_local positions around the L − 2 L_local positions of the base (rounded up)."""
    return -(-(test_length - max_length) // locality) + 2


def _times(factor: float, delta: float) -> float:
    return inf if factor == inf else factor * delta  # without coverage, a δ of 0 bounds nothing
