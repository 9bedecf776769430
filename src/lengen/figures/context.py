"""Figures 4–6: the gain from a few far tokens against the gain from all, loss recovered against k, and the masks."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lengen.evaluate.agreement import agreement, resample
from lengen.figures.length_curves import COLOURS, MARKERS
from lengen.results.context import ORDERS, Analysis

SHORT, LONG, SPARSE = (rf"$\mathcal{{L}}_{{\mathrm{{{name}}}}}$" for name in ("short", "long", "short,sparse"))
WORDS = {
    "influence": "most influential",
    "random": "random",
    "attended": "most attended",
    "recent": "most recent",
}


def draw_analyses(analyses: Sequence[Analysis]) -> Figure:
    """A row for each analysis: the influential tokens, the random control, and the curves or what stands for them."""
    for analysis in analyses:
        if analysis.num_windows < 2:
            raise ValueError(f"the analysis of {analysis.settings.model} has no two windows yet; let it go on")
    figure = Figure(figsize=(14, 5 * len(analyses)), layout="constrained")
    for index, analysis in enumerate(analyses):
        scatters = [figure.add_subplot(len(analyses), 3, 3 * index + column) for column in (1, 2)]
        limits = _limits(analysis)
        for axes, order in zip(scatters, ("influence", "random"), strict=True):
            draw_scatter(axes, analysis, order, limits)
        draw = draw_curves if analysis.has_curves else draw_means
        draw(figure.add_subplot(len(analyses), 3, 3 * index + 3), analysis)
    return figure


def draw_scatter(axes: Axes, analysis: Analysis, order: str, limits: tuple[float, float]) -> None:
    """Figures 4 and 6a–c, and the control: the paper's pairs (L_short − L_long, L_short − L_short,sparse)."""
    settings = analysis.settings
    full, sparse = analysis.gains_long(), analysis.gains_sparse(order)
    found = agreement(full, sparse, settings.num_targets)
    axes.axline((0, 0), slope=1, color="0.5", linewidth=1, linestyle="--", zorder=1)
    axes.scatter(full, sparse, s=8, alpha=0.35, color=COLOURS[ORDERS.index(order)], linewidths=0, zorder=2)
    offset = float(np.mean(sparse)) - found.slope.value * float(np.mean(full))
    axes.axline((0, offset), slope=found.slope.value, color="black", linewidth=1.2, zorder=3)
    axes.set(
        xlim=limits,
        ylim=limits,
        aspect="equal",
        xlabel=f"all {settings.num_far} far tokens: {SHORT} − {LONG}",
        ylabel=f"{settings.num_influential} {WORDS[order]}: {SHORT} − {SPARSE}",
    )
    axes.set_title(_title(analysis), fontsize=10)
    (r, r_low, r_high), (slope, slope_low, slope_high) = found.correlation, found.slope
    axes.text(
        0.03,
        0.97,
        f"correlation {r:.2f} [{r_low:.2f}, {r_high:.2f}]\nslope {slope:.2f} [{slope_low:.2f}, {slope_high:.2f}]\n"
        f"{analysis.counted()}",
        transform=axes.transAxes,
        va="top",
        fontsize=8,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
    )
    axes.spines[["top", "right"]].set_visible(False)


def draw_means(axes: Axes, analysis: Analysis) -> None:
    """Without a curve: the mean loss recovered by all far tokens and by k of each order."""
    settings = analysis.settings
    gains = {f"all {settings.num_far} far tokens": analysis.gains_long()}
    gains |= {f"{settings.num_influential} {WORDS[order]}": analysis.gains_sparse(order) for order in ORDERS}
    low, high = _bands(analysis, np.array(list(gains.values())).T)
    for height, values in enumerate(gains.values()):
        colour = "0.35" if height == 0 else COLOURS[height - 1]
        axes.plot([low[height], high[height]], [height, height], color=colour, linewidth=1.5)
        axes.plot([float(np.mean(values))], [height], color=colour, marker="o", linestyle="none")
    axes.axvline(0, color="0.5", linewidth=1, linestyle="--", zorder=1)
    axes.set_yticks(range(len(gains)), list(gains))
    axes.set_ylim(len(gains) - 0.5, -0.5)  # the first at the top
    axes.set_xlabel(f"mean loss recovered (nats)\nlines: {_bootstrap(analysis)}", fontsize=9)
    axes.set_title(_title(analysis), fontsize=10)
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def draw_curves(axes: Axes, analysis: Analysis) -> None:
    """The mean loss recovered against the number of unmasked far tokens; the bands are over examples, or windows."""
    settings = analysis.settings
    for index, order in enumerate(ORDERS):
        gains = np.array([row.gains(order) for row in analysis.rows])
        low, high = _bands(analysis, gains)
        _draw_mean(axes, list(settings.curve), gains, WORDS[order], index)
        axes.fill_between(settings.curve, low, high, color=COLOURS[index], alpha=0.15, linewidth=0)
    mean_of_all = float(np.mean(analysis.gains_long()))
    axes.axhline(mean_of_all, color="0.5", linestyle="--", linewidth=1)
    axes.text(0, mean_of_all, "all far tokens", fontsize=8, va="bottom", color="0.35")
    _draw_greedy(axes, analysis)
    axes.set_xscale("symlog", linthresh=5)
    # The last tick is all of them; one that would touch it is left out.
    ticks = [tick for tick in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500) if 1.5 * tick < settings.num_far]
    axes.set_xticks([*ticks, settings.num_far])
    axes.set_xlim(-0.2, settings.num_far * 1.05)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.minorticks_off()
    axes.set(xlabel="far tokens unmasked", ylabel="mean loss recovered (nats)")
    axes.set_title(_title(analysis), fontsize=10)
    axes.grid(axis="y", color="0.85", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        frameon=False,
        fontsize=8,
        title=f"shaded: {_bootstrap(analysis)}",
        title_fontsize=7,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.15),
        ncols=2,
    )


def _draw_greedy(axes: Axes, analysis: Analysis) -> None:
    """Few examples have it: no band, which would dwarf the others, but what all far tokens give to these examples."""
    grown = [(row, row.greedy) for row in analysis.rows if row.greedy is not None]
    if not grown:
        return
    gains = np.array([[0.0, *(row.loss_short - loss for loss in greedy.losses)] for row, greedy in grown])
    mean_of_all = np.mean([row.gain_long for row, _ in grown])
    label = f"greedy (first {len(grown)} examples; all far tokens give them {mean_of_all:.2f})"
    _draw_mean(axes, list(range(gains.shape[1])), gains, label, len(ORDERS))


def _draw_mean(axes: Axes, points: list[int], gains: np.ndarray, label: str, index: int) -> None:
    axes.plot(points, gains.mean(0), color=COLOURS[index], marker=MARKERS[index], markersize=4, label=label)


def _bands(analysis: Analysis, gains: np.ndarray) -> np.ndarray:
    """Of the mean of each column, an example a row: its lower bound and its upper one."""
    resampled = resample(len(analysis.rows), analysis.settings.num_targets)
    bounds: np.ndarray = np.quantile([gains[chosen].mean(0) for chosen in resampled], [0.025, 0.975], axis=0)
    return bounds


def _bootstrap(analysis: Analysis) -> str:
    return f"95 % bootstrap over {'examples' if analysis.settings.num_targets == 1 else 'windows of text'}"


def _limits(analysis: Analysis) -> tuple[float, float]:
    """One square for the panels of a row."""
    gains = np.array([analysis.gains_long(), *(analysis.gains_sparse(order) for order in ("influence", "random"))])
    margin = 0.05 * float(np.ptp(gains)) or 1.0
    return float(gains.min()) - margin, float(gains.max()) + margin


def _title(analysis: Analysis) -> str:
    settings = analysis.settings
    chosen = "" if settings.select_with == settings.model else f", tokens chosen by {settings.select_with}"
    return f"{settings.model}{chosen}\n{settings.text}, {settings.short} → {settings.long}"


def draw_masks() -> Figure:
    """Figure 5: what each of the three losses sees; lengths and places, counted from 1, are the paper's."""
    long, short, influential = 8, 2, (2, 4)
    recent = range(long - short, long)
    seen = {
        SHORT: set(recent),
        LONG: set(range(1, long)),
        SPARSE: {*influential, *recent},
    }
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.add_subplot()
    for height, (name, visible) in enumerate(reversed(seen.items())):
        axes.text(0.3, height + 0.4, name, ha="right", va="center")
        for place in range(1, long + 1):
            is_target = place == long
            colour = "white" if is_target else "#56B4E9" if place in visible else "0.85"
            axes.add_patch(Rectangle((place - 0.45, height), 0.9, 0.8, facecolor=colour, edgecolor="0.3"))
            axes.text(place, height + 0.4, f"X{place}", ha="center", va="center", weight="bold" if is_target else None)
    axes.set(xlim=(-1.2, long + 0.6), ylim=(-0.2, len(seen)), aspect="equal")
    axes.axis("off")
    axes.set_title(
        f"L̄ = {long}, L = {short}, k = {len(influential)}: blue is seen, grey is masked, X{long} is predicted",
        fontsize=10,
    )
    return figure
