"""Do two gains agree, example by example? Slope, correlation and more, with bootstrap intervals over examples.

Examples that belong together, as tokens of one window of text do, are drawn together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengen.evaluate.intervals import CONFIDENCE, Interval
from lengen.seeding import rng_for

NUM_RESAMPLES = 2000
MIN_GROUPS = 3  # a resample of two is both or one of them twice: that is no interval
Floats = NDArray[np.float64]
Statistic = Callable[[Floats, Floats], Floats]  # of many resamples at once: one a row


@dataclass(frozen=True)
class Agreement:
    num_examples: int
    correlation: Interval  # Pearson's
    slope: Interval  # of the sparse gain on the full one, by least squares
    recovered: Interval  # the mean sparse gain as a share of the mean full one
    offset: Interval  # the mean sparse gain less the mean full one, in standard deviations of the full one


def agreement(full: Sequence[float], sparse: Sequence[float], group_size: int = 1) -> Agreement:
    """How the gain from a few far tokens follows the gain from all of them. Groups stand one after the other."""
    if len(full) != len(sparse) or len(full) < 2 * group_size:
        raise ValueError(
            f"agreement needs two gains an example and two examples, or groups of {group_size}; got {len(full)} and "
            f"{len(sparse)}"
        )
    intervals = _intervals((_correlations, _slopes, _shares, _offsets), full, sparse, group_size)
    return Agreement(len(full), *intervals)


def part(gains: Sequence[float], is_in: Sequence[bool], group_size: int = 1) -> tuple[Interval, Interval]:
    """Of the examples that are in: their mean gain, and their share of the gain of all."""
    mean, share = _intervals((_means_within, _shares_within), gains, [float(one) for one in is_in], group_size)
    return mean, share


def resample(num_examples: int, group_size: int = 1) -> NDArray[np.int64]:
    """For each resample, which examples are in it: as many groups as there are, each drawn from all."""
    num_groups = num_examples // group_size
    assert num_groups * group_size == num_examples, "a group is not whole"
    groups = rng_for(0, "context/bootstrap").integers(0, num_groups, (NUM_RESAMPLES, num_groups))
    return (groups[:, :, None] * group_size + np.arange(group_size)).reshape(NUM_RESAMPLES, num_examples)


def _intervals(
    statistics: Sequence[Statistic], x: Sequence[float], y: Sequence[float], group_size: int
) -> list[Interval]:
    """The value of each statistic, and where it lies in 95 % of the resamples; the same ones for all."""
    whole = np.asarray([x, y], dtype=np.float64)
    drawn = whole[:, resample(len(x), group_size)]
    if len(x) < MIN_GROUPS * group_size:
        drawn = drawn[:, :0]
    tail = (1 - CONFIDENCE) / 2
    intervals = []
    for statistic in statistics:
        with np.errstate(divide="ignore", invalid="ignore"):  # a resample may have no spread
            value, values = float(statistic(*whole[:, None])[0]), statistic(*drawn)
        finite = values[np.isfinite(values)]
        low, high = np.quantile(finite, [tail, 1 - tail]) if finite.size else (np.nan, np.nan)
        intervals.append(Interval(value, float(low), float(high)))
    return intervals


def _moments(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    return (x * x).mean(1), (y * y).mean(1), (x * y).mean(1)


def _correlations(x: Floats, y: Floats) -> Floats:
    x_variance, y_variance, covariance = _moments(x, y)
    return covariance / np.sqrt(x_variance * y_variance)


def _slopes(x: Floats, y: Floats) -> Floats:
    x_variance, _, covariance = _moments(x, y)
    return covariance / x_variance


def _shares(x: Floats, y: Floats) -> Floats:
    return y.mean(1) / x.mean(1)


def _offsets(x: Floats, y: Floats) -> Floats:
    return (y - x).mean(1) / x.std(1)


def _means_within(x: Floats, y: Floats) -> Floats:
    return (x * y).sum(1) / y.sum(1)


def _shares_within(x: Floats, y: Floats) -> Floats:
    return (x * y).sum(1) / x.sum(1)
