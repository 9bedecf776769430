"""docs/results.md and its figures come from the committed rows: a number typed by hand or a stale page fails here."""

from pathlib import Path

import pytest

from lengen.cli import main
from lengen.experiments.figures import FIGURES
from lengen.experiments.presets import preset_config
from lengen.experiments.results_page import results_page
from lengen.results.sweep import read_sweep_rows, sweep_file

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "results" / "cpu"
PRESENT = [figure for figure in FIGURES if sweep_file(ROWS, figure).exists()]


def test_the_page_is_what_the_rows_say():
    assert (ROOT / "docs" / "results.md").read_text() == results_page(ROWS)


def test_a_changed_row_changes_the_page(tmp_path):
    for figure in PRESENT:
        text = sweep_file(ROWS, figure).read_text()
        sweep_file(tmp_path, figure).write_text(text.replace('"correct": 1', '"correct": 0'))
    assert (ROOT / "docs" / "results.md").read_text() != results_page(tmp_path)


@pytest.mark.parametrize("figure", PRESENT)
def test_every_row_belongs_to_the_preset_it_names(figure):
    rows = read_sweep_rows(ROWS, figure)
    for row in rows:
        config = preset_config(row.preset, row.scale)
        assert row.arm == config.arm, f"{row.preset} has changed since its rows were made: run it again"
        assert row.row.step == config.steps
    places = [(r.arm, r.train_seed, r.row.length, r.row.metric, str(r.row.overrides)) for r in rows]
    assert len(set(places)) == len(places), "a row is there twice"


@pytest.mark.parametrize("figure", PRESENT)
def test_the_figure_of_the_page_exists(figure):
    assert (ROOT / "docs" / "figures" / f"{figure}.png").is_file()


def test_the_command_never_overwrites_by_accident(tmp_path, capsys):
    page = tmp_path / "page.md"
    assert main(["results", "--rows", str(ROWS), "--out", str(page)]) == 0
    assert main(["results", "--rows", str(ROWS), "--out", str(page)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["results", "--rows", str(tmp_path / "none")]) == 2
