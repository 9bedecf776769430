"""Intervals, each over one thing: test examples of a run (Wilson), training runs (Student, Welch), documents."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

CONFIDENCE = 0.95


class Interval(NamedTuple):
    value: float
    low: float
    high: float


def wilson(correct: int, total: int) -> Interval:
    """The share of correct examples of one run, with Wilson's score interval."""
    if not 0 <= correct <= total or total == 0:
        raise ValueError(f"correct={correct} of total={total} is not a share; need 0 ≤ correct ≤ total and total ≥ 1")
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    share = correct / total
    shrink = 1 + z * z / total
    centre = (share + z * z / (2 * total)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    # At 0 and 1 the bound is the share itself; rounding may miss it by an ulp.
    return Interval(share, 0.0 if correct == 0 else centre - half, 1.0 if correct == total else centre + half)


def student_t(values: Sequence[float]) -> Interval:
    """The mean over training runs, with Student's interval; of a single run nothing is known but its value."""
    from scipy.special import stdtrit

    if not values:
        raise ValueError("an interval over training runs needs at least one run; got none")
    mean = fmean(values)
    if len(values) == 1:
        return Interval(mean, -math.inf, math.inf)
    quantile = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2))
    half = quantile * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def welch(left: Sequence[float], right: Sequence[float]) -> Interval:
    """The difference of two means over training runs (left − right), without assuming equal variances."""
    from scipy.special import stdtrit

    if len(left) < 2 or len(right) < 2:
        raise ValueError(f"a difference over runs needs two runs on either side; got {len(left)} and {len(right)}")
    difference = fmean(left) - fmean(right)
    shares = [stdev(values) ** 2 / len(values) for values in (left, right)]
    variance = sum(shares)
    if variance == 0:
        return Interval(difference, difference, difference)
    freedom = variance**2 / sum(s**2 / (len(v) - 1) for s, v in zip(shares, (left, right), strict=True))
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return Interval(difference, difference - half, difference + half)


def over_documents(sums: Sequence[float], counts: Sequence[int]) -> Interval:
    """The mean of a quantity over all tokens, with its interval over documents: tokens of one document are not
    independent, documents are taken to be. (The linearised ratio of two sums; of one document nothing is known.)"""
    from scipy.special import stdtrit

    if not sums or len(sums) != len(counts) or sum(counts) <= 0:
        raise ValueError(f"an interval over documents needs a sum and a count of each; got {len(sums)}, {len(counts)}")
    total, number = sum(counts), len(sums)
    mean = math.fsum(sums) / total
    if number == 1:
        return Interval(mean, -math.inf, math.inf)
    squares = math.fsum((value - mean * count) ** 2 for value, count in zip(sums, counts, strict=True))
    error = math.sqrt(number / (number - 1) * squares) / total
    half = float(stdtrit(number - 1, (1 + CONFIDENCE) / 2)) * error
    return Interval(mean, mean - half, mean + half)
