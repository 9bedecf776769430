"""docs/results.md and its figures come from the committed rows: a number typed by hand or a stale page fails here."""

from pathlib import Path

import pytest

from lengen.cli import main
from lengen.experiments.claims import CLAIMS
from lengen.experiments.context_page import CONTEXT_FIGURES, analyses_of
from lengen.experiments.figures import FIGURES
from lengen.experiments.findings import FINDINGS, findings
from lengen.experiments.presets import preset_config
from lengen.experiments.results_page import results_page
from lengen.results.context import analysis_file
from lengen.results.perplexity import TABLE1, append_perplexity_rows
from lengen.results.sweep import append_sweep_rows, read_sweep_rows, sweep_file

from .made_up import as_the_paper_has_it, made_up_rows, mirrored
from .test_context_claims import write as write_analysis
from .test_language_claims import LIKE_THE_PAPER
from .test_language_claims import made_up as made_up_perplexities

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "results" / "cpu"
PRESENT = [figure for figure in FIGURES if sweep_file(ROWS, figure).exists()]
PRESENT_CONTEXT = [figure for figure in CONTEXT_FIGURES if analyses_of(figure, ROWS)]


def test_the_page_is_what_the_rows_say():
    assert (ROOT / "docs" / "results.md").read_text() == results_page(ROWS)


def test_the_readme_shows_the_findings():
    text = (ROOT / "README.md").read_text()
    assert FINDINGS.within(text, findings(ROWS), "README.md") == text


def test_the_findings_of_other_rows_are_others(tmp_path):
    for figure, rows in made_up_rows(as_the_paper_has_it).items():
        append_sweep_rows(tmp_path, figure, rows)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{FINDINGS.begin}\nold\n{FINDINGS.end}\nafter\n")
    assert main(["results", "--rows", str(tmp_path), "--page", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert f"{len(CLAIMS)} reproduced, 0 partly, 0 not" in text
    assert findings(tmp_path) != findings(ROWS)


def test_other_rows_make_another_page(tmp_path):
    pages = []
    for name, accuracy in (("like", as_the_paper_has_it), ("unlike", mirrored)):
        (tmp_path / name).mkdir()
        for figure, rows in made_up_rows(accuracy).items():
            append_sweep_rows(tmp_path / name, figure, rows)
        append_perplexity_rows(tmp_path / name / TABLE1, made_up_perplexities(LIKE_THE_PAPER if name == "like" else {}))
        for analysis in (file for figure in CONTEXT_FIGURES.values() for file in figure.analyses):
            slope = 1.0 if name == "like" else 0.0
            write_analysis(analysis_file(tmp_path / name, analysis), slope, noise=0.1)
        pages.append(results_page(tmp_path / name))
    assert "**reproduced**" in pages[0]
    assert "**not**" not in pages[0]
    assert "**reproduced**" not in pages[1]
    assert "Not run yet" not in pages[0]


@pytest.mark.parametrize("figure", PRESENT)
def test_every_row_belongs_to_the_preset_it_names(figure):
    rows = read_sweep_rows(ROWS, figure)
    for row in rows:
        config = preset_config(row.preset, row.scale)
        assert row.arm == config.arm, f"{row.preset} has changed since its rows were made: run it again"
        assert row.row.step == config.steps
    places = [(r.arm, r.train_seed, r.row.length, r.row.metric, str(r.row.overrides)) for r in rows]
    assert len(set(places)) == len(places), "a row is there twice"


@pytest.mark.parametrize("figure", [*PRESENT, *PRESENT_CONTEXT])
def test_the_figure_of_the_page_exists(figure):
    assert (ROOT / "docs" / "figures" / f"{figure}.png").is_file()


def test_the_command_never_overwrites_by_accident(tmp_path, capsys):
    page = tmp_path / "page.md"
    assert main(["results", "--rows", str(ROWS), "--out", str(page)]) == 0
    assert main(["results", "--rows", str(ROWS), "--out", str(page)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["results", "--rows", str(tmp_path / "none")]) == 2


def test_context_figures_are_drawn_with_the_others(tmp_path, capsys):
    write_analysis(analysis_file(tmp_path, "short"), 1.0, 0.1)
    assert main(["figure", "all", "--rows", str(tmp_path), "--out", str(tmp_path / "figures")]) == 0
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["fig4.png"]
    assert main(["figure", "fig6", "--rows", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "has no analysis of fig6 yet" in capsys.readouterr().err
