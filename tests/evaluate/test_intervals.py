"""Intervals against scipy's own and against coverage by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from lengen.evaluate.intervals import student_t, welch, wilson
from lengen.seeding import rng_for


@pytest.mark.parametrize(("correct", "total"), [(0, 10), (10, 10), (3, 7), (96, 192), (191, 192), (1, 1)])
def test_wilson_equals_scipy(correct, total):
    reference = stats.binomtest(correct, total).proportion_ci(method="wilson")
    value, low, high = wilson(correct, total)
    assert value == correct / total
    assert low == pytest.approx(reference.low, abs=1e-12)
    assert high == pytest.approx(reference.high, abs=1e-12)


def test_student_t_equals_scipy():
    values = [0.91, 0.95, 0.99, 0.87, 0.93]
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert student_t(values) == pytest.approx((np.mean(values), low, high))


def test_student_t_covers_and_the_normal_does_not():
    rng = rng_for(0, "coverage")
    covered, normal_covered = 0, 0
    for _ in range(2000):
        values = rng.normal(0.5, 0.1, size=3)
        mean, low, high = student_t(values.tolist())
        covered += low <= 0.5 <= high
        normal_covered += abs(mean - 0.5) <= 1.96 * values.std(ddof=1) / math.sqrt(3)
    assert 0.93 < covered / 2000 < 0.97
    assert normal_covered / 2000 < 0.90  # what one gets wrong by using 1.96 with three seeds


def test_one_run_says_nothing_about_others():
    assert student_t([0.9]) == (0.9, -math.inf, math.inf)


@pytest.mark.parametrize(("correct", "total"), [(-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(correct, total):
    with pytest.raises(ValueError, match=f"correct={correct} of total={total}"):
        wilson(correct, total)


def test_no_runs_are_refused():
    with pytest.raises(ValueError, match="at least one run"):
        student_t([])


def test_welch_equals_scipy():
    left, right = [0.9, 0.95, 0.99, 0.97], [0.1, 0.5, 0.3]
    reference = stats.ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
    value, low, high = welch(left, right)
    assert value == pytest.approx(np.mean(left) - np.mean(right))
    assert (low, high) == pytest.approx((reference.low, reference.high))


def test_welch_needs_two_runs_on_either_side():
    assert welch([1.0, 1.0], [0.0, 0.0]) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="got 1 and 2"):
        welch([0.5], [0.1, 0.2])
