"""Claims on made-up rows: each can be reproduced, can fail, and says so when there is nothing to judge."""

import json

import pytest

from lengen.cli import main
from lengen.experiments.claims import CLAIMS
from lengen.experiments.figures import FIGURES
from lengen.results.sweep import append_sweep_rows

from .made_up import as_the_paper_has_it, made_up_rows, mirrored

VERDICTS = {"reproduced", "partly", "not", "no-data"}


def test_rows_like_the_paper_s_reproduce_every_claim():
    rows = made_up_rows(as_the_paper_has_it)
    verdicts = {claim.name: claim.judge(rows).verdict for claim in CLAIMS}
    assert set(verdicts.values()) == {"reproduced"}, verdicts


def test_rows_unlike_the_paper_s_reproduce_none():
    rows = made_up_rows(mirrored)
    verdicts = {claim.name: claim.judge(rows).verdict for claim in CLAIMS}
    assert set(verdicts.values()) == {"not"}, verdicts


def test_no_rows_are_no_verdict():
    for claim in CLAIMS:
        judgement = claim.judge({})
        assert (judgement.verdict, judgement.num_seeds) == ("no-data", 0)


def test_incomplete_runs_do_not_count():
    rows = made_up_rows(as_the_paper_has_it)
    depth3 = next(claim for claim in CLAIMS if claim.name == "ppc-three-times-depth3")
    kept = [row for row in rows["fig3a"] if not (row.train_seed == 2 and row.row.length == 180)]
    assert depth3.judge(rows).num_seeds == 3
    assert depth3.judge({"fig3a": kept}).num_seeds == 2


def test_a_wrong_order_of_jumps_is_only_partly():
    def swapped(preset, length, k_test, seed):
        return as_the_paper_has_it(
            {"fig2-jump2": "fig2-jump3", "fig2-jump3": "fig2-jump2"}.get(preset, preset), length, k_test, seed
        )

    claim = next(claim for claim in CLAIMS if claim.name == "smaller-jumps-go-further")
    assert claim.judge(made_up_rows(swapped)).verdict == "partly"


def test_the_command_and_the_figures(tmp_path, capsys):
    for figure, rows in made_up_rows(as_the_paper_has_it).items():
        append_sweep_rows(tmp_path, figure, rows)
    assert main(["claims", "--rows", str(tmp_path), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["claim"] for line in lines[: len(CLAIMS)]] == [claim.name for claim in CLAIMS]
    for line in lines[: len(CLAIMS)]:  # there are no rows of language here
        assert {"claim", "paper_ref", "verdict", "value", "low", "high", "seeds"} <= set(line)
        assert line["verdict"] in VERDICTS
        assert line["low"] <= line["value"] <= line["high"]
    assert main(["figure", "all", "--rows", str(tmp_path), "--out", str(tmp_path / "figures")]) == 0
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == set(FIGURES)
    assert main(["figure", "fig2", "--rows", str(tmp_path), "--out", str(tmp_path / "figures")]) == 2  # no overwriting


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["claims", "--rows", "{tmp}/none"], "is not a folder"),
        (["figure", "fig2", "--rows", "{tmp}", "--out", "{tmp}"], "has no rows of fig2"),
        (["figure", "all", "--rows", "{tmp}", "--out", "{tmp}"], "has no rows of any figure"),
        (["figure", "fig22", "--rows", "{tmp}", "--out", "{tmp}"], "did you mean 'fig2'"),
    ],
)
def test_bad_usage(tmp_path, capsys, arguments, expected):
    assert main([part.format(tmp=tmp_path) for part in arguments]) == 2
    assert expected in capsys.readouterr().err


def test_one_run_is_never_enough():
    rows = made_up_rows(as_the_paper_has_it, num_seeds=1)
    depth3 = next(claim for claim in CLAIMS if claim.name == "ppc-three-times-depth3")
    assert depth3.judge(rows).verdict == "partly"
    baseline = next(claim for claim in CLAIMS if claim.name == "scratchpad-helps-pose")
    assert baseline.judge({**rows, "fig3c": []}).verdict == "no-data"
