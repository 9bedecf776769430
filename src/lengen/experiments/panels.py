"""From a sweep's rows to the panels of a figure of the paper."""

from collections.abc import Sequence
from pathlib import Path

from lengen.experiments.figures import figure_named
from lengen.experiments.presets import PRESETS, RANGES, plain_name, variant_of
from lengen.experiments.rows import current_rows
from lengen.figures.length_curves import Curve, Panel, interval_over
from lengen.results import Row
from lengen.results.sweep import SweepRow
from lengen.tasks import SparseParity


def panels_of(figure: str, folder: Path) -> list[Panel]:
    """Sparse parity: a panel for each K_train, a curve for each k_test. Otherwise one panel, a curve a preset.

    Arms beyond the paper have a panel each, with the curves of the plain arm beside their own.
    """
    spec, rows = figure_named(figure), current_rows(folder, figure)
    if not rows:
        raise ValueError(f"{folder} has no rows of {figure} yet; run `lengen reproduce {figure} --out {folder}` first")
    if variant := variant_of(figure):
        every = [*current_rows(folder, plain_name(figure)), *rows]
        return [_compared(preset, variant, spec.k_tests, every) for preset in spec.presets if _has_rows(preset, rows)]
    if not spec.k_tests:
        curves = [_curve(preset, _words(preset), [r for r in rows if r.preset == preset]) for preset in spec.presets]
        return [Panel(spec.title, [curve for curve in curves if curve.points])]
    panels = []
    for preset in spec.presets:
        curves = [
            _curve(preset, f"k_test = {k_test}", [r for r in rows if r.preset == preset and _k_test(r) == k_test])
            for k_test in spec.k_tests
        ]
        if any(curve.points for curve in curves):
            panels.append(Panel(_words(preset), curves))
    return panels


def _compared(preset: str, variant: str, k_tests: Sequence[int], rows: Sequence[SweepRow]) -> Panel:
    """An arm beyond the paper and the plain one; of sparse parity, at every k that both have trained on."""
    task = PRESETS[preset].task
    curves = []
    for words, name in (("plain", plain_name(preset)), (variant, preset)):
        own = [row for row in rows if row.preset == name]
        if not isinstance(task, SparseParity):
            curves.append(_curve(name, words, own))
            continue
        for k_test in (k for k in k_tests if k <= task.k_train):
            curves.append(_curve(name, f"{words}, k_test = {k_test}", [r for r in own if _k_test(r) == k_test]))
    return Panel(_words(preset), [curve for curve in curves if curve.points])


def _has_rows(preset: str, rows: Sequence[SweepRow]) -> bool:
    return any(row.preset == preset for row in rows)


def _curve(preset: str, label: str, rows: Sequence[SweepRow]) -> Curve:
    """The headline metric at every length that all seeds of the preset have."""
    task = PRESETS[preset].task
    metric = PRESETS[preset].at("cpu").headline_metric
    seeds = {row.train_seed for row in rows}
    by_length: dict[int, list[Row]] = {}
    for entry in rows:
        if entry.row.metric == metric:
            by_length.setdefault(entry.row.length, []).append(entry.row)
    points = {
        length: interval_over(measured, len(seeds))
        for length, measured in sorted(by_length.items())
        if len(measured) == len(seeds)
    }
    ranges = RANGES[task.name]
    return Curve(label, points, (ranges.min_length, ranges.max_length), len(seeds))


def _k_test(row: SweepRow) -> int:
    return int(row.row.overrides["task.k_test"])


def _words(preset: str) -> str:
    """fig2-jump3 -> jump 3, fig7-k4-curriculum -> K_train = 4, curriculum."""
    arm, _, variant = preset.partition("-")[2].partition("-")
    name = arm.rstrip("0123456789")
    number = arm.removeprefix(name)
    words = f"K_train = {number}" if name == "k" else f"{name} {number}"
    return f"{words}, {variant}" if variant else words
