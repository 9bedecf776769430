"""Sparse functional attention (Def. 3.3): the linear evaluation against the definition, and an independent sum."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengen.seeding import rng_for
from lengen.theory import attention as attention_module
from lengen.theory import local_attention
from lengen.theory.attention import AttentionClass, SparseAttention, attend_all_sets
from lengen.theory.instances import random_attention, random_tokens
from lengen.theory.keys import TableKey, TableValue, encode_tuples, local_shapes, tabulate_key, tabulate_value
from lengen.theory.local_attention import attend_local_sets, average_over_all_sets


def sum_in_python(hypothesis: SparseAttention, tokens: list[int]) -> list[float]:
    """Def. 3.3 and footnote 6 with loops and floats only."""
    weights, values = [], []
    for subset in combinations(range(len(tokens)), hypothesis.sparsity):
        positions = torch.tensor([[p + 1 for p in subset]])
        chosen = torch.tensor([[tokens[p] for p in subset]])
        weights.append(float(torch.exp(hypothesis.key(positions, chosen))[0]))
        values.append(hypothesis.value(chosen)[0].tolist())
    if sum(weights) == 0:
        weights = [1.0] * len(weights)
    total = sum(weights)
    return [sum(w * v[i] for w, v in zip(weights, values, strict=True)) / total for i in range(len(values[0]))]


cases = st.fixed_dictionaries(
    {
        "sparsity": st.integers(1, 4),
        "extra_locality": st.integers(0, 3),
        "vocab_size": st.integers(1, 3),
        "extra_length": st.integers(0, 7),
        "batch": st.integers(1, 4),
        "dead_share": st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]),
        "seed": st.integers(0, 10_000),
    }
)


def build(case: dict[str, float]) -> tuple[SparseAttention, torch.Tensor]:
    rng = rng_for(int(case["seed"]), "test")
    sparsity, vocab_size = int(case["sparsity"]), int(case["vocab_size"])
    hypothesis = random_attention(
        rng, sparsity, sparsity - 1 + int(case["extra_locality"]), vocab_size, float(case["dead_share"])
    )
    return hypothesis, random_tokens(rng, vocab_size, int(case["batch"]), sparsity + int(case["extra_length"]))


def by_definition(hypothesis: SparseAttention, tokens: torch.Tensor) -> torch.Tensor:
    return attend_all_sets(hypothesis.key, hypothesis.value, hypothesis.sparsity, tokens)


@given(cases)
@settings(deadline=None, max_examples=150)
def test_linear_evaluation_equals_the_definition(case):
    hypothesis, tokens = build(case)
    assert (hypothesis(tokens) - by_definition(hypothesis, tokens)).abs().max() <= 1e-10


@given(cases)
@settings(deadline=None, max_examples=40)
def test_definition_equals_a_sum_in_plain_python(case):
    hypothesis, tokens = build(case)
    plain = torch.tensor([sum_in_python(hypothesis, row) for row in tokens.tolist()], dtype=torch.float64)
    assert (by_definition(hypothesis, tokens) - plain).abs().max() <= 1e-10


def test_equality_can_fail():
    """One score moved by 0.01 is seen by the comparison of 1e-10."""
    hypothesis = random_attention(rng_for(0, "test"), 2, 3, 2, 0.0)
    hypothesis.key.scores.copy_(hypothesis.key.scores / 50)  # scores within ±1, so that every set has a say
    tokens = random_tokens(rng_for(1, "test"), 2, 4, 9)
    moved = TableKey(hypothesis.key.scores.clone(), 2, 3, 2)
    moved.scores[0, 1] += 0.01
    other = attend_local_sets(moved, hypothesis.value, 2, 3, tokens)
    assert (other - by_definition(hypothesis, tokens)).abs().max() > 1e-4


def test_chunks_do_not_change_the_result(monkeypatch):
    hypothesis = random_attention(rng_for(2, "test"), 3, 5, 3, 0.3)
    tokens = random_tokens(rng_for(3, "test"), 3, 3, 40)
    whole = hypothesis(tokens), by_definition(hypothesis, tokens), average_over_all_sets(hypothesis.value, 3, tokens)
    monkeypatch.setattr(local_attention, "_CHUNK_SETS", 7)
    monkeypatch.setattr(attention_module, "_CHUNK_SETS", 7)
    parts = hypothesis(tokens), by_definition(hypothesis, tokens), average_over_all_sets(hypothesis.value, 3, tokens)
    assert all((a - b).abs().max() <= 1e-12 for a, b in zip(whole, parts, strict=True))


def test_scores_far_apart_neither_overflow_nor_vanish():
    key = tabulate_key(lambda shape, x: 1e6 * (x[0] - x[1]), 2, 2, vocab_size=2)
    value = tabulate_value(lambda x: float(x == (1, 0)), 2, vocab_size=2)
    tokens = torch.tensor([[0, 1, 0, 0], [0, 0, 1, 1]])
    # Row 1 has a (1, 0) pair, which outweighs all; in row 2 the best pairs are (0, 0) and (1, 1).
    assert SparseAttention(key, value, 2, 2)(tokens)[:, 0].tolist() == [1.0, 0.0]


def test_footnote_6_averages_over_sets_wider_than_the_locality():
    value = tabulate_value(lambda x: float(x == (1, 1)), 2, vocab_size=2)
    dead = tabulate_key(lambda shape, x: -torch.inf, 2, 1, vocab_size=2)
    tokens = torch.tensor([[1, 0, 0, 0, 1]])
    assert float(SparseAttention(dead, value, 2, 1)(tokens)) == pytest.approx(1 / 10, abs=1e-15)
    local_pairs_only = 0.0  # no neighbours (1, 1): an average over local sets alone would say this
    assert float(SparseAttention(dead, value, 2, 1)(tokens)) != local_pairs_only


def test_gradients_agree_with_the_definition_and_with_differences():
    rng = rng_for(4, "test")
    scores = torch.from_numpy(rng.normal(size=(len(local_shapes(2, 3)), 9))).requires_grad_()
    with torch.no_grad():
        scores[0, :4] = -torch.inf
    values = torch.from_numpy(rng.random((9, 1))).requires_grad_()
    tokens = random_tokens(rng, 3, 4, 12)

    def loss(evaluate: str) -> torch.Tensor:
        key, value = TableKey(scores, 2, 3, 3), TableValue(values, 2, 3)
        if evaluate == "local":
            return attend_local_sets(key, value, 2, 3, tokens).square().sum()
        return attend_all_sets(key, value, 2, tokens).square().sum()

    for_local = torch.autograd.grad(loss("local"), [scores, values])
    for_all = torch.autograd.grad(loss("all"), [scores, values])
    for a, b in zip(for_local, for_all, strict=True):
        assert torch.isfinite(a).all()
        assert (a - b).abs().max() <= 1e-10
    step = 1e-6
    before = float(loss("local").detach())
    with torch.no_grad():
        scores[2, 4] += step
    assert (float(loss("local").detach()) - before) / step == pytest.approx(float(for_local[0][2, 4]), abs=1e-5)
    assert abs(float(for_local[0][2, 4])) > 1e-4  # a gradient that is always 0 would pass otherwise


def test_gradient_flows_through_footnote_6():
    values = torch.rand(4, 1, dtype=torch.float64, requires_grad=True)
    dead = tabulate_key(lambda shape, x: -torch.inf, 2, 1, vocab_size=2)
    tokens = torch.tensor([[1, 0, 1, 1]])
    output = attend_local_sets(dead, TableValue(values, 2, 2), 2, 1, tokens)
    (gradient,) = torch.autograd.grad(output.sum(), values)
    # Pairs of 1 0 1 1: (1,0) once, (1,1) three times, (0,1) twice, (0,0) never.
    assert (gradient[:, 0] * 6).tolist() == pytest.approx([0.0, 2.0, 1.0, 3.0])


def test_time_is_linear_in_the_length_by_counting_key_evaluations():
    counted = []
    table = tabulate_key(lambda shape, x: 0.0, 2, 4, vocab_size=2)

    def key(positions: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        counted.append(positions.shape[:-1].numel())
        return table(positions, tokens)

    value = tabulate_value(lambda x: 0.5, 2, vocab_size=2)
    sizes = []
    for length in (1000, 2000):
        counted.clear()
        attend_local_sets(key, value, 2, 4, torch.zeros(1, length, dtype=torch.int64))
        sizes.append(sum(counted))
    assert sizes == [4 * 1000 - 10, 4 * 2000 - 10]  # 4 shapes a start, less those past the end
    counted.clear()
    attend_all_sets(key, value, 2, torch.zeros(1, 1000, dtype=torch.int64))
    assert sum(counted) == 1000 * 999 // 2


@pytest.mark.parametrize(("score", "name"), [(torch.nan, "NaN"), (torch.inf, r"\+inf")])
@pytest.mark.parametrize("locality", [None, 2])
def test_bad_scores_are_refused(score, name, locality):
    key = tabulate_key(lambda shape, x: score if x == (1, 1) else 0.0, 2, 2, vocab_size=2)
    hypothesis = SparseAttention(key, tabulate_value(lambda x: 0.0, 2, vocab_size=2), 2, locality)
    with pytest.raises(ValueError, match=f"key returned {name}"):
        hypothesis(torch.tensor([[0, 1, 1]]))
    assert hypothesis(torch.tensor([[0, 1, 0]])).item() == 0.0


@pytest.mark.parametrize("locality", [None, 3])
def test_more_tokens_in_a_set_than_in_the_sequence_are_refused(locality):
    hypothesis = random_attention(rng_for(5, "test"), 4, 3, 2, 0.0)
    with pytest.raises(ValueError, match="sparsity=4 is larger than the length 3"):
        SparseAttention(hypothesis.key, hypothesis.value, 4, locality)(torch.zeros(1, 3, dtype=torch.int64))


def test_limits_are_stated_before_work_begins():
    hypothesis = random_attention(rng_for(6, "test"), 2, 2, 2, 1.0)
    with pytest.raises(ValueError, match=r"4999950000 terms, above the limit of 1073741824"):
        by_definition(hypothesis, torch.zeros(1, 100_000, dtype=torch.int64))
    # Few enough terms for the time, but their list alone would not fit most machines.
    triples = random_attention(rng_for(6, "test"), 3, 2, 2, 1.0)
    with pytest.raises(ValueError, match=r"3-sets of 1800 positions takes 23,289,134,400 bytes, above the limit"):
        by_definition(triples, torch.zeros(1, 1800, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"1100\^2 token tuples, above the limit of 1048576"):
        average_over_all_sets(hypothesis.value, 2, torch.arange(1100)[None])


def test_classes_and_tables_check_their_sizes():
    with pytest.raises(ValueError, match=r"shape \(2, 4\); it must be \(3, 4\)"):
        TableKey(torch.zeros(2, 4), 2, 3, 2)
    with pytest.raises(ValueError, match="3 rows; 2 tokens in sets of 2 need 4"):
        TableValue(torch.zeros(3, 1), 2, 2)
    with pytest.raises(ValueError, match="0 keys"):
        AttentionClass({}, {}, 2)
    with pytest.raises(ValueError, match="locality=1 leaves no room for a set of 3"):
        SparseAttention(lambda s, x: x, lambda x: x, 3, 1)
    with pytest.raises(ValueError, match="sparsity=0"):
        SparseAttention(lambda s, x: x, lambda x: x, 0)


def test_local_shapes_are_those_with_a_small_width():
    expected = [s for s in combinations(range(6), 3) if s[0] == 0 and s[-1] <= 4]
    assert local_shapes(3, 4).tolist() == [list(s) for s in expected]
    assert np.prod(local_shapes(1, 4).shape) == 1


@pytest.mark.parametrize("token", [-1, 3])
def test_tokens_outside_a_tables_vocabulary_are_refused(token):
    """(0, 3) would be read as (1, 0) in a table of three tokens."""
    message = rf"^the token {token} is not in a table of 3 tokens; use 0 to 2$"
    with pytest.raises(ValueError, match=message):
        encode_tuples(torch.tensor([[0, token]]), 3)
    assert encode_tuples(torch.tensor([[0, 2], [2, 2]]), 3).tolist() == [2, 8]
