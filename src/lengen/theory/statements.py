"""The paper's statements, each as a function that measures both of its sides. `checks` names and orders them.

Every function takes (L, L̄), which only the counterexamples heed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import fsum

import numpy as np
import torch

from lengen.seeding import rng_for
from lengen.theory import instances
from lengen.theory.adversarial import blind_spot_class, extend_adversarially
from lengen.theory.assumptions import check_coverage, check_realizability, check_strong_realizability
from lengen.theory.attention import SparseAttention, attend_all_sets
from lengen.theory.counterexamples import COUNTEREXAMPLES, loss_constant, without_iid_background
from lengen.theory.coupling import check_local_coupling
from lengen.theory.coupling_examples import far_retrieval_class, far_retrieval_coupler, reordering_coupler
from lengen.theory.errata import Erratum, dead_windows, hidden_path, wide_planted_sets
from lengen.theory.examples import (
    k_gram_retrieval,
    marker_class,
    noisy_marker,
    planted_parity,
    sticky_marker,
    stray_marks,
)
from lengen.theory.heads import attention_from_head, distance_from_heads, head_from_attention
from lengen.theory.keys import TableKey, TableValue
from lengen.theory.lemmas import lemma_c2, printed_c1_counterexample
from lengen.theory.measurements import GridPoint, exact_grid, train_parity, train_retrieval
from lengen.theory.pose import pose_length_generalization, spread_sets_example
from lengen.theory.position_laws import RandomShift
from lengen.theory.risk import Estimate, length_generalization
from lengen.theory.theorem import TheoremReport, check_theorem

ROUNDING = 1e-10
"""Two evaluations of one quantity agree in fp64 when they differ by less than this; only more is a difference."""


@dataclass(frozen=True)
class Outcome:
    """What a check found."""

    holds: bool
    measured: Estimate
    bound: float


def ensembles_are_distributions(*_: int) -> Outcome:
    ensembles = [k_gram_retrieval(1, 2), planted_parity(2, 3), noisy_marker(2, 0.1), sticky_marker(2, 0.1, 0.5)]
    sums = [fsum(fsum(batch.weights) for batch in ensemble.enumerate(8)) for ensemble in ensembles]
    return _at_most(Estimate.exactly(max(abs(total - 1) for total in sums)), ROUNDING)


def evaluations_agree(*_: int) -> Outcome:
    largest = 0.0
    for sparsity in (1, 2, 3, 4):
        for step, dead_share in enumerate((0.0, 0.5, 0.95, 1.0)):
            rng = rng_for(sparsity, "theory/evaluations", step)
            h = instances.random_attention(rng, sparsity, locality=4, vocab_size=3, dead_share=dead_share)
            for length in (sparsity, sparsity + 1, 9):
                tokens = instances.random_tokens(rng, 3, 8, length)
                difference = h(tokens) - attend_all_sets(h.key, h.value, sparsity, tokens)
                largest = max(largest, float(difference.abs().max()))
    return _at_most(Estimate.exactly(largest), ROUNDING)


def adversary_wins(*_: int) -> Outcome:
    attention_class, base = blind_spot_class(), noisy_marker(2, 0.0)
    extension = extend_adversarially(attention_class, base, vocab_size=3, max_length=8, test_length=10)
    return _at_least(length_generalization(attention_class, extension, 8, 10).worst, 0.5)


def heads_are_attention(*_: int) -> Outcome:
    largest = 0.0
    for step in range(20):
        rng = rng_for(0, "theory/heads", step)
        head = instances.random_head(rng, dim=3, attention_dim=4, vocab_size=7)
        tokens = instances.random_tokens(rng, 7, 8, 12)
        largest = max(largest, float((head(tokens) - attention_from_head(head)(tokens)).abs().max()))
    return _at_most(Estimate.exactly(largest), ROUNDING)


def attention_is_heads(*_: int) -> Outcome:
    largest = 0.0
    for step in range(20):
        rng = rng_for(1, "theory/heads", step)
        scores, outputs = torch.from_numpy(rng.normal(size=4)), torch.from_numpy(rng.normal(size=(4, 3)))
        attention = SparseAttention(TableKey(scores[None], 1, 0, 4), TableValue(outputs, 1, 4), 1, 0)
        tokens = instances.random_tokens(rng, 4, 8, 12)
        head = head_from_attention(scores, outputs, attention_dim=3)
        largest = max(largest, float((head(tokens) - attention(tokens)).abs().max()))
    return _at_most(Estimate.exactly(largest), ROUNDING)


def no_head_computes(*_: int) -> Outcome:
    scores = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    outputs = torch.tensor([[0.0], [0.5], [1.0]], dtype=torch.float64)
    return _more_than(Estimate.exactly(distance_from_heads(scores, outputs)), ROUNDING)


def natural_choice_covers(*_: int) -> Outcome:
    return _at_most(check_coverage(RandomShift.of_neighbours(2, 4), 64, 4).constant, 64.0)


def natural_choice_needs_places(*_: int) -> Outcome:
    law = RandomShift(np.array([[1, 2]]), np.ones(1), locality=4)
    smallest_ratio = 1 / check_coverage(law, 64, 4).constant.value
    return Outcome(smallest_ratio < 1 / 64, Estimate.exactly(smallest_ratio), 1 / 64)


def theorem_on_grid(*_: int) -> Outcome:
    reports = _grid_reports()
    tightest = max((r for r in reports if r.bound > 0), key=lambda r: r.measured.value / r.bound)
    return Outcome(all(report.holds for report in reports), tightest.measured, tightest.bound)


def repaired_theorem(*_: int) -> Outcome:
    # Bounds below 1, minimisers that lose more than δ: without T, and without ρ, the loss would exceed the bound.
    demanding = [check_theorem(*stray_marks(1e-4, 8), 8, 20), hidden_path(heavy=1e7, rare=1e-3).report()]
    reports = [*_grid_reports(), *demanding, *(e().report() for e in (hidden_path, wide_planted_sets, dead_windows))]
    tightest = max((r for r in reports if r.repaired_bound > 0), key=lambda r: r.measured.value / r.repaired_bound)
    says_something = all(r.delta < r.measured.value and r.repaired_bound < 1 for r in demanding)
    holds = says_something and all(report.repaired_holds for report in reports)
    return Outcome(holds, tightest.measured, tightest.repaired_bound)


def theorem_far_out(*_: int) -> Outcome:
    report = GridPoint("dilution", 2, difficulty=23.0, max_length=8, test_length=512).report()
    says_something = report.delta < report.measured.value and report.bound < 1
    return Outcome(report.holds and says_something, report.measured, report.bound)


def breaks_theorem(make: Callable[[], Erratum]) -> Callable[[int, int], Outcome]:
    def run(*_: int) -> Outcome:
        report = make().report()
        exceeds = report.measured.value > report.bound + ROUNDING
        return Outcome(exceeds and report.hypotheses_hold, report.measured, report.bound)

    return run


def repaired_lemma_c1(*_: int) -> Outcome:
    chains = [instances.random_chain(rng_for(0, "theory/chain", step)) for step in range(40)]
    sides = [chain.repaired(4) for chain in [*chains, printed_c1_counterexample(1e4)]]
    tightest = max(sides, key=lambda side: side.left / side.right)
    return Outcome(all(side.holds for side in sides), Estimate.exactly(tightest.left), tightest.right)


def printed_lemma_c1_fails(*_: int) -> Outcome:
    side = printed_c1_counterexample(1e4).printed(3)
    return _more_than(Estimate.exactly(side.left), side.right)


def lemma_c2_holds(*_: int) -> Outcome:
    rngs = [rng_for(0, "theory/ratio", step) for step in range(500)]
    sides = [lemma_c2(*instances.random_ratio(rng, num_terms=1 + step % 5, dim=2)) for step, rng in enumerate(rngs)]
    tightest = max(sides, key=lambda side: side.left / side.right)
    return Outcome(all(side.holds for side in sides), Estimate.exactly(tightest.left), tightest.right)


def counterexample(lacks: str) -> Callable[[int, int], Outcome]:
    def run(max_length: int, test_length: int) -> Outcome:
        example = COUNTEREXAMPLES[lacks](max_length)
        findings = example.findings(test_length)
        only_its_own = all(finding.holds == (name != lacks) for name, finding in findings.items())
        worst = example.outcome(test_length).worst
        constant = loss_constant(max_length, test_length)
        return Outcome(only_its_own and worst.value >= constant, worst, constant)

    return run


def coupling_is_local(*_: int) -> Outcome:
    coupler = far_retrieval_coupler()
    finding = check_local_coupling(coupler.coupling, coupler.ensemble.position_law, range(4, 13), coupler.locality)
    return Outcome(finding.holds, finding.constant, float(coupler.locality))


def coupling_generalizes(*_: int) -> Outcome:
    coupler, plain = far_retrieval_coupler(), far_retrieval_class()
    strong = check_strong_realizability(plain, coupler.ensemble, range(4, 11))
    coupled, coupled_class = coupler.couple_ensemble(), coupler.couple_class(plain)
    report = check_theorem(coupled, coupled_class, 8, 10)
    return Outcome(strong.holds and report.holds, report.measured, report.bound)


def local_class_fails_uncoupled(*_: int) -> Outcome:
    ensemble = far_retrieval_coupler().ensemble
    return _at_least(length_generalization(far_retrieval_class(locality=2), ensemble, 8, 16).worst, 0.25)


def reordering_breaks(*_: int) -> Outcome:
    coupler, plain = reordering_coupler()
    strong = check_strong_realizability(plain, coupler.ensemble, range(2, 11))
    coupled = length_generalization(coupler.couple_class(plain), coupler.couple_ensemble(), 8, 10).worst
    outcome = _more_than(coupled, 0.0)  # the printed bound with the δ = 0 of strong realizability
    return Outcome(outcome.holds and strong.holds, outcome.measured, outcome.bound)


def pose_helps_pairs(*_: int) -> Outcome:
    attention_class, ensemble = spread_sets_example(sparsity=2, max_length=6)
    without = length_generalization(attention_class, ensemble, 6, 18).worst.value
    with_pose = pose_length_generalization(attention_class, ensemble, 6, 18).worst
    return Outcome(without >= 0.5 and with_pose.value <= 0.0, with_pose, 0.0)


def pose_fails_triples(*_: int) -> Outcome:
    attention_class, ensemble = spread_sets_example(sparsity=3, max_length=6)
    three_chunks = pose_length_generalization(attention_class, ensemble, 6, 18, chunks=3).worst.value
    outcome = _at_least(pose_length_generalization(attention_class, ensemble, 6, 18).worst, 0.5)
    return Outcome(outcome.holds and three_chunks <= 0.0, outcome.measured, outcome.bound)


def markov_background(*_: int) -> Outcome:
    report = check_theorem(*without_iid_background(), 4, 6)
    failing = [finding.assumption for finding in report.findings if not finding.holds]
    failing += [condition for condition, holds in report.conditions.items() if not holds]
    exceeds = report.measured.value > report.bound + ROUNDING
    return Outcome(exceeds and failing == ["i.i.d. background"], report.measured, report.bound)


def learned_parity(*_: int) -> Outcome:
    return _surely_at_most(train_parity(seed=0).loss_by_length([4096], samples=8000)[4096], 0.1)


def learned_retrieval(*_: int) -> Outcome:
    return _surely_at_most(train_retrieval(seed=0).loss_by_length([4096], samples=8000)[4096], 0.1)


def retrieval_lacks_coverage(*_: int) -> Outcome:
    smallest_ratio = 1 / check_coverage(k_gram_retrieval(1, 2).position_law, 12, 4).constant.value
    return Outcome(smallest_ratio <= 0.0, Estimate.exactly(smallest_ratio), 0.0)


def strong_implies_realizable(*_: int) -> Outcome:
    ensemble, attention_class = noisy_marker(2, 0.05), marker_class(2, 2)
    weak = check_realizability(attention_class, ensemble, range(4, 9)).constant
    return _at_most(weak, check_strong_realizability(attention_class, ensemble, range(4, 9)).constant.value)


@cache
def _grid_reports() -> list[TheoremReport]:
    return [point.report() for point in exact_grid()]


def _at_most(measured: Estimate, bound: float) -> Outcome:
    return Outcome(measured.value <= bound, measured, bound)


def _surely_at_most(measured: Estimate, bound: float) -> Outcome:
    return Outcome(measured.high <= bound, measured, bound)


def _at_least(measured: Estimate, bound: float) -> Outcome:
    return Outcome(measured.value >= bound, measured, bound)


def _more_than(measured: Estimate, bound: float) -> Outcome:
    return Outcome(measured.value > bound, measured, bound)
