"""Claims on made-up rows: each can be reproduced, can fail, and says so when there is nothing to judge."""

import json

import pytest

from lengen.cli import main
from lengen.experiments.claims import CLAIMS
from lengen.experiments.figures import FIGURES, measures_of
from lengen.experiments.presets import preset_config
from lengen.results import Row
from lengen.results.sweep import SweepRow, append_sweep_rows

VERDICTS = {"reproduced", "partly", "not", "no-data"}


def as_the_paper_has_it(preset: str, length: int, k_test: int, seed: int) -> float:
    """Accuracies shaped like the paper's figures, with a little noise between seeds."""
    noise = 0.004 * seed
    figure, _, arm = preset.partition("-")
    number = int("".join(c for c in arm if c.isdigit()))
    if figure in ("fig1", "fig7"):
        if k_test > number:
            return 0.5 + noise
        decline = 0.04 * (k_test - 4) if number >= 10 and length > 50 else 0.0
        return 0.99 - noise - decline
    if figure == "fig2":
        return 0.99 - noise if length <= 40 else 0.95 - 0.1 * number - noise
    if figure == "fig3a":
        return 0.97 - noise
    if figure == "fig3d":
        return 0.4 + noise
    return 0.1 + noise


def mirrored(preset: str, length: int, k_test: int, seed: int) -> float:
    return 1.0 - as_the_paper_has_it(preset, length, k_test, seed)


def made_up_rows(accuracy, num_seeds: int = 3, num_examples: int = 1000) -> dict[str, list[SweepRow]]:
    rows: dict[str, list[SweepRow]] = {}
    for figure, spec in FIGURES.items():
        for preset in spec.presets:
            config = preset_config(preset, "cpu")
            metrics = {config.headline_metric} if spec.only_headline else {config.headline_metric, "last-token"}
            for seed in range(num_seeds):
                for measure in measures_of(spec, config):
                    k_test = measure.overrides.get("task.k_test", 0)
                    for length in measure.lengths:
                        correct = round(num_examples * accuracy(preset, length, k_test, seed))
                        rows.setdefault(figure, []).extend(
                            SweepRow(figure, preset, "cpu", config.arm, seed, 1.0, "0", None, row)
                            for row in (
                                Row("r", 1, length, metric, correct, num_examples, 0, "one-pass", measure.overrides)
                                for metric in sorted(metrics)
                            )
                        )
    return rows


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
    assert len(lines) == len(CLAIMS)
    for line in lines:
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
