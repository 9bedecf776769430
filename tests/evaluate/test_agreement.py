"""Correlation, slope and share against numpy and scipy; intervals that cover and can miss."""

import numpy as np
import pytest
from scipy import stats

from lengen.evaluate.agreement import agreement


def noisy_line(slope: float, num_examples: int = 300, seed: int = 0) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    full = rng.normal(0.2, 1.0, num_examples)
    return full.tolist(), (slope * full + rng.normal(0, 0.3, num_examples)).tolist()


def test_values_equal_scipys():
    full, sparse = noisy_line(0.8)
    found, theirs = agreement(full, sparse), stats.linregress(full, sparse)
    assert found.correlation.value == pytest.approx(theirs.rvalue)
    assert found.slope.value == pytest.approx(theirs.slope)
    assert found.recovered.value == pytest.approx(np.mean(sparse) / np.mean(full))
    assert found.num_examples == 300


def test_two_groups_have_no_interval():
    """Through two points there is always a line."""
    for gains, group_size in (([0.1, 0.5], 1), ([0.1, 0.5, 0.2, 0.3], 2)):
        found = agreement(gains, [2 * gain for gain in gains], group_size)
        assert found.slope.value == pytest.approx(2)
        assert np.isnan([found.slope.low, found.correlation.high, found.recovered.low]).all()
    assert np.isfinite(agreement([0.1, 0.5, 0.2], [0.2, 0.9, 0.4]).slope.low)


def test_intervals_cover_as_often_as_they_say():
    truths = [agreement(*noisy_line(0.8, 60, seed)).slope for seed in range(60)]
    covered = sum(interval.low <= 0.8 <= interval.high for interval in truths)
    assert 50 <= covered <= 60
    assert sum(interval.low <= 1.0 <= interval.high for interval in truths) < 10  # and it can miss


def test_intervals_are_of_the_size_theory_gives():
    full, sparse = noisy_line(0.8)
    interval = agreement(full, sparse).slope
    assert (interval.high - interval.low) / (2 * 1.96) == pytest.approx(stats.linregress(full, sparse).stderr, rel=0.25)


def test_examples_that_belong_together_are_drawn_together():
    """Each of 30 groups is one example, five times over: they say no more than 30 examples do."""
    full, sparse = noisy_line(0.8, 30)
    five_times = [[value for value in values for _ in range(5)] for values in (full, sparse)]
    alone, grouped, ignored = agreement(full, sparse), agreement(*five_times, 5), agreement(*five_times)
    assert (grouped.num_examples, grouped.slope) == (150, pytest.approx(alone.slope))
    assert grouped.offset == pytest.approx(alone.offset)
    assert ignored.slope.high - ignored.slope.low < 0.6 * (alone.slope.high - alone.slope.low)


def test_two_examples_at_least():
    with pytest.raises(ValueError, match="two examples"):
        agreement([1.0], [1.0])
    assert np.isnan(agreement([1.0, 1.0], [0.0, 0.0]).slope.value)
