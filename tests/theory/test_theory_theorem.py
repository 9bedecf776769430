"""Theorem 4.3: its hypotheses, its bound, the instances that break it as printed, and the bound that stands."""

from dataclasses import replace
from math import comb, exp, inf

import numpy as np
import pytest

from lengen.theory.attention import AttentionClass
from lengen.theory.counterexamples import ZeroWhere, without_coverage, without_iid_background, without_relativity
from lengen.theory.ensembles import Iid, PlantedEnsemble
from lengen.theory.errata import dead_windows, hidden_path, wide_planted_sets
from lengen.theory.examples import dilution, marker_class, noisy_marker, sticky_marker, stray_marks
from lengen.theory.keys import tabulate_key
from lengen.theory.measurements import GridPoint
from lengen.theory.position_laws import UniformPlacement
from lengen.theory.risk import expected_loss, training_risk
from lengen.theory.theorem import appended_blocks, check_theorem, proof_factor, repaired_factor, seam_ratio

GRID = [
    GridPoint("markers", 2, 0.0, 8, 10),
    GridPoint("markers", 2, 1e-6, 8, 12),
    GridPoint("markers", 2, 0.3, 10, 12),
    GridPoint("markers", 3, 1e-3, 12, 15),
    GridPoint("dilution", 2, 5.0, 8, 10),
    GridPoint("dilution", 2, 12.0, 8, 128),
    GridPoint("dilution", 3, 12.0, 12, 48),
]


@pytest.mark.parametrize("point", GRID, ids=str)
def test_the_loss_stays_within_both_bounds(point):
    report = point.report()
    assert report.hypotheses_hold
    assert report.measured.exact
    assert report.measured.value <= report.bound
    assert report.measured.value <= report.repaired_bound
    assert report.holds
    assert report.repaired_holds
    if point.difficulty > 0:
        assert report.measured.value >= report.delta > 0  # a loss of 0 would satisfy anything
    else:
        assert report.bound == report.measured.value == 0


def test_the_minimiser_may_lose_more_than_delta_at_a_longer_length():
    """Dilution: the minimiser is not h*, and without a factor that grows with L̄ the bound would be broken."""
    reports = [GridPoint("dilution", 2, 12.0, 8, long).report() for long in (16, 64, 256)]
    ratios = [report.measured.value / report.delta for report in reports]
    assert ratios[0] > 4
    assert ratios[1] == pytest.approx(4 * ratios[0], rel=0.3)  # linear in L̄
    assert ratios[2] == pytest.approx(4 * ratios[1], rel=0.1)
    assert [report.delta for report in reports] == pytest.approx([reports[0].delta] * 3)


def test_dilution_by_hand():
    """S* inside: (0, m) and (m, 0) twice each, four edges against ℓ − 6 pairs of zeros; two edges near an end."""
    ensemble, attention_class = dilution(2, 2, softness=7.0, max_length=8)
    zero_weight, length = exp(-7.0), 12
    total = 0.0
    for first in range(1, length):
        planted = {first, first + 1}
        pairs = [(p, p + 2) for p in range(1, length - 1)]
        edges = sum(len(planted & set(pair)) == 1 for pair in pairs)
        zeros = sum(not planted & set(pair) for pair in pairs)
        total += 0.5 * zeros * zero_weight / (edges + zeros * zero_weight)
    learned = attention_class.hypotheses()["edges", "right"]
    assert expected_loss(learned, ensemble, length) == pytest.approx(total / (length - 1), rel=1e-10)
    report = check_theorem(ensemble, attention_class, 8, 12)
    assert report.measured.value == pytest.approx(total / (length - 1), rel=1e-10)
    assert report.delta == pytest.approx(1.05 * training_risk(learned, ensemble, 8, 2))


def test_reported_numbers_are_the_definitions():
    report = GridPoint("markers", 2, 1e-2, 8, 12).report()
    best = marker_class(2, 2).hypotheses()["sharp", "parity"]
    losses = [expected_loss(best, noisy_marker(2, 1e-2), n) for n in (4, 5, 6, 7, 8, 12)]
    assert report.delta == max(losses)
    assert (report.eta_train, report.eta_test) == (7.0, 11.0)  # ℓ − 1 places for a pair, one of them at ℓ' = 2
    assert report.headline_bound == pytest.approx(7 * 11 * 8 * 144 * report.delta)
    # T = (12 − 8)/2 + 2 = 4 blocks: 11 · (4 + 1) · 8 · (1 + 6 · 7 · 4)
    assert report.bound == pytest.approx(11 * 5 * 8 * (1 + 6 * 7 * 4) * report.delta)
    assert report.constant == pytest.approx(report.bound / report.headline_bound)
    seam = seam_ratio(best, 2, 3)
    assert seam == 2.0  # one finite shape, of weight 1, at two places of a block
    assert report.repaired_bound == pytest.approx(11 * 5 * 5 * (1 + 4 * (1 + seam) * 4) * report.delta)


def test_the_proofs_factor_is_at_most_a_constant_times_the_headline():
    """O(·) in the proof: T ≤ L̄ and T + 1 ≤ L̄ for L_local ≥ 2, and η ≥ 1."""
    for locality in (2, 3, 5):
        for blocks in (1, 2, 7, 40):
            short, long = 4 * locality, 4 * locality + blocks * locality
            for eta in (1.0, 3.0, 50.0):
                assert proof_factor(short, long, locality, eta, eta) <= 7 * eta * eta * short * long**2


def test_far_lengths_are_estimated_with_an_interval():
    report = GridPoint("markers", 2, 1e-3, 8, 64).report(samples=2000)
    assert not report.measured.exact
    assert report.measured.low <= report.measured.value <= report.measured.high <= 1
    assert report.holds


@pytest.mark.parametrize(
    ("lengths", "condition"), [((6, 10), "L >= 4 L_local"), ((8, 11), "L_local divides L_bar - L")]
)
def test_length_conditions_are_checked(lengths, condition):
    report = GridPoint("markers", 2, 0.0, *lengths).report()
    assert not report.conditions[condition]
    assert not report.hypotheses_hold
    assert not report.holds
    assert report.repaired_bound == inf
    good = GridPoint("markers", 2, 0.0, 8, 10).report()
    assert all(good.conditions.values())
    assert good.repaired_bound == 0


def test_a_locality_below_k_is_reported_and_one_without_positions_refused():
    narrow = tabulate_key(lambda s, x: 0.0 if x[0] == 2 else -inf, 2, 1, vocab_size=3)
    report = check_theorem(noisy_marker(2, 0.0), AttentionClass({"n": narrow}, marker_class(2, 2).values, 2, 1), 8, 10)
    assert [name for name, holds in report.conditions.items() if not holds] == ["L_local >= k"]
    assert report.repaired_bound == inf
    ensemble, attention_class = without_iid_background()
    keys = {name: tabulate_key(lambda s, x: 0.0, 1, 0, vocab_size=5) for name in attention_class.keys}
    with pytest.raises(ValueError, match=r"^L_local=0 makes blocks without positions; state L_local=1 or more"):
        check_theorem(ensemble, AttentionClass(keys, attention_class.values, 1, 0), 4, 6)


def test_without_iid_background_the_bound_is_broken_and_the_report_says_why():
    """At L̄ = 6 the background is 0 1 2 3 3: two old tokens beside the planted one, a third of the weight each."""
    ensemble, attention_class = without_iid_background()
    report = check_theorem(ensemble, attention_class, 4, 6)
    assert report.measured.value == pytest.approx(2 / 3)
    assert report.bound == 0
    assert all(finding.holds for finding in report.findings)
    assert [name for name, holds in report.conditions.items() if not holds] == ["i.i.d. background"]
    assert report.repaired_bound == inf
    independent = replace(ensemble, mu=Iid(np.array([0.25, 0.25, 0.25, 0.25, 0.0])))  # training sees 3 as well
    mended = check_theorem(independent, attention_class, 4, 6)
    assert mended.holds
    assert mended.measured.value == mended.repaired_bound == 0


def test_a_harmless_markov_background_still_lacks_the_guarantee():
    report = check_theorem(sticky_marker(2, 1e-3, 0.5), marker_class(2, 2), 8, 12)
    assert report.measured.value <= report.bound
    assert not report.hypotheses_hold
    assert not report.holds


def test_without_relativity_the_bound_is_broken_and_the_report_says_why():
    example = without_relativity(8)
    report = check_theorem(example.ensemble, example.attention_class, 8, 16)
    assert report.measured.value > report.bound == 0
    assert report.repaired_bound == inf
    assert [finding.assumption for finding in report.findings if not finding.holds] == ["relativity"]


def test_keys_are_inspected_up_to_the_test_length():
    """Absolute from position 14 on, or wide there, far past L + L_local: neither may pass."""
    base = without_relativity(8)

    def planted_neighbours(s, x):
        return (x == 1).all(dim=-1) & (s[..., 1] - s[..., 0] == 1)

    def late(s, x):
        return planted_neighbours(s, x) | ((s[..., 1] >= 14) & (s[..., 1] - s[..., 0] == 2))

    def late_and_wide(s, x):
        return planted_neighbours(s, x) | ((s[..., 1] >= 14) & (s[..., 1] - s[..., 0] == 5))

    def report(rule):
        keys = {"good": ZeroWhere(planted_neighbours), "late": ZeroWhere(rule)}
        return check_theorem(base.ensemble, AttentionClass(keys, base.attention_class.values, 2, 2), 8, 16)

    absolute = report(late)
    assert absolute.measured.value > 0.5
    assert [finding.assumption for finding in absolute.findings if not finding.holds] == ["relativity"]
    with pytest.raises(ValueError, match=r"states locality=2, but key 'late' is finite on the set \[9, 14\]"):
        report(late_and_wide)
    assert report(planted_neighbours).holds


def test_without_coverage_the_bound_is_broken_and_the_report_says_why():
    example = without_coverage(8)
    report = check_theorem(example.ensemble, example.attention_class, 8, 16)
    assert report.measured.value > 0.5
    assert report.eta_test == report.bound == report.headline_bound == report.repaired_bound == inf
    assert report.constant == 1.0
    assert {finding.assumption for finding in report.findings if not finding.holds} == {"coverage"}


def test_a_class_must_state_its_locality_truly():
    base = marker_class(2, 2)
    with pytest.raises(ValueError, match="needs a local class"):
        check_theorem(noisy_marker(2, 0.0), replace(base, locality=None), 8, 10)
    wide = AttentionClass({"wide": ZeroWhere(lambda s, x: x[..., 0] == 2)}, base.values, 2, locality=2)
    with pytest.raises(ValueError, match=r"states locality=2, but key 'wide' is finite on the set \[1, 10\]"):
        check_theorem(noisy_marker(2, 0.0), wide, 8, 10)
    with pytest.raises(ValueError, match="L_bar=8 is not longer than L=8"):
        check_theorem(noisy_marker(2, 0.0), base, 8, 8)


def test_scores_far_apart_break_the_printed_theorem():
    """Every printed hypothesis holds, δ > 0, and the loss exceeds the printed bound and the one with its constant."""
    report = hidden_path(1e10).report()
    assert report.hypotheses_hold
    assert report.delta == pytest.approx(4e-12, rel=1e-4)
    assert report.measured.value > 10 * report.bound
    assert report.measured.value > 10 * report.headline_bound
    assert not report.holds
    assert report.repaired_holds
    mild = hidden_path(1e4).report()  # the same class with scores less far apart obeys
    assert mild.holds
    assert mild.measured.value == pytest.approx(report.measured.value, rel=1)  # the loss hardly moves


def test_hidden_path_loss_by_hand():
    """At L̄ = 10 the letters two apart form two rows of five; (2, 3) is reached where a row reads 4 0 1 2 3.

    S* = {1, 2}: both rows start with 4 0 and then climb by 0 or 1 three times; each has one light pair (4, 0).
    S* = {2, 3}: one row reads 4 0 1 2 3, the other 0 4 0 and two climbs, with the light pairs (0, 4) and (4, 0).
    """
    climbs = [(a, a + b, a + b + c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    total = 0.0
    for first in climbs:
        for second in climbs:
            wrong = (first == (1, 2, 3)) + (second == (1, 2, 3))
            total += wrong / (2 + wrong)
    total += 4 * 1 / (3 + 1)
    by_hand = total / 4**8 / 9  # eight background letters, nine places of S*
    assert hidden_path(1e10).report().measured.value == pytest.approx(by_hand, rel=1e-5)


def test_dead_windows_break_the_printed_theorem_with_delta_0():
    """δ = 0, narrow planted sets, one finite score: footnote 6 alone."""
    report = dead_windows().report()
    assert report.hypotheses_hold
    assert report.delta == report.bound == report.headline_bound == 0
    assert report.measured.value > 1e-6
    assert not report.holds
    assert report.repaired_bound == inf
    learned = dead_windows().attention_class.hypotheses()["paths", "wrong at (2, 3)"]
    assert seam_ratio(learned, 2, 5) == 2.0  # finite scores could not be closer


def test_dead_windows_loss_by_hand():
    """Sequences without a heavy pair, as in `test_hidden_path_loss_by_hand`: all 45 pairs count alike."""

    def wrong_share(*letters):
        return sum(letters[i] == 2 and letters[j] == 3 for i in range(10) for j in range(i + 1, 10)) / 45

    climbs = [(a, a + b, a + b + c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    total = sum(wrong_share(4, 4, 0, 0, a, d, b, e, c, f) for a, b, c in climbs for d, e, f in climbs)
    shorter = {climb[:2] for climb in climbs}
    total += sum(wrong_share(0, 4, 4, 0, 0, a, d, b, e, c) for a, b, c in climbs for d, e in shorter)
    assert dead_windows().report().measured.value == pytest.approx(total / 4**8 / 9, rel=1e-10)


def test_living_windows_mend_it():
    """With a finite score on the light pairs too, training sees the wrong pair, and the theorem holds."""
    erratum = dead_windows()
    keys = dict(erratum.attention_class.keys)
    keys["paths"] = tabulate_key(lambda s, x: 0.0 if s == (0, 2) else -inf, 2, 2, vocab_size=5)
    report = check_theorem(erratum.ensemble, replace(erratum.attention_class, keys=keys), 8, 10)
    assert report.holds
    assert report.measured.value == report.repaired_bound == 0


def test_wide_planted_sets_break_the_printed_theorem():
    for short, long in ((8, 16), (8, 24)):
        report = wide_planted_sets(short, long).report()
        assert report.hypotheses_hold
        assert report.delta == 0
        assert report.bound == 0
        assert report.measured.value == pytest.approx((long - short) / (2 * long - short - 1))
        assert not report.holds
        assert report.repaired_bound == pytest.approx(report.measured.value)  # the repair is tight here


def test_local_planted_sets_mend_it():
    erratum = wide_planted_sets()
    base = erratum.ensemble
    local = PlantedEnsemble(base.mu, UniformPlacement.contiguous(2), base.token_law, base.label)
    report = check_theorem(local, erratum.attention_class, 8, 16)
    assert report.holds
    assert report.measured.value == 0


def test_the_repaired_bound_is_infinite_where_footnote_6_may_speak():
    dead = AttentionClass(
        {"dead": ZeroWhere(lambda s, x: x[..., 0] == 7)}, {"half": marker_class(2, 2).values["hedge"]}, 2, 2
    )
    report = check_theorem(noisy_marker(2, 0.0), dead, 8, 10)
    assert report.repaired_bound == inf


def test_without_blocks_or_seams_the_repaired_bound_would_be_broken():
    """T in `stray_marks`, ρ in a rare hidden path: bounds below 1 that a bound without the factor does not keep."""
    marks = check_theorem(*stray_marks(1e-4, 8), 8, 20)
    path = hidden_path(heavy=1e7, rare=1e-3).report()
    blocks, seam = appended_blocks(8, 20, 2), 2.0  # one finite shape at two places of a block
    assert marks.repaired_bound == pytest.approx(repaired_factor(1.0, 5, blocks, seam) * marks.delta)
    path_seam = 2 * 1e7
    assert path.repaired_bound == pytest.approx(repaired_factor(9.0, 5, 3, path_seam) * path.delta, rel=1e-6)
    for report in (marks, path):
        assert report.hypotheses_hold
        assert report.delta < report.measured.value <= report.repaired_bound < 1
    assert marks.measured.value > repaired_factor(1.0, 5, 0, seam) * marks.delta
    assert path.measured.value > 5 * repaired_factor(9.0, 5, 3, 0.0) * path.delta


def test_stray_marks_by_hand():
    """m of the ℓ − 4 sets past the planted mark start with a stray one, each with the planted mark's weight."""
    noise, length = 0.01, 12
    ensemble, attention_class = stray_marks(noise, 8)
    learned = attention_class.hypotheses()["marks", "right"]
    num = length - 4
    by_hand = sum(comb(num, m) * noise**m * (1 - noise) ** (num - m) * m / (m + 1) for m in range(num + 1))
    assert expected_loss(learned, ensemble, length) == pytest.approx(by_hand, rel=1e-12)
    assert seam_ratio(learned, 2, 4) == 2.0


def test_one_training_length_may_carry_the_whole_risk():
    """Why n_L is in the repaired bound: a mean of δ over n_L lengths allows a loss of n_L δ at one of them.

    With L = 9, of the lengths 5 to 9 only 9 has room for the hidden path.
    """
    erratum = hidden_path(1e10)
    learned = erratum.attention_class.hypotheses()["paths", "wrong at (2, 3)"]
    risk, at_9 = training_risk(learned, erratum.ensemble, 9, 2), expected_loss(learned, erratum.ensemble, 9)
    assert at_9 == pytest.approx(5 * risk, rel=1e-3)
