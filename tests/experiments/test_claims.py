"""Claims on made-up rows: each can be reproduced, can fail, and says so when there is nothing to judge."""

import json

import pytest

from lengen.cli import main
from lengen.experiments.claims import CLAIMS
from lengen.experiments.figures import FIGURES
from lengen.results.sweep import append_sweep_rows

from .made_up import as_the_paper_has_it, made_up_rows, mirrored


def named(name: str):
    return next(claim for claim in CLAIMS if claim.name == name)


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
    depth3 = named("ppc-three-times-depth3")
    kept = [row for row in rows["fig3a"] if not (row.train_seed == 2 and row.row.length == 180)]
    assert depth3.judge(rows).num_seeds == 3
    assert depth3.judge({"fig3a": kept}).num_seeds == 2


def halved(rows):
    """Every run stopped in the middle of its evaluation: what it has of each claim is not enough."""
    return {figure: [row for row in entries if row.row.length in (50, 60)] for figure, entries in rows.items()}


def test_runs_that_stopped_in_their_evaluation_are_no_data():
    rows = halved(made_up_rows(as_the_paper_has_it))
    judged = {claim.name: claim.judge(rows).verdict for claim in CLAIMS}
    collapse = {name for name in judged if "collapses" in name}  # length 50 is all that these look at
    assert {name for name, verdict in judged.items() if verdict != "no-data"} == collapse


@pytest.mark.parametrize("lost", ["within", "k_test = 4", "k_test = 16"])
def test_a_run_that_lacks_a_part_is_left_out(lost):
    """Of one seed alone; the others are judged."""
    name, is_lost = {
        "within": ("smaller-jumps-go-further", lambda row: row.length == 10),
        "k_test = 4": ("sparse-parity-declines-with-k", lambda row: row.overrides.get("task.k_test") == 4),
        "k_test = 16": ("sparse-parity-collapses-above-k-train", lambda row: row.overrides.get("task.k_test") == 16),
    }[lost]
    whole = made_up_rows(as_the_paper_has_it)
    rows = {
        figure: [entry for entry in entries if entry.train_seed != 1 or not is_lost(entry.row)]
        for figure, entries in whole.items()
    }
    judged = named(name).judge(rows)
    assert (judged.verdict, judged.num_seeds) == ("reproduced", named(name).judge(whole).num_seeds - 1)


def test_no_common_seed_is_no_data():
    rows = made_up_rows(as_the_paper_has_it)
    kept = {"sharp2-jump1": 0, "sharp2-jump2": 1}
    rows["sharp2"] = [entry for entry in rows["sharp2"] if kept.get(entry.preset) == entry.train_seed]
    assert named("sharpening-helps-parity").judge(rows).verdict == "no-data"


def test_widths_are_compared_where_both_are_run():
    def hard_for_six(preset, length, k_test, seed):
        return as_the_paper_has_it(preset, length, k_test, seed) - 0.9 * (preset == "wide7-k6-curriculum")

    rows = made_up_rows(hard_for_six)
    judged = named("width-helps").judge(rows)
    assert (judged.verdict, judged.note) == ("not", "difference in accuracy; K_train = 4, 6")
    assert named("wide-extrapolates").judge(rows).verdict == "not"
    rows["wide7"] = [entry for entry in rows["wide7"] if entry.preset == "wide7-k4-curriculum"]
    judged = named("width-helps").judge(rows)
    assert (judged.verdict, judged.note) == ("reproduced", "difference in accuracy; K_train = 4")
    assert named("wide-extrapolates").judge(rows).verdict == "reproduced"


def test_a_wrong_order_of_jumps_is_only_partly():
    def swapped(preset, length, k_test, seed):
        return as_the_paper_has_it(
            {"fig2-jump2": "fig2-jump3", "fig2-jump3": "fig2-jump2"}.get(preset, preset), length, k_test, seed
        )

    assert named("smaller-jumps-go-further").judge(made_up_rows(swapped)).verdict == "partly"


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


def test_one_seed_is_never_enough():
    """However many arms it has: they are not repetitions."""
    rows = made_up_rows(as_the_paper_has_it, num_seeds=1)
    judged = {claim.name: claim.judge(rows) for claim in CLAIMS}
    assert {judgement.verdict for judgement in judged.values()} == {"partly"}, judged
    assert {judgement.num_seeds for judgement in judged.values()} == {1}


def test_half_of_a_comparison_is_no_data():
    rows = made_up_rows(as_the_paper_has_it)
    assert named("scratchpad-helps-pose").judge({**rows, "fig3c": []}).verdict == "no-data"


def test_a_baseline_that_never_learned_the_task_is_beaten_only_partly():
    def unlearned(preset, length, k_test, seed):
        return 0.001 * seed if preset.startswith("fig3b") else as_the_paper_has_it(preset, length, k_test, seed)

    judgement = named("ppc-beats-fig3b").judge(made_up_rows(unlearned))
    assert judgement.verdict == "partly"
    assert judgement.interval.low > 0.9
    assert "0.00 at 60, in training" in judgement.note


def test_jumps_that_were_not_learned_say_nothing_of_the_order():
    """Jump 4 fails beyond training in two runs of three because it fails within; the third is as good as jump 1."""

    def unlearned(preset, length, k_test, seed):
        if preset == "fig2-jump4":
            return 0.1 if seed else as_the_paper_has_it("fig2-jump1", length, k_test, seed)
        return as_the_paper_has_it(preset, length, k_test, seed)

    judgement = named("smaller-jumps-go-further").judge(made_up_rows(unlearned))
    assert judgement.verdict == "not"
    assert judgement.num_seeds == 1
    assert "jump 4 0.85 (1 of 3)" in judgement.note


def test_every_arm_has_to_reach_what_is_said_of_all():
    def weak(preset, length, k_test, seed):
        return 0.85 - 0.01 * seed if preset == "fig2-jump4" else as_the_paper_has_it(preset, length, k_test, seed)

    judgement = named("jumps-are-learned").judge(made_up_rows(weak))
    assert (judgement.verdict, judgement.note) == ("partly", "the worst: jump 4")
    assert judgement.interval.value == pytest.approx(0.84)


def test_runs_that_disagree_reproduce_nothing():
    def scattered(preset, length, k_test, seed):
        if preset == "fig3a-depth4":
            return (0.5, 0.95, 1.0)[seed]
        return as_the_paper_has_it(preset, length, k_test, seed)

    judgement = named("ppc-three-times-depth4").judge(made_up_rows(scattered))
    assert judgement.interval.value > 0.8
    assert judgement.verdict == "partly"


def test_below_chance_is_no_larger_collapse():
    def inverted(preset, length, k_test, seed):
        accuracy = as_the_paper_has_it(preset, length, k_test, seed)
        return 0.1 if 0.5 <= accuracy < 0.6 else accuracy

    claim = named("sparse-parity-collapses-above-k-train")
    assert claim.judge(made_up_rows(inverted)).interval.value == pytest.approx(
        claim.judge(made_up_rows(as_the_paper_has_it)).interval.value, abs=0.01
    )
