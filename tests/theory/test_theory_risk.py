"""Risks and their minimisers (Def. 3.1, eq. 3)."""

import numpy as np
import pytest

from lengen.seeding import rng_for
from lengen.theory.attention import AttentionClass, SparseAttention
from lengen.theory.counterexamples import without_coverage, without_relativity
from lengen.theory.examples import marker_class, noisy_marker
from lengen.theory.keys import tabulate_value
from lengen.theory.risk import (
    TIE_TOLERANCE,
    estimate_loss,
    expected_loss,
    length_generalization,
    measure_loss,
    tied_for_smallest,
    training_lengths,
    training_risk,
)

SHARP = marker_class(2, 2).hypotheses()["sharp", "parity"]


def test_training_lengths_are_the_integers_of_half_to_all():
    assert list(training_lengths(8, 2)) == [4, 5, 6, 7, 8]
    assert list(training_lengths(9, 2)) == [5, 6, 7, 8, 9]
    assert list(training_lengths(4, 3)) == [3, 4]
    with pytest.raises(ValueError, match="L=2 is shorter than a set of 3"):
        training_lengths(2, 3)


def test_training_risk_is_the_mean_over_lengths():
    ensemble = noisy_marker(2, 0.1)
    losses = [expected_loss(SHARP, ensemble, n) for n in (3, 4, 5, 6)]
    assert training_risk(SHARP, ensemble, 6, 2) == pytest.approx(np.mean(losses), abs=1e-15)
    assert len(set(losses)) == 4


def test_estimates_cover_the_exact_loss_and_tighten():
    ensemble = noisy_marker(2, 0.1)
    exact = expected_loss(SHARP, ensemble, 10)
    few, many = (estimate_loss(SHARP, ensemble, 10, n, rng_for(0, "test")) for n in (500, 20_000))
    assert few.low <= exact <= few.high
    assert many.low <= exact <= many.high
    assert many.high - many.low < few.high - few.low
    wrong = marker_class(2, 2).hypotheses()["sharp", "flipped"]
    assert not many.low <= expected_loss(wrong, ensemble, 10) <= many.high
    with pytest.raises(ValueError, match="n=1 samples"):
        estimate_loss(SHARP, ensemble, 10, 1, rng_for(0, "test"))


def test_measuring_is_exact_where_it_can_be_and_refuses_otherwise():
    ensemble = noisy_marker(2, 0.1)
    assert measure_loss(SHARP, ensemble, 10, samples=100).exact
    assert not measure_loss(SHARP, ensemble, 40, samples=100).exact
    with pytest.raises(ValueError, match="above the limit"):
        measure_loss(SHARP, ensemble, 40)


def test_estimates_of_all_hypotheses_share_their_samples():
    ensemble = noisy_marker(2, 0.1)
    assert measure_loss(SHARP, ensemble, 40, samples=100) == measure_loss(SHARP, ensemble, 40, samples=100)
    assert measure_loss(SHARP, ensemble, 40, samples=100) != measure_loss(SHARP, ensemble, 40, samples=100, seed=1)


def test_all_minimisers_are_returned_and_the_worst_is_told():
    outcome = without_relativity(8).outcome(16)
    assert set(outcome.minimisers) == {("g_00", "g_1"), ("g_01", "g_1")}
    assert set(outcome.training_risks.values()) == {0.0}
    assert outcome.minimisers["g_00", "g_1"].value == 0
    assert outcome.worst == outcome.minimisers["g_01", "g_1"]
    assert outcome.worst.value > 0.5


def test_a_lone_minimiser_is_alone():
    outcome = length_generalization(marker_class(2, 2), noisy_marker(2, 0.01), 8, 10)
    assert list(outcome.minimisers) == [("sharp", "parity")]
    assert outcome.worst == outcome.minimisers["sharp", "parity"]


def test_ties_are_found_up_to_rounding_and_no_further():
    risks = {("a", "v"): 0.3, ("b", "v"): 0.1 + 0.2, ("c", "v"): 0.3 + 10 * TIE_TOLERANCE}
    assert risks["a", "v"] != risks["b", "v"]  # 0.1 + 0.2 in fp64
    assert tied_for_smallest(risks) == [("a", "v"), ("b", "v")]


def test_equal_hypotheses_with_rounded_risks_tie():
    base = marker_class(2, 2)
    twice = AttentionClass({"one": base.keys["sharp"], "two": base.keys["sharp"]}, base.values, 2, 2)
    outcome = length_generalization(twice, noisy_marker(2, 0.07), 8, 9)
    assert set(outcome.minimisers) == {("one", "parity"), ("two", "parity")}


def test_the_removed_coverage_example_ties_too():
    assert len(without_coverage(6).outcome(12).minimisers) == 2


@pytest.mark.parametrize("value", [4.5, -0.5, float("nan")])
def test_values_outside_the_labels_range_are_refused(value):
    """A loss above 1 would break the interval, and the bound's diameter of 1."""
    key, ensemble = marker_class(2, 2).keys["sharp"], noisy_marker(2, 0.1)
    outside = SparseAttention(key, tabulate_value(lambda x: value, 2, vocab_size=3), 2, 2)
    message = rf"returns values in \[{value:g}, {value:g}\], outside \[0, 1\]"
    with pytest.raises(ValueError, match=message):
        expected_loss(outside, ensemble, 4)
    with pytest.raises(ValueError, match=message):
        estimate_loss(outside, ensemble, 4, 10, rng_for(0, "test"))
    largest = SparseAttention(key, tabulate_value(lambda x: 1.0, 2, vocab_size=3), 2, 2)
    assert expected_loss(largest, ensemble, 4) == pytest.approx(0.5)
