"""From accuracies to verdicts: the rules that the claims about figures share.

A training seed is what intervals are over. Where a claim is about several arms (jumps, depths), a seed's value is the
mean over them: four arms of one seed are not four repetitions of anything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, Literal, TypeVar

from lengen.evaluate.intervals import Interval, student_t, welch
from lengen.results.sweep import SweepRow

Verdict = Literal["reproduced", "partly", "not", "no-data"]
Rows = Mapping[str, Sequence[SweepRow]]  # by figure
Evidence = TypeVar("Evidence")  # what a claim is judged on

LEARNED = 0.9  # accuracy at the longest training length: what is below says nothing of longer ones


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    interval: Interval
    num_seeds: int
    over: str = ""  # what the interval is over, in words
    note: str = ""


NO_INTERVAL = Interval(float("nan"), float("nan"), float("nan"))
NO_DATA = Judgement("no-data", NO_INTERVAL, 0)


@dataclass(frozen=True)
class Claim(Generic[Evidence]):
    name: str
    paper_ref: str
    statement: str
    judge: Callable[[Evidence], Judgement]


def rates(
    rows: Rows, preset: str, lengths: Sequence[int], k_tests: Sequence[int] = (), metric: str = ""
) -> dict[int, float]:
    """The mean accuracy over these lengths (and k_tests) for each training seed of a preset that has them all."""
    figure = preset.partition("-")[0]
    wanted = {(length, k_test) for length in lengths for k_test in (k_tests or [0])}
    by_seed: dict[int, dict[tuple[int, int], float]] = {}
    for entry in rows.get(figure, ()):
        row = entry.row
        place = (row.length, int(row.overrides.get("task.k_test", 0)))
        if entry.preset == preset and place in wanted and metric in ("", row.metric):
            by_seed.setdefault(entry.train_seed, {})[place] = row.rate
    return {seed: fmean(found.values()) for seed, found in by_seed.items() if found.keys() == wanted}


def over_arms(arms: Iterable[Mapping[int, float]]) -> list[float]:
    """For each seed that all arms have, the mean over the arms; arms without any run are left out."""
    run = [arm for arm in arms if arm]
    seeds = set.intersection(*(set(arm) for arm in run)) if run else set()
    return [fmean(arm[seed] for arm in run) for seed in sorted(seeds)]


def seed_means(values: Iterable[tuple[int, float]]) -> list[float]:
    """The mean value of each seed."""
    by_seed: dict[int, list[float]] = {}
    for seed, value in values:
        by_seed.setdefault(seed, []).append(value)
    return [fmean(by_seed[seed]) for seed in sorted(by_seed)]


def by_threshold(values: Sequence[float], full: float, partial: float, note: str = "") -> Judgement:
    """Reproduced where the mean reaches `full` and its whole interval `partial`; partly where the mean does that."""
    interval = student_t(values)
    verdict: Verdict = "partly" if interval.value >= partial else "not"
    if interval.value >= full and interval.low >= partial:
        verdict = "reproduced"
    return Judgement(verdict, interval, len(values), num_seeds_in_words(len(values)), note)


def above_zero(values: Sequence[float], note: str = "") -> Judgement:
    """Reproduced where the whole interval of the mean lies above 0; partly where only the mean does."""
    return _above_zero(student_t(values), len(values), note) if values else NO_DATA


def significantly_above(left: Sequence[float], right: Sequence[float], note: str = "") -> Judgement:
    """The same of the difference of two means; of one run on a side nothing is known but its value."""
    if not left or not right:
        return NO_DATA
    if len(left) < 2 or len(right) < 2:
        difference = fmean(left) - fmean(right)
        return _above_zero(Interval(difference, -float("inf"), float("inf")), min(len(left), len(right)), note)
    return _above_zero(welch(left, right), min(len(left), len(right)), note)


def _above_zero(interval: Interval, num_seeds: int, note: str) -> Judgement:
    verdict: Verdict = "reproduced" if interval.low > 0 else "partly" if interval.value > 0 else "not"
    return Judgement(verdict, interval, num_seeds, num_seeds_in_words(num_seeds), note)


def num_seeds_in_words(number: int) -> str:
    return "1 seed" if number == 1 else f"{number} seeds"
