"""Committed rows are what training gives: an arm, found by its config hash and trained again, has the same rows."""

from dataclasses import replace
from pathlib import Path

import pytest

from lengen.experiments.presets import PRESETS, preset_config
from lengen.experiments.reproduce import SweepJob, train_and_measure
from lengen.results import RunFolder
from lengen.results.sweep import SweepRow, read_sweep_rows

RESULTS = Path(__file__).parents[2] / "results"


def rows_of_first_run(scale: str, figure: str) -> list[SweepRow]:
    rows = read_sweep_rows(RESULTS / scale, figure)
    return [row for row in rows if row.row.run == rows[0].row.run]


def train_again(arm: str, seed: int, scale: str, figure: str, folder: Path) -> list:
    (preset,) = (name for name in PRESETS if preset_config(name, scale).arm == arm)
    config = replace(preset_config(preset, scale), seed=seed)
    return train_and_measure(SweepJob(preset, config, RunFolder(folder), figure, preset, scale))


def test_a_short_arm_gives_its_rows_again(tmp_path):
    committed = rows_of_first_run("smoke", "fig7")
    first = committed[0]
    again = train_again(first.arm, first.train_seed, "smoke", "fig7", tmp_path)
    assert again == [entry.row for entry in committed]
    assert len({row.correct for row in again}) > 3, "rows of a model that is always wrong would show nothing"


def test_another_seed_gives_other_rows(tmp_path):
    committed = rows_of_first_run("smoke", "fig7")
    again = train_again(committed[0].arm, committed[0].train_seed + 1, "smoke", "fig7", tmp_path)
    assert [row.correct for row in again] != [entry.row.correct for entry in committed]


@pytest.mark.slow
def test_an_arm_of_the_results_page_gives_its_rows_again(tmp_path):
    committed = rows_of_first_run("cpu", "fig2")
    first = committed[0]
    assert train_again(first.arm, first.train_seed, "cpu", "fig2", tmp_path) == [entry.row for entry in committed]
