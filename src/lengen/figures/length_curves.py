"""Accuracy against length: one curve an arm, its interval shaded, the training range marked."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from lengen.evaluate.intervals import Interval, student_t, wilson
from lengen.results import Row, RunFolder, refuse_to_replace, write_atomically

matplotlib.use("Agg")
FORMATS = (".png", ".pdf", ".svg")
# Okabe and Ito's colours: distinct for colour-blind readers, too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Curve:
    label: str
    points: dict[int, Interval]  # by length
    training_range: tuple[int, int]
    num_runs: int


def curves_of(folders: Sequence[RunFolder], metric: str | None = None) -> list[Curve]:
    """One curve for each arm (runs that differ by seed alone) and setting of the evaluation, in order of appearance."""
    arms: dict[str, list[tuple[dict[str, Any], list[Row]]]] = {}
    for folder in folders:
        record = folder.read_run()
        if "corpus" in record["config"]:
            raise ValueError(
                f"{folder.path} is a language model's run, which has no accuracy; use `lengen lm evaluate`"
            )
        chosen = metric or record["headline_metric"]
        rows = [row for row in folder.latest_rows() if row.metric == chosen]
        if not rows:
            how = f"`lengen evaluate {folder.path} --lengths LENGTHS`"
            raise ValueError(f"{folder.path} has no rows of {chosen!r} yet; run {how} first")
        for overrides in dict.fromkeys(tuple(sorted(row.overrides.items())) for row in rows):
            settings = ", ".join(f"{name}={value}" for name, value in overrides)
            label = f"{record['label']} ({chosen}{', ' + settings if settings else ''})"
            kept = [row for row in rows if tuple(sorted(row.overrides.items())) == overrides]
            arms.setdefault(f"{record['arm']} {label}", []).append((record, kept))
    return [_curve(key.partition(" ")[2], runs) for key, runs in arms.items()]


def _curve(label: str, runs: list[tuple[dict[str, Any], list[Row]]]) -> Curve:
    seeds = [record["seed"] for record, _ in runs]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"two of the runs of {label} have the same seed; an interval over runs needs different ones")
    config = runs[0][0]["config"]
    by_length: dict[int, list[Row]] = {}
    for _, rows in runs:
        for row in rows:
            by_length.setdefault(row.length, []).append(row)
    points = {
        length: interval_over(rows, len(runs)) for length, rows in sorted(by_length.items()) if len(rows) == len(runs)
    }
    return Curve(label, points, (config["min_length"], config["max_length"]), len(runs))


def interval_over(rows: Sequence[Row], num_runs: int) -> Interval:
    """Over training runs where there are several, over test examples where there is one.

    Of two runs it is their range: a Student-t interval of two is 12.7 standard errors each way, which fills a figure
    and tells nothing.
    """
    if num_runs == 1:
        return wilson(rows[0].correct, rows[0].total)
    rates = [row.rate for row in rows]
    return Interval(fmean(rates), min(rates), max(rates)) if num_runs == 2 else student_t(rates)


@dataclass(frozen=True)
class Panel:
    title: str
    curves: Sequence[Curve]


def draw_length_curves(curves: Sequence[Curve], title: str = "") -> Figure:
    return draw_panels([Panel(title, curves)])


def draw_panels(panels: Sequence[Panel]) -> Figure:
    """Panels side by side, two to a row, with one scale of accuracy and one legend each."""
    num_columns = min(len(panels), 2)
    num_rows = -(-len(panels) // num_columns)
    figure = Figure(figsize=(7 if num_columns == 1 else 11, 4.2 * num_rows), layout="constrained")
    for index, panel in enumerate(panels):
        _draw(figure.add_subplot(num_rows, num_columns, index + 1), panel)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    ranges = {curve.training_range for curve in panel.curves}
    for low, high in ranges:
        axes.axvspan(low, high, color="0.9", zorder=0)
    for index, curve in enumerate(panel.curves):
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        lengths = list(curve.points)
        values = [curve.points[length].value for length in lengths]
        lows = [max(curve.points[length].low, 0.0) for length in lengths]
        highs = [min(curve.points[length].high, 1.0) for length in lengths]
        runs = ", 1 run" if curve.num_runs == 1 else f", {curve.num_runs} runs"
        axes.plot(lengths, values, color=colour, marker=marker, markersize=4, label=curve.label + runs)
        axes.fill_between(lengths, lows, highs, color=colour, alpha=0.18, linewidth=0)
    axes.set(xlabel="length", ylabel="accuracy", ylim=(-0.03, 1.03))
    axes.set_title(panel.title, pad=16)
    axes.grid(axis="y", color="0.85", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if len(ranges) == 1:
        low, high = next(iter(ranges))
        axes.text((low + high) / 2, 1.05, "training lengths", ha="center", fontsize=8, color="0.35")
    num_columns = 1 if len(panel.curves) <= 2 else 2
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), frameon=False, fontsize=8, ncols=num_columns)
    legend.set_title(_band_note(panel.curves), prop=FontProperties(size=7))


def _band_note(curves: Sequence[Curve]) -> str:
    notes = []
    if any(curve.num_runs > 2 for curve in curves):
        notes.append("95 % Student-t over training runs")
    if any(curve.num_runs == 2 for curve in curves):
        notes.append("range of two runs")
    if any(curve.num_runs == 1 for curve in curves):
        notes.append("95 % Wilson over test examples of one run")
    return "shaded: " + "; ".join(notes)


def save_figure(figure: Figure, path: Path, overwrite: bool) -> None:
    if path.suffix not in FORMATS:
        raise ValueError(f"--out {path} has no known format; end it in {', '.join(FORMATS)}")
    if not overwrite:
        refuse_to_replace(path)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:], dpi=150)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        raise ValueError(f"cannot write {path} ({error.strerror}); choose another --out") from error
