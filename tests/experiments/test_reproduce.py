"""A sweep does what is missing, appends rows as runs finish, and skips what is there."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from lengen.cli import main
from lengen.experiments.figures import FIGURES, measures_of
from lengen.experiments.presets import preset_config
from lengen.experiments.reproduce import plan, reproduce
from lengen.experiments.rows import current_rows
from lengen.results.sweep import append_sweep_rows, read_sweep_rows, sweep_file
from lengen.train.optimise import held

from .made_up import as_the_paper_has_it, made_up_rows


def test_a_smoke_sweep_and_its_second_call(tmp_path, capsys):
    arguments = ["reproduce", "fig8a", "--scale", "smoke", "--workers", "2", "--out", str(tmp_path)]
    assert main(arguments) == 0
    rows = read_sweep_rows(tmp_path, "fig8a")
    assert {row.preset for row in rows} == set(FIGURES["fig8a"].presets)
    for row in rows:
        assert row.row.metric == "exact-tokens"
        assert row.row.step == preset_config(row.preset, "smoke").steps
        assert row.arm == preset_config(row.preset, "smoke").arm
        assert row.wall_seconds > 0
    before = sweep_file(tmp_path, "fig8a").read_bytes()
    capsys.readouterr()
    assert main(arguments) == 0
    assert capsys.readouterr().out == "0 runs done\n"
    assert sweep_file(tmp_path, "fig8a").read_bytes() == before


def test_a_lost_run_is_planned_again_and_gives_the_same_rows(tmp_path):
    arguments = ["reproduce", "fig8a", "--scale", "smoke", "--workers", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    rows = read_sweep_rows(tmp_path, "fig8a")
    kept = [row for row in rows if row.preset != "fig8a-jump2"]
    sweep_file(tmp_path, "fig8a").unlink()
    append_sweep_rows(tmp_path, "fig8a", kept)
    assert [job.preset for job in plan(["fig8a"], "smoke", None, tmp_path)] == ["fig8a-jump2"]
    assert main(arguments) == 0

    def results(rows):
        return sorted((row.preset, row.row.length, row.row.correct) for row in rows)

    assert results(read_sweep_rows(tmp_path, "fig8a")) == results(rows)


def test_a_run_whose_rows_were_cut_short_is_completed(tmp_path):
    """As if the process had died in the middle of writing: nothing is doubled, and nothing stays missing."""
    arguments = ["reproduce", "fig8a-jump1", "--scale", "smoke", "--workers", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    file = sweep_file(tmp_path, "fig8a")
    whole = read_sweep_rows(tmp_path, "fig8a")
    first, *_, last = file.read_text().splitlines(keepends=True)
    file.write_text(first + last[:20])
    assert [job.preset for job in plan(["fig8a-jump1"], "smoke", None, tmp_path)] == ["fig8a-jump1"]
    assert main(arguments) == 0
    assert [entry.row for entry in read_sweep_rows(tmp_path, "fig8a")] == [entry.row for entry in whole]
    assert plan(["fig8a-jump1"], "smoke", None, tmp_path) == []


def test_scales_are_not_mixed(tmp_path, capsys):
    rows = made_up_rows(as_the_paper_has_it, num_seeds=1)["fig8a"]
    append_sweep_rows(tmp_path, "fig8a", rows)
    assert main(["reproduce", "fig8a", "--scale", "smoke", "--out", str(tmp_path)]) == 2
    assert "has rows of --scale cpu; choose another --out for --scale smoke" in capsys.readouterr().err
    small = [replace(row, scale="smoke", arm=preset_config(row.preset, "smoke").arm) for row in rows]
    append_sweep_rows(tmp_path, "fig8a", small)  # by other means, say a copy
    for command in (["claims", "--rows", str(tmp_path)], ["figure", "fig8a", "--rows", str(tmp_path), "--out", "x"]):
        assert main(command) == 2
        assert "has rows of --scale cpu and smoke" in capsys.readouterr().err


def test_rows_of_a_preset_that_was_changed_are_left_out(tmp_path):
    rows = made_up_rows(as_the_paper_has_it, num_seeds=1)["fig8a"]
    append_sweep_rows(tmp_path, "fig8a", [replace(row, arm="0123456789ab") for row in rows])
    assert current_rows(tmp_path, "fig8a") == []
    append_sweep_rows(tmp_path, "fig8a", rows)
    assert current_rows(tmp_path, "fig8a") == rows


def test_a_run_that_another_process_trains_is_left_alone(tmp_path, capsys):
    arguments = ["reproduce", "fig8a", "--scale", "smoke", "--workers", "1", "--out", str(tmp_path)]
    held_job = plan(["fig8a-jump2"], "smoke", None, tmp_path)[0]
    with held(held_job.folder):
        assert main(arguments) == 0
    printed = capsys.readouterr()
    assert "fig8a-jump2 seed 0: left alone, another process is training it" in printed.err
    assert printed.out.endswith("3 runs done\n")
    assert "fig8a-jump2" not in {row.preset for row in read_sweep_rows(tmp_path, "fig8a")}
    assert main(arguments) == 0
    assert "fig8a-jump2" in {row.preset for row in read_sweep_rows(tmp_path, "fig8a")}


def test_two_sweeps_with_the_same_plan_do_not_double_rows(tmp_path):
    jobs = plan(["fig8a-jump1"], "smoke", None, tmp_path)
    assert reproduce(jobs, 1, tmp_path) == []
    rows = read_sweep_rows(tmp_path, "fig8a")
    assert reproduce(jobs, 1, tmp_path) == []
    assert read_sweep_rows(tmp_path, "fig8a") == rows != []


def test_seeds_come_one_after_the_other(tmp_path):
    seeds = [job.config.seed for job in plan(["fig2", "fig8b"], "cpu", None, tmp_path)]
    assert seeds == sorted(seeds)
    assert len(seeds) == 4 * 5 + 4 * 3
    assert len(plan(["fig2"], "cpu", 2, tmp_path)) == 8
    arms = plan(["fig7-k4", "fig7-k6-curriculum", "fig7-k4"], "cpu", 1, tmp_path)
    assert [job.preset for job in arms] == ["fig7-k4", "fig7-k6-curriculum"]
    assert {job.figure for job in arms} == {"fig7"}
    assert len(plan(["fig2"], "paper", None, tmp_path)) == 40


def test_sparse_parity_is_measured_at_each_k_where_it_fits():
    config = preset_config("fig7-k4", "cpu")
    measures = {measure.overrides["task.k_test"]: measure for measure in measures_of(FIGURES["fig7"], config)}
    assert set(measures) == {4, 6, 8, 10, 12, 14, 16}
    assert min(measures[4].lengths) == 20
    assert min(measures[16].lengths) == 40  # 20 bits; 15 are not enough for 16 marks
    assert all(measure.config.task.k_test == k for k, measure in measures.items())


def test_a_dry_run_trains_nothing(tmp_path, capsys):
    assert main(["reproduce", "all", "--out", str(tmp_path / "new"), "--dry-run", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["figure"] for line in lines} == set(FIGURES)
    assert not (tmp_path / "new").exists()
    assert all(0.001 < line["core_hours"] < 1 for line in lines), "cpu scale is minutes a run"


def test_ray_is_an_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    assert main(["reproduce", "fig2", "--engine", "ray", "--out", str(tmp_path / "new")]) == 2
    assert "needs Ray, which is not installed; pip install -e '.[ray]' in lengen's folder" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_both_engines_give_the_same_rows(tmp_path):
    pytest.importorskip("ray")

    def rows(engine):
        command = ["reproduce", "fig8a", "--scale", "smoke", "--engine", engine, "--out", str(tmp_path / engine)]
        subprocess.run([sys.executable, "-m", "lengen", *command], check=True, capture_output=True)
        found = [replace(row, wall_seconds=0.0) for row in read_sweep_rows(tmp_path / engine, "fig8a")]
        return sorted(found, key=lambda row: (row.preset, row.row.length))

    assert rows("ray") == rows("local") != []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["fig9"], "unknown figure 'fig9'"),
        (["fig2", "--scale", "papr"], "did you mean 'paper'"),
        (["fig2", "--workers", "0"], "--workers 0"),
        (["fig2", "--seeds", "0"], "--seeds 0"),
        (["fig2", "--address", "auto"], "add --engine ray"),
    ],
)
def test_bad_usage(tmp_path, capsys, arguments, expected):
    assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sweep_can_be_stopped_anywhere(tmp_path, start_lengen, number):
    child = start_lengen("reproduce", "fig2", "--seeds", "1", "--out", str(tmp_path))
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("work/*/metrics.jsonl"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(child.pid, number) if number == signal.SIGINT else child.send_signal(number)  # Ctrl-C reaches all
    _, err = child.communicate(timeout=120)
    assert child.returncode == 128 + number
    assert "stopped and saved; the same command goes on from here" in err
    assert "Traceback" not in err
    stopped = [json.loads(path.read_text()) for path in tmp_path.glob("work/*/run.json")]
    assert [record["status"] for record in stopped] == ["interrupted", "interrupted"]
    assert all(0 < record["step"] < record["config"]["steps"] for record in stopped)
    assert not list(tmp_path.glob("*.jsonl")), "no row of an unfinished run"
