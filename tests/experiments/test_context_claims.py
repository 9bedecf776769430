"""Claims on made-up analyses: each can be reproduced, be partly so, fail, and say so when there is nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lengen.cli import main
from lengen.experiments.context_claims import MANUALS, OWN, PRETRAINED, context_claims
from lengen.results.context import ORDERS, ContextRow, ContextSettings, append_rows, start_analysis

SETTINGS = ContextSettings("ours", "ours", "text", "0", 64, 128, 5, 300, 0, (0, 5, 63), 0)


def write(
    path,
    slope: float,
    noise: float,
    random_slope: float = 0.1,
    num_examples: int = 300,
    offset: float = 0.0,
    num_targets: int = 1,
) -> None:
    rng = np.random.default_rng(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    start_analysis(path, replace(SETTINGS, num_examples=num_examples, num_targets=num_targets), {})
    rows = []
    for example in range(num_examples):
        gain = rng.normal(0.1, 0.5)
        sparse = dict.fromkeys(ORDERS, random_slope * gain) | {
            "influence": offset + slope * gain + rng.normal(0, noise)
        }
        losses = {order: [4.0, 4.0 - sparse[order], 4.0 - gain] for order in ORDERS}
        rows.append(ContextRow(example, 0, 4.0, 4.0 - gain, [0, 1, 2, 3, 4], [0.0] * 63, losses, None))
    append_rows(path, rows)


@pytest.mark.parametrize(
    ("slope", "noise", "random_slope", "near", "far"),
    [
        (1.0, 0.1, 0.1, "reproduced", "reproduced"),
        (1.4, 0.1, 0.6, "partly", "partly"),
        (0.9, 0.35, 0.1, "partly", "reproduced"),
        (0.3, 0.1, 0.5, "not", "not"),
        (1.0, 1.5, 0.99, "not", "not"),
    ],
)
def test_verdicts(slope, noise, random_slope, near, far, tmp_path, capsys):
    write(tmp_path / "context" / "short.jsonl", slope, noise, random_slope)
    assert main(["claims", "--rows", str(tmp_path), "--json"]) == 0
    records = {record["claim"]: record for record in map(json.loads, capsys.readouterr().out.splitlines())}
    assert records["sparse-context-short"]["verdict"] == near
    assert records["random-tokens-short"]["verdict"] == far
    assert records["sparse-context-short"]["low"] < slope < records["sparse-context-short"]["high"]
    assert records["sparse-context-long"]["verdict"] == "no-data"


def test_a_line_beside_the_diagonal_is_not_near_it(tmp_path):
    write(tmp_path / "context" / "short.jsonl", 1.0, 0.1, offset=3.0)
    judgement = context_claims(tmp_path, ["short"])[0].judge({})
    assert judgement.verdict == "not"
    assert judgement.interval.value == pytest.approx(1.0, abs=0.05)


def test_the_control_is_compared_example_for_example(tmp_path):
    """The two slopes share their examples: their intervals overlap, and their difference is clear all the same."""
    path = tmp_path / "context" / "short.jsonl"
    path.parent.mkdir(parents=True)
    start_analysis(path, SETTINGS, {})
    rng, rows = np.random.default_rng(0), []
    for example in range(300):
        gain, common = rng.normal(0.1, 0.5), rng.normal(0, 1.0)
        sparse = dict.fromkeys(ORDERS, 0.1 * gain + common) | {"influence": 0.25 * gain + common}
        losses = {order: [4.0, 4.0 - sparse[order], 4.0 - gain] for order in ORDERS}
        rows.append(ContextRow(example, 0, 4.0, 4.0 - gain, [0, 1, 2, 3, 4], [0.0] * 63, losses, None))
    append_rows(path, rows)
    near, far = (claim.judge({}) for claim in context_claims(tmp_path, ["short"]))
    assert far.interval.high > near.interval.low
    assert far.verdict == "reproduced"
    assert "larger by 0.15 [0.15, 0.15]" in far.note


def test_a_handful_of_examples_is_no_data(tmp_path):
    write(tmp_path / "context" / "long.jsonl", 1.0, 0.1, num_examples=99)
    assert {claim.judge({}).verdict for claim in context_claims(tmp_path)} == {"no-data"}


def test_a_handful_of_windows_is_no_data(tmp_path):
    """And where there are enough of them, intervals are over windows."""
    path = tmp_path / "context" / "long.jsonl"
    claim = context_claims(tmp_path, ["long"])[0]
    write(path, 1.0, 0.1, num_targets=10, num_examples=290)
    assert claim.judge({}).verdict == "no-data"
    write(path, 1.0, 0.1, num_targets=10)
    judged = claim.judge({})
    assert (judged.verdict, judged.over) == ("reproduced", "300 examples in 30 windows")
    write(path, 1.0, 0.1)
    assert judged.interval.value == claim.judge({}).interval.value
    assert judged.interval != claim.judge({}).interval


def test_every_analysis_has_its_claim_and_its_control(tmp_path):
    names = [claim.name for claim in context_claims(tmp_path)]
    assert len(set(names)) == len(names) == 2 * (len(OWN) + len(MANUALS) + len(PRETRAINED)) == 24
