"""What is shaded around a curve: it depends on the number of runs, and the figure says which it is."""

import pytest

from lengen.evaluate.intervals import student_t, wilson
from lengen.figures.length_curves import Curve, draw_length_curves, interval_over
from lengen.results import Row


def row(correct: int) -> Row:
    return Row("run", 100, 20, "joint", correct, 192, 0, "one-pass")


@pytest.mark.parametrize(
    ("corrects", "expected", "words"),
    [
        ([150], wilson(150, 192), "95 % Wilson over test examples of one run"),
        ([96, 48], (0.375, 0.25, 0.5), "range of two runs"),
        ([96, 48, 96], student_t([0.5, 0.25, 0.5]), "95 % Student-t over training runs"),
    ],
)
def test_what_is_shaded(corrects, expected, words):
    interval = interval_over([row(correct) for correct in corrects], len(corrects))
    assert interval == pytest.approx(expected)
    figure = draw_length_curves([Curve("arm", {20: interval, 40: interval}, (10, 40), len(corrects))])
    assert figure.axes[0].get_legend().get_title().get_text() == f"shaded: {words}"
