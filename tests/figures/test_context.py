"""What the curves of an analysis show, read back from the axes."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from lengen.figures.context import draw_analyses, draw_curves, draw_means
from lengen.results.context import ORDERS, Analysis, ContextRow, ContextSettings, GreedySelection

CURVE = (0, 1, 3)
SETTINGS = ContextSettings("model", "model", "text", "0" * 64, 4, 8, 1, 3, 2, CURVE, 0)


def row(example: int, loss_short: float, loss_long: float, greedy: list[float] | None) -> ContextRow:
    losses = {order: [loss_short, loss_short - 0.1 * (1 + place), loss_long] for place, order in enumerate(ORDERS)}
    grown = None if greedy is None else GreedySelection([0] * len(greedy), greedy)
    return ContextRow(example, 0, loss_short, loss_long, [0], [0.0] * 3, losses, grown)


@pytest.fixture
def analysis():
    return Analysis(SETTINGS, [row(0, 5.0, 2.0, [1.5]), row(1, 4.0, 3.0, [2.5]), row(2, 3.0, 3.5, None)])


def curves_of(analysis: Analysis) -> dict[str, np.ndarray]:
    axes = Figure().add_subplot()
    draw_curves(axes, analysis)
    return {line.get_label(): line.get_xydata() for line in axes.get_lines()}


def test_curves_are_means_over_examples(analysis):
    drawn = curves_of(analysis)
    np.testing.assert_allclose(drawn["most influential"], [(0, 0), (1, 0.1), (3, (3 + 1 - 0.5) / 3)])
    np.testing.assert_allclose(drawn["most recent"][1], (1, 0.4))


def test_the_bands_say_what_they_are_over(analysis):
    def title(found: Analysis) -> str:
        axes = Figure().add_subplot()
        draw_curves(axes, found)
        return axes.get_legend().get_title().get_text()

    assert title(analysis) == "shaded: 95 % bootstrap over examples"
    several = Analysis(replace(SETTINGS, num_targets=3), analysis.rows)
    assert title(several) == "shaded: 95 % bootstrap over windows of text"


def test_greedy_stands_beside_what_all_tokens_give_to_the_same_examples(analysis):
    label = "greedy (first 2 examples; all far tokens give them 2.00)"  # all three examples: 1.17
    np.testing.assert_allclose(curves_of(analysis)[label], [(0, 0), (1, 2.5)])
    without = Analysis(SETTINGS, [replace(entry, greedy=None) for entry in analysis.rows])
    assert not any(name.startswith("greedy") for name in curves_of(without))


def test_without_a_curve_the_means_stand_alone(analysis):
    axes = Figure().add_subplot()
    draw_means(axes, analysis)
    points = [line.get_xydata()[0] for line in axes.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose(points, [((3 + 1 - 0.5) / 3, 0), (0.1, 1), (0.2, 2), (0.3, 3), (0.4, 4)])
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["all 3 far tokens", "1 most influential", "1 random", "1 most attended", "1 most recent"]
    assert axes.get_xlabel().endswith("lines: 95 % bootstrap over examples")


@pytest.mark.parametrize(("curve", "shown"), [((0, 1, 3), "mean loss recovered (nats)"), ((0, 1, 2, 3), "far tokens")])
def test_a_line_is_drawn_through_measured_points_alone(curve, shown, analysis):
    """None, k and all are no curve."""
    losses = [replace(entry, losses={order: [2.0] * len(curve) for order in ORDERS}) for entry in analysis.rows]
    figure = draw_analyses([Analysis(replace(SETTINGS, curve=curve), losses)])
    assert figure.axes[2].get_xlabel().startswith(shown)
