"""Benchmarks: rows, the tables made from them, the peer's data, and the command line."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lengen.bench import BENCHMARKS, Benchmark
from lengen.bench.length_curve import generated_curve, one_pass_curve, rope_config
from lengen.bench.peer import IGNORED, padded_batches
from lengen.bench.row import BenchRow, Spread, read_rows, write_rows
from lengen.bench.sparse_attention import log_log_slope
from lengen.bench.table import SPEED_PROMISES, SPEED_TABLE, markdown_table, promises_table
from lengen.bench.timing import compare
from lengen.bench.training_step import steps_of
from lengen.cli import main
from lengen.experiments.presets import preset_config
from lengen.model.hf import to_hf
from lengen.train.loop import build_decoder

ROOT = Path(__file__).parents[2]
ROW = BenchRow.of("startup", "lengen --help", "1 s", Spread(0.5, 0.4, 0.6), target=1.0, bound="at most")


PAGES = {"README.md": (SPEED_PROMISES, promises_table), "docs/performance.md": (SPEED_TABLE, markdown_table)}


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_the_rows(page):
    block, table = PAGES[page]
    text = (ROOT / page).read_text()
    rows = read_rows(ROOT / "results" / "bench", BENCHMARKS)
    assert {row.name for row in rows} == set(BENCHMARKS)
    assert block.within(text, table(rows), page) == text


@pytest.mark.parametrize("page", PAGES)
def test_the_check_of_pages_can_fail(page):
    block, table = PAGES[page]
    text = (ROOT / page).read_text()
    rows = read_rows(ROOT / "results" / "bench", BENCHMARKS)
    assert block.within(text, table([replace(rows[0], ratio=rows[0].ratio + 1), *rows[1:]]), page) != text


def test_a_promise_is_told_with_its_range_and_what_meets_it():
    settings = [("a", 3.0), ("a", 2.5), ("b", 1.5)]
    rows = [BenchRow.of("n", setting, "p", Spread(ratio, 1.0, 4.0), target=2.0) for setting, ratio in settings]
    free = BenchRow.of("n", "c", "p", Spread(9.0, 9.0, 9.0))
    _, _, line = promises_table([*rows, free]).splitlines()
    assert line == "| n | 2 settings | p | 1.5–3 | ≥ 2 | **2 of 3** |"
    assert promises_table(rows[:2]).splitlines()[2] == "| n | a | p | 2.5–3 | ≥ 2 | all 2 |"
    assert promises_table(rows[:1]).splitlines()[2] == "| n | a | p | 3 | ≥ 2 | yes |"


@pytest.mark.parametrize(
    ("median", "bound", "met"),
    [(2.0, "at least", True), (1.99, "at least", False), (2.0, "at most", True), (2.01, "at most", False)],
)
def test_a_target_is_met_or_not(median, bound, met):
    assert BenchRow.of("n", "s", "p", Spread(median, 1.0, 3.0), target=2.0, bound=bound).met is met
    assert BenchRow.of("n", "s", "p", Spread(median, 1.0, 3.0), bound=bound).met is None


def test_rows_survive_the_disk_and_replace_those_of_the_same_comparison(tmp_path):
    others = [replace(ROW, setting="other"), replace(ROW, peer="other"), replace(ROW, threads=2)]
    assert write_rows(tmp_path, "startup", [*others, ROW]) == []
    again = replace(ROW, ratio=0.7)
    assert write_rows(tmp_path, "startup", [again]) == others
    assert read_rows(tmp_path, BENCHMARKS) == [again, *others]


def test_a_page_without_markers_is_refused():
    with pytest.raises(ValueError, match="has no place for the speed table"):
        SPEED_TABLE.within(f"only {SPEED_TABLE.begin}", "new", "page.md")
    text = f"a {SPEED_TABLE.begin} old {SPEED_TABLE.end} b"
    assert SPEED_TABLE.within(text, "new", "page.md") == f"a {SPEED_TABLE.begin}\nnew\n{SPEED_TABLE.end} b"


def test_ratios_are_the_peers_time_over_ours(monkeypatch):
    seconds = {"ours": 2.0, "peer": 6.0}
    monkeypatch.setattr("lengen.bench.timing.seconds_of", lambda work: seconds[work()])
    assert compare(lambda: "ours", lambda: "peer", repeats=3) == Spread(3.0, 3.0, 3.0)


def test_slope_of_a_power_law():
    assert log_log_slope([10, 100, 1000], [2.0 * x**1.5 for x in (10, 100, 1000)]) == pytest.approx(1.5)


def test_the_peer_trains_on_the_same_examples():
    config = preset_config("fig2-jump1", "cpu")
    batches = [batch for step in steps_of(config, 3) for batch in step]
    padded = padded_batches(batches, config.batch_size)
    ours = sorted(tuple(tokens.tolist()) for batch in batches for tokens in batch.token_ids)
    theirs = sorted(
        tuple(tokens[mask.bool()].tolist()) for batch in padded for tokens, mask in zip(batch[0], batch[1], strict=True)
    )
    assert ours == theirs
    assert [len(batch.token_ids) for batch in padded] == [config.batch_size] * 3
    num_targets = sum(batch.target_tokens.numel() for batch in batches)
    assert sum(int((batch.labels != IGNORED).sum()) for batch in padded) == num_targets


def test_one_pass_and_generate_count_the_same():
    config = replace(rope_config(), eval_lengths=(2, 4, 6))
    decoder = build_decoder(config)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter *= 3  # a model of chance: some of the short examples are right, some are not
    counts = one_pass_curve(decoder, config)
    assert counts == generated_curve(to_hf(decoder), config)
    assert 0 < sum(counts) < 3 * config.eval_examples


def test_the_command_writes_rows_and_prints_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Benchmark, "measure", lambda self: iter([ROW]))
    assert main(["bench", "startup", "--out", str(tmp_path), "--json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == [ROW.to_dict()]
    assert {"name", "peer", "ratio", "low", "high", "target", "met", "threads", "setting"} <= set(printed[0])
    page = tmp_path / "page.md"
    page.write_text(f"{SPEED_TABLE.begin}\n{SPEED_TABLE.end}\n")
    assert main(["bench", "--from-rows", "--out", str(tmp_path), "--page", str(page)]) == 0
    assert "lengen --help" in capsys.readouterr().out
    assert "| startup | lengen --help | 1 s | 1 | 0.5 | 0.4–0.6 | ≤ 1 | yes |" in page.read_text()
    page.write_text("nothing")
    monkeypatch.setattr(Benchmark, "measure", lambda self: pytest.fail("measured for nothing"))
    assert main(["bench", "startup", "--out", str(tmp_path), "--page", str(page)]) == 2
    assert "has no place for the speed table" in capsys.readouterr().err
    assert page.read_text() == "nothing"


def test_a_row_that_is_not_measured_again_is_kept_and_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Benchmark, "measure", lambda self: iter([ROW]))
    kept = BenchRow.of("startup", "SmolLM2", "its loop", Spread(2.0, 1.0, 3.0), threads=2)
    write_rows(tmp_path, "startup", [kept])
    assert main(["bench", "startup", "--out", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [ROW.to_dict()]
    assert err == "startup: not measured this time, so its row is kept: SmolLM2, against its loop, 2 threads\n"
    assert read_rows(tmp_path, BENCHMARKS) == [ROW, kept]


@pytest.mark.parametrize("benchmark", ["training-step", "influence"])  # a peer of theirs, and ours converted
def test_without_transformers_one_sentence_says_what_to_install(tmp_path, capsys, monkeypatch, benchmark):
    monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not installed
    assert main(["bench", benchmark, "--out", str(tmp_path), "--json"]) == 2
    assert "needs transformers, which is not installed; in lengen's folder, pip install -e '.[hf]'" in (
        capsys.readouterr().err
    )


def test_an_unknown_benchmark_is_one_sentence(capsys):
    assert main(["bench", "trainingstep"]) == 2
    assert "training-step" in capsys.readouterr().err
