"""docs/results.md, written from the rows alone: no number on that page is typed by hand."""

import math
from collections.abc import Sequence
from pathlib import Path

from lengen.config import differing_settings
from lengen.experiments.claims import CLAIMS
from lengen.experiments.context_page import CONTEXT_FIGURES, context_section
from lengen.experiments.figures import FIGURES
from lengen.experiments.judging import Claim, Judgement, Rows
from lengen.experiments.language_page import language_section
from lengen.experiments.panels import panels_of
from lengen.experiments.presets import plain_name, preset_config, variant_of
from lengen.experiments.rows import current_rows, table1_rows
from lengen.experiments.wording import num_runs, verdicts
from lengen.figures.length_curves import Curve
from lengen.results.sweep import SweepRow

PAPER_SAYS = {
    "fig1": "K_train = 8 extrapolates almost perfectly to length 500 for every k_test ≤ K_train and fails above it; "
    "with K_train = 10 larger k extrapolate worse.",
    "fig7": "K_train = 4 and 6 extrapolate perfectly for every k_test ≤ K_train; K_train = 12 declines with k.",
    "fig2": "All jumps are near-perfect on training lengths; beyond them smaller jumps are better, although they "
    "write more.",
    "fig3a": "Good accuracy up to three times the training length for depths 2–5.",
    "fig3b": "Without coupling, length generalization is significantly worse.",
    "fig3c": "Without the scratchpad, it is significantly worse.",
    "fig3d": "RoPE with PoSE, with the scratchpad, is significantly worse than PPC.",
    "fig8a": "Without coupling, length generalization is significantly worse.",
    "fig8b": "RoPE with PoSE is significantly worse than PPC.",
}
BEYOND_THE_PAPER = {  # by variant
    "sharpened": "With more keys, attention that was sharp enough at training lengths is spread over many of them "
    "(docs/exploration.md). Here the products of a query that sees n keys are multiplied by log n / log n₀, in "
    "training as in testing; n₀ is the number of tokens of the longest training example (`sharpen_from`; Chiang and "
    "Cholak, 2022).",
    "twice as wide": "The paper's model is 1,024 wide. What does width do to extrapolation? Nothing else is changed.",
}
CLAIMS_OF = {  # the figure under which a claim's verdict is told
    "fig7": ("sparse-parity",),
    "fig2": ("jumps-", "smaller-jumps"),
    "fig3a": ("ppc-three-times",),
    "fig3b": ("ppc-beats-fig3b",),
    "fig3c": ("ppc-beats-fig3c", "scratchpad-helps"),
    "fig3d": ("ppc-beats-fig3d",),
    "fig8a": ("ppc-beats-fig8a",),
    "fig8b": ("ppc-beats-fig8b",),
    "sharp2": ("sharpening-helps-parity",),
    "sharp3a": ("sharpening-helps-assignment",),
    "sharp7": ("sharpening-helps-sparse-parity",),
    "wide7": ("wide-extrapolates", "width-helps"),
}
WHY_IT_DIFFERS = {  # by task
    "sparse-parity": "A quarter of so small a head would leave few rotated dimensions, so whole heads are rotated. The "
    "arms with a curriculum are ours: without one, a model of this size learns K_train = 4 late and the "
    "others not at all in this budget.",
    "parity-scratchpad": "With the usual initial scale a model of this size learns jump 1 only; with larger weights "
    "and a higher rate jumps 2 and 3 are learned as well and jump 4 in some runs, and every jump gets the same "
    "(docs/exploration.md).",
    "variable-assignment": "A run has to fit minutes of one core; three layers and slightly larger initial weights "
    "learned fastest in trials at training lengths (docs/exploration.md).",
}
TABLE_COLUMNS = 10  # lengths shown in a table: the last of the training range, and an even choice beyond it


def results_page(folder: Path) -> str:
    rows = {figure: current_rows(folder, figure) for figure in FIGURES}
    every = [row for entries in rows.values() for row in entries]
    parts = [
        "# Results at CPU scale",
        "Written by `lengen results` from the rows in `results/cpu`; a test compares this page with them. Every number "
        "is that of the last training step, every seed is in it, and nothing was selected on test lengths. Of tasks, "
        "intervals are 95 % Student-t over training seeds; figures shade it, or the range of two runs, or 95 % Wilson "
        "over the test examples of one run, and say which. Of text, they are over documents, examples or windows, as "
        "is said beside them. How verdicts follow: [interpretations](interpretations.md#verdicts).",
        "At this scale a run is a model of 0.2–0.8 million parameters and takes minutes of one core; the paper's has "
        "150 million and 50,000 steps. The tasks, lengths, position ids and measures are the paper's.",
        f"{_hours(every):.1f} hours of training on tasks in all, one thread a run: wall time, on cores that did other "
        f"work as well, so that seeds of one arm differ up to {_largest_ratio(every):.0f}-fold.",
    ]
    for figure, entries in rows.items():
        judged = [(claim.statement, claim.judge(rows)) for claim in CLAIMS if _belongs(claim, figure)]
        parts.append(_section(figure, entries, folder, judged))
    parts.append(language_section(table1_rows(folder)))
    parts += [context_section(name, folder) for name in CONTEXT_FIGURES]
    return "\n\n".join(parts) + "\n"


def _section(figure: str, rows: list[SweepRow], folder: Path, judged: list[tuple[str, Judgement]]) -> str:
    spec = FIGURES[figure]
    if variant := variant_of(figure):
        lines = [f"## Beyond the paper: {spec.title}", f"**The idea.** {BEYOND_THE_PAPER[variant]}"]
    else:
        lines = [f"## Figure {figure.removeprefix('fig')}: {spec.title}", f"**The paper.** {PAPER_SAYS[figure]}"]
    if not rows:
        return "\n\n".join(
            [*lines, f"**Here.** Not run yet: `lengen reproduce {figure} --scale cpu --out results/cpu`."]
        )
    lines.append(f"![Accuracy by length, {spec.title}](figures/{figure}.png)")
    lines += [_table(panel.title, panel.curves) for panel in panels_of(figure, folder)]
    if judged:
        lines.append(verdicts(judged))
    ours, paper = preset_config(spec.presets[0], "cpu"), preset_config(plain_name(spec.presets[0]), "paper")
    differing = differing_settings(ours, paper)
    if ours.eval_examples != paper.eval_examples:
        differing["eval_examples"] = (ours.eval_examples, paper.eval_examples)
    changed = [f"`{name}` {here} ({there})" for name, (here, there) in differing.items()]
    lines.append(f"**Differs from the paper.** {', '.join(changed)}. {WHY_IT_DIFFERS[ours.task.name]}")
    runs = {(row.arm, row.train_seed) for row in rows}
    lines.append(f"**Cost.** {num_runs(len(runs))}, {_hours(rows):.2f} hours of one thread.{_missing(figure, rows)}")
    return "\n\n".join(lines)


def _table(title: str, curves: Sequence[Curve]) -> str:
    lengths = _chosen_lengths(curves)
    lines = [f"| {title} | runs | " + " | ".join(map(str, lengths)) + " |", "|---|---|" + "---|" * len(lengths)]
    for curve in curves:
        cells = [f"{curve.points[length].value:.2f}" if length in curve.points else "–" for length in lengths]
        lines.append(f"| {curve.label} | {curve.num_runs} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _chosen_lengths(curves: Sequence[Curve]) -> list[int]:
    lengths = sorted({length for curve in curves for length in curve.points})
    stride = max(1, math.ceil(len(lengths) / TABLE_COLUMNS))
    return lengths[::-1][::stride][::-1]  # the longest is always among them


def _belongs(claim: Claim[Rows], figure: str) -> bool:
    return claim.name.startswith(CLAIMS_OF.get(figure, ("no claim",)))


def _missing(figure: str, rows: list[SweepRow]) -> str:
    there = {row.preset for row in rows}
    missing = [f"`{preset}`" for preset in FIGURES[figure].presets if preset not in there]
    return f" Not run: {', '.join(missing)}." if missing else ""


def _hours(rows: list[SweepRow]) -> float:
    runs = {(row.arm, row.train_seed): row.wall_seconds for row in rows}
    return sum(runs.values()) / 3600


def _largest_ratio(rows: list[SweepRow]) -> float:
    """Of the times that runs of one arm took."""
    times: dict[str, set[float]] = {}
    for row in rows:
        times.setdefault(row.arm, set()).add(max(row.wall_seconds, 0.1))  # rounded to tenths
    return max((max(arm) / min(arm) for arm in times.values()), default=1.0)
