"""What Sec. 5.3 says of context sparsity, judged on the rows of `lengen context analyze`.

The thresholds are ours. They were fixed before any row of our own models was seen, and after a trial of four examples
of SmolLM2; the offset and the paired control came later (docs/interpretations.md). Intervals are bootstrap over
examples, or over windows of text that have several: one model of each kind is trained, as in the paper.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from lengen.evaluate.agreement import agreement
from lengen.evaluate.intervals import Interval
from lengen.experiments.judging import NO_DATA, Claim, Judgement, Rows, Verdict
from lengen.experiments.wording import with_interval
from lengen.results.context import Analysis, analysis_file, read_analysis

MIN_EXAMPLES = 100
MIN_WINDOWS = 30  # of text, where one has several examples
NEAR_SLOPE = (0.75, 1.25)  # "near the diagonal", with
NEAR_CORRELATION = 0.8
NEAR_OFFSET = (-0.25, 0.25)  # a line beside the diagonal is not near it
PARTIAL_SLOPE = (0.5, 1.5)
PARTIAL_CORRELATION = 0.6
PARTIAL_OFFSET = (-0.5, 0.5)
FAR_SLOPE = 0.5  # the control: below it

OWN = {  # file of rows: place in the paper, words
    "short": ("Sec. 5.3, Fig. 4", "h_short, tokens chosen by h_short"),
    "long": ("Sec. 5.3, Fig. 6a", "h_long, tokens chosen by h_long"),
    "long-by-short": ("Sec. 5.3, Fig. 6b", "h_long, tokens chosen by h_short"),
    "short-by-long": ("Sec. 5.3, Fig. 6c", "h_short, tokens chosen by h_long"),
}
SMOLLM2 = "SmolLM2-135M-Instruct (4-bit)"
PRETRAINED = {
    f"smollm2-{text}-{lengths}": ("beyond the paper", f"{SMOLLM2} on {words}, {lengths.replace('-', ' → ')}")
    for text, words in (("wikitext", "WikiText-2"), ("speeches", "speeches"))
    for lengths in ("64-128", "128-256")
}
MANUALS = {
    f"manuals-{name}": ("beyond the paper", f"{words}, both trained on manuals") for name, (_, words) in OWN.items()
}
JUDGED = OWN | MANUALS | PRETRAINED


def context_claims(folder: Path, names: Iterable[str] = tuple(JUDGED)) -> list[Claim[Rows]]:
    """The claims, to be judged on the analyses in `folder`/context; those that are missing have no data."""
    claims = []
    for name in names:
        paper_ref, words = JUDGED[name]
        path = analysis_file(folder, name)
        claims += [
            Claim(
                f"sparse-context-{name}",
                paper_ref,
                f"few far tokens recover what all give: near the diagonal ({words})",
                _judged(path, near_the_diagonal),
            ),
            Claim(
                f"random-tokens-{name}",
                "control" if name in OWN else paper_ref,
                f"as many random far tokens do not: far from the diagonal ({words})",
                _judged(path, random_is_far),
            ),
        ]
    return claims


def near_the_diagonal(analysis: Analysis) -> Judgement:
    """Slope, correlation and offset of the gain from k influential tokens against the gain from all."""
    found = agreement(analysis.gains_long(), analysis.gains_sparse("influence"), analysis.settings.num_targets)
    slope, correlation, offset = found.slope, found.correlation, found.offset
    verdict: Verdict = "not"
    if _within(slope, NEAR_SLOPE) and correlation.low >= NEAR_CORRELATION and _within(offset, NEAR_OFFSET):
        verdict = "reproduced"
    elif _within(slope, PARTIAL_SLOPE) and correlation.low >= PARTIAL_CORRELATION and _within(offset, PARTIAL_OFFSET):
        verdict = "partly"
    note = f"slope; correlation {with_interval(correlation)}, offset {with_interval(offset)}"
    return Judgement(verdict, slope, 1, analysis.counted(), note)


def random_is_far(analysis: Analysis) -> Judgement:
    """The control's slope, which has to be small, and below that of the influential tokens on the same examples."""
    full = analysis.gains_long()
    random, chosen = analysis.gains_sparse("random"), analysis.gains_sparse("influence")
    num_targets = analysis.settings.num_targets
    control = agreement(full, random, num_targets)
    # A slope is linear in the gains: that of the differences is the difference of the slopes, example for example.
    above = agreement(full, [one - other for one, other in zip(chosen, random, strict=True)], num_targets).slope
    is_below = above.low > 0
    verdict: Verdict = "reproduced" if is_below and control.slope.high < FAR_SLOPE else "partly" if is_below else "not"
    note = f"slope; the influential ones' is larger by {with_interval(above)}"
    return Judgement(verdict, control.slope, 1, analysis.counted(), note)


def _judged(path: Path, judge: Callable[[Analysis], Judgement]) -> Callable[[Rows], Judgement]:
    def judged(rows: Rows) -> Judgement:
        if not path.is_file():
            return NO_DATA
        analysis = read_analysis(path)
        is_enough = len(analysis.rows) >= MIN_EXAMPLES and analysis.num_windows >= MIN_WINDOWS
        return judge(analysis) if is_enough else NO_DATA

    return judged


def _within(interval: Interval, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= interval.low and interval.high <= bounds[1]
