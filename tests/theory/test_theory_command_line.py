"""`lengen theory` through its own parser: list, check, plot, and what it says to mistakes."""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lengen.cli import theory as command
from lengen.figures.theory import FIGURES, read_rows
from lengen.theory import checks, statements
from lengen.theory.checks import CHECKS, Check
from lengen.theory.risk import Estimate
from lengen.theory.statements import Outcome

ROWS = Path(__file__).parents[2] / "results" / "theory"
QUICK = ["definition-3.3", "lemma-c.2", "erratum-lemma-c.1", "erratum-proposition-b.1", "remark-4.2-pairs"]


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="lengen theory")
    command.configure(parser)
    return command.run(parser.parse_args(arguments))


def test_list_names_every_check(capsys):
    assert run("list") == 0
    headings, *lines = capsys.readouterr().out.splitlines()
    assert headings.split() == ["name", "paper", "ref", "statement"]
    assert [line.split()[0] for line in lines] == [check.name for check in CHECKS]
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert run("list", "--json") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records == [
        {"name": check.name, "paper_ref": check.paper_ref, "statement": check.statement} for check in CHECKS
    ]


def test_json_has_exactly_the_promised_fields(capsys):
    assert run("check", *QUICK, "--json") == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["name"] for record in records] == QUICK
    for record in records:
        assert set(record) == {"name", "paper_ref", "holds", "exact", "measured", "bound", "seconds"}
        assert record["holds"] is True
        assert record["exact"] is True


def test_estimates_carry_their_interval(monkeypatch, capsys):
    estimate = Estimate(0.5, 0.25, 0.75, exact=False)
    estimated = Check("estimated", "Sec. 0", "0.5 is at most 1", lambda *_: Outcome(True, estimate, 1.0))
    monkeypatch.setattr(checks, "CHECKS", [estimated, *CHECKS])
    assert run("check", "estimated", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["exact"] is False
    assert record["interval"] == [0.25, 0.75]
    assert run("check", "estimated") == 0
    assert "measured 0.5 in [0.25, 0.75] (95 %)" in capsys.readouterr().out


@pytest.mark.parametrize("lacks", ["locality", "relative", "realizability", "coverage"])
def test_counterexamples_take_their_lengths(lacks, capsys):
    assert run("check", f"counterexample-{lacks}", "--L", "6", "--L-bar", "20", "--json") == 0
    given = json.loads(capsys.readouterr().out)
    assert run("check", f"counterexample-{lacks}", "--L", "6", "--json") == 0
    default = json.loads(capsys.readouterr().out)
    assert given["measured"] > default["measured"] >= given["bound"] == 0.7


def test_exit_code_1_when_a_statement_fails(monkeypatch, capsys):
    broken = Check("broken", "Sec. 0", "0 is at least 1", lambda *_: Outcome(False, Estimate.exactly(0.0), 1.0))
    monkeypatch.setattr(checks, "CHECKS", [broken, *CHECKS])
    assert run("check", "broken", "lemma-c.2") == 1
    output = capsys.readouterr().out
    assert output.startswith("FAILS  broken (Sec. 0)")
    assert "holds  lemma-c.2" in output
    assert run("check", "lemma-c.2") == 0


def test_just_past_the_training_length_the_constant_is_smaller(capsys):
    assert run("check", "counterexample-locality", "--L", "4", "--L-bar", "5", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["measured"] == pytest.approx(0.4)
    assert record["bound"] == 0.35


def test_a_counterexample_that_loses_too_little_fails(monkeypatch, capsys):
    monkeypatch.setattr(statements, "loss_constant", lambda short, long: 0.95)
    assert run("check", "counterexample-relative", "--L", "8", "--L-bar", "16", "--json") == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["check", "theorem4.3"],
            "unknown statement 'theorem4.3'; did you mean 'theorem-4.3', see `lengen theory list`",
        ),
        (["check", "zzz"], "unknown statement 'zzz'; choose from definition-3.2, "),
        (["check", "lemma-c.2", "--L", "8"], "--L and --L-bar are for counterexample-"),
        (["check", "counterexample-coverage", "--L", "8", "--L-bar", "8"], "L_bar=8 is not longer than L=8"),
        (["check", "counterexample-coverage", "--L", "1"], "L=1 is too short"),
        (["plot", "--out", "figures", "--rows", "/nowhere"], "/nowhere has no bridge.jsonl"),
    ],
)
def test_mistakes_get_one_clear_sentence(arguments, message):
    with pytest.raises(ValueError, match=f"^[^\n]*{re.escape(message)}[^\n]*$"):
        run(*arguments)


def test_help_shows_an_example_and_needs_no_torch(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    assert "lengen theory check counterexample-locality --L 8 --L-bar 32" in capsys.readouterr().out
    probe = "import sys, lengen.cli.theory; print([m for m in ('torch', 'scipy', 'matplotlib') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_figures_are_drawn_from_the_stored_rows(tmp_path, capsys):
    assert run("plot", "--out", str(tmp_path / "figures"), "--rows", str(ROWS)) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in written] == [f"theory-{name}.png" for name in FIGURES]
    assert all(path.stat().st_size > 10_000 for path in written)
    with pytest.raises(ValueError, match=r"theory-theorem\.png exists already"):
        run("plot", "--out", str(tmp_path / "figures"), "--rows", str(ROWS))


def test_drawing_needs_no_torch():
    probe = "import sys, lengen.figures.theory; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "True"]


def test_stored_rows_show_what_the_text_says():
    """The rows behind docs/theory.md: each claim of a caption, read off the numbers."""
    rows = read_rows(ROWS)
    assert all(row["loss"] <= row["bound"] for row in rows["theorem"] + rows["growth"])
    assert all(row["hypotheses_hold"] and row["exact"] for row in rows["theorem"] + rows["growth"])
    assert all(row["loss"] > row["delta"] for row in rows["growth"])
    assert all(row["loss"] >= 0.7 for row in rows["counterexamples"] if row["L_bar"] >= 2 * row["L"])
    smallest_delta = min(rows["erratum"], key=lambda row: row["delta"])
    assert smallest_delta["loss"] > 10 * smallest_delta["bound"]
    assert all(row["loss"] == 0 for row in rows["coupling"] if row["arm"] == "position coupling")
    assert all(row["loss"] > 0.4 for row in rows["coupling"] if row["arm"] != "position coupling")
    assert all(row["high"] <= 0.1 for row in rows["bridge"])
    assert {row["task"] for row in rows["bridge"] if "bound" in row} == {"planted parity"}


@pytest.fixture
def quick_measurements(monkeypatch):
    """Measurements that take no time: the stored rows."""
    from lengen.theory import measurements

    stored = read_rows(ROWS)
    quick = {name: (lambda table=table: table) for name, table in stored.items()}
    monkeypatch.setattr(measurements, "MEASUREMENTS", quick)
    return stored


@pytest.mark.parametrize("there", ["theory-bridge.png", "growth.jsonl"])
def test_plot_replaces_nothing_unasked_and_says_so_before_it_measures(tmp_path, quick_measurements, capsys, there):
    (tmp_path / there).write_text("mine")
    with pytest.raises(ValueError, match=f"{there} exists already; choose another --out or add --overwrite"):
        run("plot", "--out", str(tmp_path))
    assert "measuring" not in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == [there]


def test_plot_measures_writes_rows_and_replaces_what_it_is_told_to(tmp_path, quick_measurements, capsys):
    for name in ("theory-bridge.png", "growth.jsonl"):
        (tmp_path / name).write_text("mine")
    assert run("plot", "--out", str(tmp_path), "--overwrite") == 0
    out, err = capsys.readouterr()
    assert err.count("measuring") == len(quick_measurements)
    assert out.splitlines() == [str(tmp_path / f"theory-{name}.png") for name in FIGURES]
    assert (tmp_path / "theory-bridge.png").read_bytes().startswith(b"\x89PNG")
    assert read_rows(tmp_path) == quick_measurements
