"""Which runs make up which figure, of the paper or beyond it, and how each run is measured."""

from dataclasses import dataclass, replace
from typing import Any

from lengen.checks import unknown_name
from lengen.config import RunConfig
from lengen.experiments.presets import PRESETS
from lengen.scale import Scale
from lengen.tasks import SparseParity

K_TESTS = (4, 6, 8, 10, 12, 14, 16)  # Sec. 5.1


@dataclass(frozen=True)
class FigureRuns:
    title: str
    presets: tuple[str, ...]
    num_seeds: int  # at cpu scale; at paper scale each preset says for itself
    only_headline: bool = True  # False: the answer token, too, which has to be decoded
    k_tests: tuple[int, ...] = ()  # sparse parity: measured at each of these, whatever it was trained on


def _jumps(figure: str) -> tuple[str, ...]:
    return tuple(f"{figure}-jump{jump}" for jump in (1, 2, 3, 4))


def _depths(figure: str) -> tuple[str, ...]:
    return tuple(f"{figure}-depth{depth}" for depth in (2, 3, 4, 5))


def _sizes(figure: str, *k_train: int, variant: str = "") -> tuple[str, ...]:
    return tuple(f"{figure}-k{k}{variant}" for k in k_train)


FIGURES: dict[str, FigureRuns] = {
    "fig1": FigureRuns(
        "Sparse parity, RoPE + PoSE",
        _sizes("fig1", 8, 10) + _sizes("fig1", 8, 10, variant="-curriculum"),
        2,
        k_tests=K_TESTS,
    ),
    "fig2": FigureRuns("Parity with scratchpad, PPC", _jumps("fig2"), 5),
    "fig3a": FigureRuns("Variable assignment, PPC", _depths("fig3a"), 3, only_headline=False),
    "fig3b": FigureRuns("Variable assignment, shifted APE, no coupling", _depths("fig3b"), 3, only_headline=False),
    "fig3c": FigureRuns("Variable assignment, RoPE + PoSE, no scratchpad", _depths("fig3c"), 3, only_headline=False),
    "fig3d": FigureRuns("Variable assignment, RoPE + PoSE, scratchpad", _depths("fig3d"), 3, only_headline=False),
    "fig7": FigureRuns(
        "Sparse parity, RoPE + PoSE",
        _sizes("fig7", 4, 6, 12) + _sizes("fig7", 4, 6, 12, variant="-curriculum"),
        2,
        k_tests=K_TESTS,
    ),
    "fig8a": FigureRuns("Parity with scratchpad, shifted APE, no coupling", _jumps("fig8a"), 3),
    "fig8b": FigureRuns("Parity with scratchpad, RoPE + PoSE", _jumps("fig8b"), 3),
    # Beyond the paper: arms of Figures 2, 3a and 7 with attention that sharpens as keys get more.
    "sharp2": FigureRuns("Parity with scratchpad, PPC, sharpened attention", _jumps("sharp2"), 2),
    "sharp3a": FigureRuns("Variable assignment, PPC, sharpened attention", _depths("sharp3a"), 2, only_headline=False),
    "sharp7": FigureRuns(
        "Sparse parity, RoPE + PoSE, sharpened attention",
        _sizes("sharp7", 4, 6, variant="-curriculum"),
        2,
        k_tests=K_TESTS,
    ),
    # And of Figure 7 with a model twice as wide.
    "wide7": FigureRuns(
        "Sparse parity, RoPE + PoSE, twice the width", _sizes("wide7", 4, 6, variant="-curriculum"), 2, k_tests=K_TESTS
    ),
}


def figure_named(name: str) -> FigureRuns:
    if name not in FIGURES:
        raise unknown_name("figure", name, [*FIGURES, "all"])
    return FIGURES[name]


def arms_named(name: str) -> list[tuple[str, str]]:
    """(figure, preset) of every arm of a figure, of one arm by its preset's name, or of `all`."""
    arms = [(figure, preset) for figure, spec in FIGURES.items() for preset in spec.presets]
    chosen = [arm for arm in arms if name in ("all", *arm)]
    if not chosen:
        raise unknown_name("figure", name, [*FIGURES, *(preset for _, preset in arms), "all"])
    return chosen


@dataclass(frozen=True)
class Measure:
    """One length curve of a trained run: settings that differ from training, and the lengths that fit them."""

    overrides: dict[str, Any]
    config: RunConfig  # with the overrides
    lengths: tuple[int, ...]


def measures_of(figure: FigureRuns, config: RunConfig) -> list[Measure]:
    if not figure.k_tests:
        return [Measure({}, config, config.eval_lengths)]
    assert isinstance(config.task, SparseParity)
    measures = []
    for k_test in figure.k_tests:
        task = replace(config.task, k_test=k_test)
        lengths = tuple(length for length in config.eval_lengths if task.fits(length))
        measures.append(Measure({"task.k_test": k_test}, replace(config, task=task, eval_lengths=lengths), lengths))
    return measures


def num_seeds_of(name: str, preset: str, scale: Scale) -> int:
    """The paper's number of runs at its scale; what two cores afford at ours; one to see that it runs."""
    if scale == "paper":
        return PRESETS[preset].num_paper_runs
    return FIGURES[name].num_seeds if scale == "cpu" else 1
