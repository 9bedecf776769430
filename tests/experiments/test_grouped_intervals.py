"""Examples of one window of text count as one: everything that shows an interval of an analysis heeds it."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from lengen.context.copies import Place, gains_by_place
from lengen.context.summary import summarize
from lengen.experiments.context_claims import near_the_diagonal, random_is_far
from lengen.experiments.context_page import _table
from lengen.figures.context import draw_curves, draw_means, draw_scatter
from lengen.results.context import ORDERS, Analysis, ContextRow, ContextSettings, GreedySelection

NUM_TARGETS, NUM_WINDOWS = 4, 30
SETTINGS = ContextSettings("model", "model", "text", "0", 4, 8, 1, NUM_WINDOWS, NUM_WINDOWS, (0, 1, 3), 0)


@pytest.fixture
def apart() -> Analysis:
    """An example a window, each with a greedy selection."""
    rng, rows = np.random.default_rng(0), []
    for number in range(NUM_WINDOWS):
        gain = rng.normal(0.3, 1.0)
        losses = {order: [4.0, 4.0 - 0.5 * gain - rng.normal(0, 0.4), 4.0 - gain] for order in ORDERS}
        greedy = GreedySelection([0], [4.0 - gain - rng.normal(0, 0.2)])
        rows.append(ContextRow(number, 0, 4.0, 4.0 - gain, [0], [0.0] * 3, losses, greedy))
    return Analysis(SETTINGS, rows)


@pytest.fixture
def together(apart) -> Analysis:
    """The same four times over, as targets of one window: it says no more."""
    rows = [
        replace(row, example=NUM_TARGETS * row.example + target) for row in apart.rows for target in range(NUM_TARGETS)
    ]
    return Analysis(replace(SETTINGS, num_targets=NUM_TARGETS), rows)


@pytest.fixture
def ignored(together) -> Analysis:
    """The same, taken for examples of their own: every interval is too narrow."""
    return replace(together, settings=SETTINGS)


def summaries(analysis: Analysis) -> list[float]:
    return [record[f"{name}_{end}"] for record in summarize(analysis) for name in ("slope",) for end in ("low", "high")]


def judgements(analysis: Analysis) -> list[float]:
    judged = [judge(analysis) for judge in (near_the_diagonal, random_is_far)]
    notes = [float(word.strip("[],)")) for one in judged for word in one.note.split() if word.strip("-[],).").isdigit()]
    return [bound for one in judged for bound in (one.interval.low, one.interval.high)] + notes


def bands(analysis: Analysis) -> list[float]:
    axes = Figure().add_subplot()
    draw_curves(axes, analysis)
    return [float(y) for band in axes.collections for y in band.get_paths()[0].vertices[:, 1]]


def lines(analysis: Analysis) -> list[float]:
    axes = Figure().add_subplot()
    draw_means(axes, analysis)
    return [float(x) for line in axes.get_lines() for x in line.get_xdata()]


def gains_of_copies(analysis: Analysis) -> list[float]:
    places: list[Place] = ["far" if row.gain_long > 0 else "nowhere" for row in analysis.rows]
    records = [record for record in gains_by_place(analysis, places) if record["num_examples"]]
    return [
        record[f"{name}_{end}"] for record in records for name in ("gain", "share_of_gain") for end in ("low", "high")
    ]


def words_of_a_scatter(analysis: Analysis) -> list[str]:
    axes = Figure().add_subplot()
    draw_scatter(axes, analysis, "influence", (-3.0, 3.0))
    return axes.texts[0].get_text().splitlines()[:2]


def rows_of_a_table(analysis: Analysis) -> list[str]:
    return _table("words", analysis).splitlines()[1:]


@pytest.mark.parametrize("shown", [summaries, judgements, bands, lines, gains_of_copies])
def test_intervals_are_over_windows(shown, apart, together, ignored):
    assert shown(together) == pytest.approx(shown(apart))
    assert shown(ignored) != pytest.approx(shown(apart))


@pytest.mark.parametrize("shown", [words_of_a_scatter, rows_of_a_table])
def test_so_are_those_in_words(shown, apart, together, ignored):
    assert shown(together) == shown(apart) != shown(ignored)


def test_one_window_is_too_few(together):
    one = replace(together, rows=together.rows[:NUM_TARGETS])
    with pytest.raises(ValueError, match="two windows of text; the analysis has 4 examples in 1 window"):
        summarize(one)
