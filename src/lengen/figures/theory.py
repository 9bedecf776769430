"""The theory's figures, from rows of plain numbers (results/theory/*.jsonl). Needs matplotlib, not torch."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lengen.figures.length_curves import save_figure

Row = dict[str, Any]
Rows = dict[str, list[Row]]

REMOVED = {
    "locality": "locality",
    "relative": "relative positions",
    "realizability": "realizability",
    "coverage": "coverage",
}
BLUE, ORANGE, GREEN, RED, GREY = "#2a6f97", "#d9822b", "#3d8b5f", "#b23a48", "#777777"


def read_rows(directory: Path) -> Rows:
    """The rows of every measurement that the figures need."""
    needed = sorted({name for names, _ in FIGURES.values() for name in names})
    missing = [name for name in needed if not (directory / f"{name}.jsonl").is_file()]
    if missing:
        raise ValueError(
            f"{directory} has no {missing[0]}.jsonl; `lengen theory plot --out DIR` measures and writes it"
        )
    return {
        name: [json.loads(line) for line in (directory / f"{name}.jsonl").read_text().splitlines()] for name in needed
    }


def figure_files(out: Path) -> dict[str, Path]:
    """Where each figure goes."""
    return {name: out / f"theory-{name}.png" for name in FIGURES}


def draw_all(rows: Rows, out: Path, overwrite: bool) -> list[Path]:
    """Draw every figure into `out`; the paths written."""
    files = figure_files(out)
    for name, (_, draw) in FIGURES.items():
        save_figure(draw(rows), files[name], overwrite)
    return list(files.values())


def draw_theorem(rows: Rows) -> Figure:
    """Theorem 4.3: the loss against the bound on the exact grid, and how the loss grows with the test length."""
    figure, (left, right) = _panels(2)
    for family, marker in (("markers", "o"), ("dilution", "^")):
        for sparsity, color in ((2, BLUE), (3, ORANGE)):
            points = [r for r in rows["theorem"] if (r["family"], r["k"]) == (family, sparsity) and r["loss"] > 0]
            bounds, losses = [r["bound"] for r in points], [r["loss"] for r in points]
            left.plot(bounds, losses, marker, ms=5, color=color, label=f"{family}, k = {sparsity}")
    left.plot([1e-9, 1], [1e-9, 1], color=GREY, lw=1, label="loss = bound")
    left.axvline(1, color=GREY, lw=1, ls=":")
    left.annotate("vacuous →", (2, 2e-8), color=GREY, fontsize=8)
    left.set(xscale="log", yscale="log", xlabel="bound of Theorem 4.3, with the proof's constant")
    left.set(ylabel="exact loss at $\\bar{L}$", title="The bound holds, with room to spare", ylim=(3e-9, 2))
    left.legend(loc="upper left", fontsize=8)
    settings = sorted({(r["k"], r["L"]) for r in rows["growth"]})
    for (sparsity, max_length), color in zip(settings, (GREEN, BLUE, RED, ORANGE), strict=True):
        line = [r for r in rows["growth"] if (r["k"], r["L"]) == (sparsity, max_length)]
        label = f"k = {sparsity}, $L$ = {max_length}"
        ratios = [r["loss"] / r["delta"] for r in line]
        right.plot([r["L_bar"] for r in line], ratios, "o-", ms=3, color=color, label=label)
    right.plot([16, 2048], [1, 128], color=GREY, lw=1, ls="--", label="slope 1")
    right.set(xscale="log", yscale="log", xlabel="test length $\\bar{L}$")
    right.set(ylabel="exact loss / δ", title="The loss grows like $\\bar{L}$, the bound like $\\bar{L}^3$")
    right.legend(loc="upper left", fontsize=8)
    return figure


def draw_counterexamples(rows: Rows) -> Figure:
    """Proposition C.3: the worst minimiser's exact loss for each removed assumption."""
    names = list(dict.fromkeys(row["lacks"] for row in rows["counterexamples"]))
    figure, axes = _panels(len(names), width=3.1)
    for axis, name in zip(axes, names, strict=True):
        for max_length, color in ((4, GREEN), (8, ORANGE), (16, BLUE)):
            line = [r for r in rows["counterexamples"] if r["lacks"] == name and r["L"] == max_length]
            ratios = [r["L_bar"] / r["L"] for r in line]
            axis.plot(ratios, [r["loss"] for r in line], "o-", ms=3, color=color, label=f"$L$ = {max_length}")
        axis.plot([2, 8], [0.7, 0.7], color=RED, lw=1.2, ls="--", label="constant $c$ = 0.7")
        axis.set(xscale="log", xticks=[1.25, 2, 4, 8], xticklabels=["1.25", "2", "4", "8"], ylim=(0, 1.03))
        axis.minorticks_off()
        axis.set(title=f"without {REMOVED[name]}", xlabel="$\\bar{L}/L$")
    axes[0].set(ylabel="exact loss at $\\bar{L}$ of the worst\nrisk minimiser")
    axes[0].legend(loc="lower right", fontsize=8)
    return figure


def draw_erratum(rows: Rows) -> Figure:
    """Theorem 4.3 as printed against a class whose finite scores are far apart."""
    figure, (axis,) = _panels(1, width=5.6)
    line = sorted(rows["erratum"], key=lambda r: float(r["delta"]))
    deltas = [r["delta"] for r in line]
    axis.plot(deltas, [r["loss"] for r in line], "o-", color=RED, label="exact loss at $\\bar{L}$ = 10")
    axis.plot(deltas, [r["headline_bound"] for r in line], "s--", ms=4, color=GREY, label="printed bound")
    axis.plot(deltas, [r["bound"] for r in line], "^--", ms=4, color=BLUE, label="same, with the proof's constant")
    axis.set(xscale="log", yscale="log", xlabel="smallest $\\delta$ of Assumption 4.1")
    axis.set(ylabel="loss, bound", title="As δ falls, the loss stays: the printed theorem fails")
    axis.legend(loc="upper left")
    return figure


def draw_coupling(rows: Rows) -> Figure:
    """Proposition D.2 and Remark 4.2: what position coupling and PoSE do for planted sets that are not local."""
    figure, (left, right) = _panels(2)
    for arm, color in (("local class, no coupling", RED), ("position coupling", BLUE)):
        line = [r for r in rows["coupling"] if r["arm"] == arm]
        lengths = [r["L_bar"] for r in line]
        left.plot(lengths, [r["loss"] for r in line], "o-", color=color, label=arm)
        left.fill_between(lengths, [r["low"] for r in line], [r["high"] for r in line], color=color, alpha=0.25, lw=0)
    left.axhline(0.5, color=GREY, lw=1, ls=":")
    left.annotate("guessing", (30, 0.51), color=GREY, fontsize=8)
    left.set(
        xlabel="test length $\\bar{L}$ (trained at $L = 8$)", ylabel="loss of the worst minimiser", ylim=(-0.02, 0.6)
    )
    left.set(title="Far retrieval: coupling makes it local")
    left.legend(loc="center right", title="exact, or band: 95 % interval", title_fontsize=8)
    hollow: dict[str, Any] = {"ls": "none", "mfc": "none", "ms": 9, "mew": 1.6}
    arms: list[tuple[int, int, str, str, dict[str, Any]]] = [
        (2, 1, "true ids", ORANGE, {"marker": "o", "ms": 4}),
        (2, 2, "PoSE, 2 chunks", ORANGE, {"marker": "o", **hollow}),
        (3, 1, "true ids", BLUE, {"marker": "s", "ms": 4}),
        (3, 2, "PoSE, 2 chunks", BLUE, {"marker": "s", **hollow}),
        (3, 3, "PoSE, 3 chunks", GREEN, {"marker": "s", "ms": 4}),
    ]
    for sparsity, chunks, ids, color, style in arms:
        line = [r for r in rows["pose"] if (r["k"], r["chunks"]) == (sparsity, chunks)]
        label = f"k = {sparsity}, {ids}"
        right.plot([r["L_bar"] for r in line], [r["loss"] for r in line], color=color, label=label, **style)
    right.set(xlabel="test length $\\bar{L}$ (trained at $L = 6$)", ylabel="exact loss of the worst minimiser")
    right.set(title="PoSE: c chunks show c − 1 wide gaps", ylim=(-0.03, 1.05))
    right.legend(loc="center right", fontsize=8)
    return figure


def draw_bridge(rows: Rows) -> Figure:
    """Gradient descent on sparse functional attention: loss by length, up to 64 times the training length."""
    tasks = list(dict.fromkeys(row["task"] for row in rows["bridge"]))
    figure, axes = _panels(len(tasks))
    for axis, task in zip(axes, tasks, strict=True):
        mine = [r for r in rows["bridge"] if r["task"] == task]
        lengths = sorted({r["length"] for r in mine})
        by_length = {n: [r["loss"] for r in mine if r["length"] == n] for n in lengths}
        means = [sum(by_length[n]) / len(by_length[n]) for n in lengths]
        axis.axvspan(32, 64, color=GREY, alpha=0.18, lw=0, label="training lengths")
        axis.plot(lengths, means, "o-", ms=4, color=BLUE, label="mean of 3 runs")
        lows, highs = [min(by_length[n]) for n in lengths], [max(by_length[n]) for n in lengths]
        axis.fill_between(lengths, lows, highs, color=BLUE, alpha=0.25, lw=0, label="lowest to highest run")
        bounded = sorted({r["length"] for r in mine if "bound" in r})  # none for a task without coverage
        if bounded:
            bounds = [max(r["bound"] for r in mine if r["length"] == n) for n in bounded]
            axis.plot(bounded, bounds, "--", color=RED, label="proof's bound from the training loss")
        axis.axhline(1, color=GREY, lw=1, ls=":")
        axis.annotate("a loss is at most 1", (16, 1.6), color=GREY, fontsize=8)
        axis.set(xscale="log", yscale="log", title=task, xlabel="sequence length", ylim=(3e-5, 1e10))
        axis.set(xticks=[16, 64, 256, 1024, 4096], xticklabels=["16", "64", "256", "1024", "4096"])
        axis.minorticks_off()
    axes[0].set(ylabel="loss")
    axes[0].legend(loc="upper left", fontsize=8)
    return figure


def _panels(num: int, width: float = 4.6) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width * num, 3.7), layout="constrained")
    axes = [figure.add_subplot(1, num, place + 1) for place in range(num)]
    for axis in axes:
        axis.grid(alpha=0.25, lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


FIGURES: dict[str, tuple[tuple[str, ...], Callable[[Rows], Figure]]] = {
    "theorem": (("theorem", "growth"), draw_theorem),
    "counterexamples": (("counterexamples",), draw_counterexamples),
    "erratum": (("erratum",), draw_erratum),
    "coupling": (("coupling", "pose"), draw_coupling),
    "bridge": (("bridge",), draw_bridge),
}
