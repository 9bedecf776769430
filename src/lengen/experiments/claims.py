"""What the paper says of its synthetic experiments, and what we add, each as a function from rows to a verdict.

The thresholds are ours and were fixed before any row was seen. "Beyond training" always means lengths above the longest
training length; an accuracy is that of the last step, and every interval is over training runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, NamedTuple

from lengen.evaluate.intervals import Interval, student_t, welch
from lengen.results.sweep import SweepRow

Verdict = Literal["reproduced", "partly", "not", "no-data"]
Rows = Mapping[str, Sequence[SweepRow]]  # by figure

NEAR_PERFECT = 0.95
GOOD = 0.80
DEPTHS = (2, 3, 4, 5)
JUMPS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    interval: Interval
    num_seeds: int
    note: str = ""


NO_DATA = Judgement("no-data", Interval(float("nan"), float("nan"), float("nan")), 0)


@dataclass(frozen=True)
class Claim:
    name: str
    paper_ref: str
    statement: str
    judge: Callable[[Rows], Judgement]


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


def by_threshold(interval: Interval, num_seeds: int, full: float, partial: float, note: str = "") -> Judgement:
    """Reproduced where the mean of two runs or more reaches `full`, partly where it reaches `partial`."""
    verdict: Verdict = "partly" if interval.value >= partial else "not"
    if interval.value >= full and num_seeds >= 2:
        verdict = "reproduced"
    return Judgement(verdict, interval, num_seeds, note)


def significantly_above(left: Sequence[float], right: Sequence[float]) -> Judgement:
    """Reproduced where the 95 % interval of the difference of means lies above 0; partly where only the mean does."""
    if len(left) < 2 or len(right) < 2:
        return NO_DATA
    interval = welch(left, right)
    verdict: Verdict = "reproduced" if interval.low > 0 else "partly" if interval.value > 0 else "not"
    return Judgement(verdict, interval, min(len(left), len(right)))


# Sec. 5.1, Figs. 1 and 7: sparse parity


def sparse_preset(k_train: int, curriculum: bool) -> str:
    return f"fig{1 if k_train in (8, 10) else 7}-k{k_train}" + ("-curriculum" if curriculum else "")


def small_k_extrapolates(curriculum: bool) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        values: list[float] = []
        for k_train in (4, 6, 8):
            k_tests = [k for k in (4, 6, 8) if k <= k_train]
            values += rates(rows, sparse_preset(k_train, curriculum), [500], k_tests).values()
        return by_threshold(student_t(values), len(values), NEAR_PERFECT, 0.75) if values else NO_DATA

    return judge


def larger_k_collapses(curriculum: bool) -> Callable[[Rows], Judgement]:
    """The drop at the longest training length, from k_test = K_train to k_test = K_train + 4."""

    def judge(rows: Rows) -> Judgement:
        drops: list[float] = []
        for k_train in (4, 6, 8, 10, 12):
            preset = sparse_preset(k_train, curriculum)
            within, above = rates(rows, preset, [50], [k_train]), rates(rows, preset, [50], [k_train + 4])
            drops += [within[seed] - above[seed] for seed in within.keys() & above.keys()]
        return by_threshold(student_t(drops), len(drops), 0.25, 0.1) if drops else NO_DATA

    return judge


def large_k_train_declines(curriculum: bool) -> Callable[[Rows], Judgement]:
    """At length 500: how much better k_test = 4 is than k_test = K_train, given that both are learned at length 50."""

    def judge(rows: Rows) -> Judgement:
        declines: list[float] = []
        learned: list[float] = []
        for k_train in (10, 12):
            preset = sparse_preset(k_train, curriculum)
            few, many = rates(rows, preset, [500], [4]), rates(rows, preset, [500], [k_train])
            declines += [few[seed] - many[seed] for seed in few.keys() & many.keys()]
            learned += rates(rows, preset, [50], [k_train]).values()
        if not declines:
            return NO_DATA
        judgement = by_threshold(student_t(declines), len(declines), 0.05, 0.0)
        if fmean(learned) < 0.9:
            return Judgement(
                "not", judgement.interval, len(declines), f"not learned: {fmean(learned):.2f} at length 50"
            )
        return judgement

    return judge


# Sec. 5.2.1, Figs. 2 and 8: parity with scratchpad

PARITY_BEYOND = tuple(range(50, 201, 10))
PARITY_WITHIN = (10, 20, 30, 40)


def jumps_are_learned(rows: Rows) -> Judgement:
    values = [value for jump in JUMPS for value in rates(rows, f"fig2-jump{jump}", PARITY_WITHIN).values()]
    return by_threshold(student_t(values), len(values), NEAR_PERFECT, GOOD) if values else NO_DATA


def smaller_jumps_go_further(rows: Rows) -> Judgement:
    """Jump 1 against jump 4 has to be significant; the order in between must hold in the means."""
    arms = [list(rates(rows, f"fig2-jump{jump}", PARITY_BEYOND).values()) for jump in JUMPS]
    if any(len(arm) < 2 for arm in arms):
        return NO_DATA
    ends = significantly_above(arms[0], arms[-1])
    means = [fmean(arm) for arm in arms]
    note = "means beyond training: " + ", ".join(
        f"jump {jump} {mean:.2f}" for jump, mean in zip(JUMPS, means, strict=True)
    )
    in_order = means == sorted(means, reverse=True)
    verdict = ends.verdict if in_order or ends.verdict == "not" else "partly"
    return Judgement(verdict, ends.interval, ends.num_seeds, note)


class Arms(NamedTuple):
    names: list[str]
    within: tuple[int, ...]  # training lengths
    twice: int  # the longest of them


PARITY_ARMS = Arms([f"jump{jump}" for jump in JUMPS], PARITY_WITHIN, 80)
ASSIGNMENT_ARMS = Arms([f"depth{depth}" for depth in DEPTHS], (20, 40, 60), 120)


def ppc_beats(figure: str, arms: Arms, ours: str) -> Callable[[Rows], Judgement]:
    """PPC's joint accuracy against a baseline's exact match at twice the training length, arms pooled.

    The note tells how much of the task the baseline has learned at training lengths: one that has learned nothing loses
    for another reason than length.
    """
    metric = "last-token" if figure == "fig3c" else "exact-tokens"

    def pooled(rows: Rows, name: str, lengths: Sequence[int], metric: str) -> list[float]:
        return [value for arm in arms.names for value in rates(rows, f"{name}-{arm}", lengths, metric=metric).values()]

    def judge(rows: Rows) -> Judgement:
        judgement = significantly_above(
            pooled(rows, ours, [arms.twice], "joint"), pooled(rows, figure, [arms.twice], metric)
        )
        learned = pooled(rows, figure, arms.within, metric)
        if judgement.verdict == "no-data" or not learned:
            return judgement
        return replace(judgement, note=f"the baseline has {fmean(learned):.2f} at training lengths")

    return judge


# Sec. 5.2.2, Fig. 3: variable assignment


def ppc_reaches_three_times(depth: int) -> Callable[[Rows], Judgement]:
    def judge(rows: Rows) -> Judgement:
        values = list(rates(rows, f"fig3a-depth{depth}", [180], metric="joint").values())
        return by_threshold(student_t(values), len(values), GOOD, 0.5) if values else NO_DATA

    return judge


def scratchpad_helps_pose(rows: Rows) -> Judgement:
    """The answer token at twice the training length, with and without the scratchpad before it."""
    written = [v for d in DEPTHS for v in rates(rows, f"fig3d-depth{d}", [120], metric="last-token").values()]
    direct = [v for d in DEPTHS for v in rates(rows, f"fig3c-depth{d}", [120], metric="last-token").values()]
    return significantly_above(written, direct)


# Beyond the paper: attention that sharpens as keys get more


class Compared(NamedTuple):
    """Where an arm of a figure is measured against the same arm, sharpened."""

    figure: str
    arm: str
    lengths: Sequence[int]
    k_tests: Sequence[int] = ()


SHARPENED = {
    "parity": [Compared("2", f"jump{jump}", PARITY_BEYOND) for jump in JUMPS],
    "assignment": [Compared("3a", f"depth{depth}", (200,)) for depth in DEPTHS],
    "sparse-parity": [
        Compared("7", "k4-curriculum", (500,), (4,)),
        Compared("7", "k6-curriculum", (500,), (4, 6)),
    ],
}


def sharpening_helps(task: str) -> Callable[[Rows], Judgement]:
    """The mean difference between runs of one arm and one seed, sharpened and plain: the same weights to begin with."""
    metric = "" if task == "sparse-parity" else "joint"

    def judge(rows: Rows) -> Judgement:
        gains: list[float] = []
        for figure, arm, lengths, k_tests in SHARPENED[task]:
            plain, sharpened = (
                rates(rows, f"{kind}{figure}-{arm}", lengths, k_tests, metric) for kind in ("fig", "sharp")
            )
            gains += [sharpened[seed] - plain[seed] for seed in plain.keys() & sharpened.keys()]
        if len(gains) < 2:
            return NO_DATA
        interval = student_t(gains)
        verdict: Verdict = "reproduced" if interval.low > 0 else "partly" if interval.value > 0 else "not"
        return Judgement(verdict, interval, len(gains), "mean gain in accuracy, runs paired by seed")

    return judge


def _sparse_claims() -> list[Claim]:
    claims = []
    for curriculum in (False, True):
        suffix, words = ("-curriculum", " (with a curriculum)") if curriculum else ("", "")
        claims += [
            Claim(
                f"sparse-parity-extrapolates{suffix}",
                "Sec. 5.1, Figs. 1, 7",
                f"K_train ≤ 8: accuracy at 10× the training length is near 1 for every k_test ≤ K_train{words}",
                small_k_extrapolates(curriculum),
            ),
            Claim(
                f"sparse-parity-collapses-above-k-train{suffix}",
                "Sec. 5.1, Figs. 1, 7",
                f"k_test > K_train fails at training lengths already{words}",
                larger_k_collapses(curriculum),
            ),
            Claim(
                f"sparse-parity-declines-with-k{suffix}",
                "Sec. 5.1, Figs. 1, 7",
                f"K_train ≥ 10: larger k extrapolates worse although all are learned{words}",
                large_k_train_declines(curriculum),
            ),
        ]
    return claims


def _baseline_claims() -> list[Claim]:
    parity, depths = PARITY_ARMS, ASSIGNMENT_ARMS
    return [
        Claim(
            f"ppc-beats-{figure}",
            f"{ref}, Fig. {figure.removeprefix('fig')}",
            f"PPC is better than {words} at twice the training length",
            ppc_beats(figure, arms, ours),
        )
        for figure, ref, words, arms, ours in (
            ("fig8a", "E.2.2", "shifted APE without coupling (parity)", parity, "fig2"),
            ("fig8b", "E.2.2", "RoPE + PoSE (parity)", parity, "fig2"),
            ("fig3b", "Sec. 5.2.2", "shifted APE without coupling (variable assignment)", depths, "fig3a"),
            ("fig3c", "Sec. 5.2.2", "RoPE + PoSE without scratchpad (variable assignment)", depths, "fig3a"),
            ("fig3d", "Sec. 5.2.2", "RoPE + PoSE with scratchpad (variable assignment)", depths, "fig3a"),
        )
    ]


CLAIMS: tuple[Claim, ...] = (
    *_sparse_claims(),
    Claim(
        "jumps-are-learned", "Sec. 5.2.1, Fig. 2", "all four jumps are near-perfect in distribution", jumps_are_learned
    ),
    Claim(
        "smaller-jumps-go-further",
        "Sec. 5.2.1, Fig. 2",
        "beyond training, jump 1 ≥ 2 ≥ 3 ≥ 4, although smaller jumps write more",
        smaller_jumps_go_further,
    ),
    *(
        Claim(
            f"ppc-three-times-depth{depth}",
            "Sec. 5.2.2, Fig. 3a",
            f"PPC is good at 3× the training length, depth {depth}",
            ppc_reaches_three_times(depth),
        )
        for depth in DEPTHS
    ),
    *_baseline_claims(),
    Claim(
        "scratchpad-helps-pose",
        "Sec. 5.2.2, Figs. 3c, 3d",
        "under RoPE + PoSE the scratchpad is better than none",
        scratchpad_helps_pose,
    ),
    *(
        Claim(
            f"sharpening-helps-{task}",
            "beyond the paper",
            f"attention that sharpens as keys get more extrapolates better than plain attention ({words})",
            sharpening_helps(task),
        )
        for task, words in (
            ("parity", "parity, PPC, all lengths beyond training"),
            ("assignment", "variable assignment, PPC, length 200"),
            ("sparse-parity", "sparse parity, length 500, k_test ≤ K_train"),
        )
    ),
)
