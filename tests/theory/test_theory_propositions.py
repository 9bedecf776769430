"""Propositions 3.1 (the adversary) and 3.2 / B.1 (attention heads)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengen.seeding import rng_for
from lengen.theory.adversarial import blind_spot_class, extend_adversarially
from lengen.theory.attention import AttentionClass, SparseAttention
from lengen.theory.examples import marker_class, noisy_marker
from lengen.theory.heads import attention_from_head, distance_from_heads, head_from_attention, shared_rank
from lengen.theory.instances import random_head, random_tokens
from lengen.theory.keys import TableKey, TableValue
from lengen.theory.risk import expected_loss, length_generalization


def test_an_adversarial_extension_breaks_generalization():
    """Prop. 3.1: below L̄ nothing changes, the extension is realizable, and the minimiser loses more than ε."""
    attention_class, base = blind_spot_class(), noisy_marker(2, 0.0)
    extension = extend_adversarially(attention_class, base, vocab_size=3, max_length=6, test_length=8)
    outcome = length_generalization(attention_class, extension, 6, 8)
    epsilon = 0.9
    assert outcome.worst.value == pytest.approx(extension.disagreement)
    assert outcome.worst.value > epsilon
    assert min(loss.value for loss in outcome.minimisers.values()) == 0  # h* realizes the extension
    assert length_generalization(attention_class, base, 6, 8).worst.value == 0  # without the adversary, all is well
    for length in (3, 6):
        for hypothesis in attention_class.hypotheses().values():
            assert expected_loss(hypothesis, extension, length) == expected_loss(hypothesis, base, length)


def test_the_adversary_finds_the_worst_sequence():
    extension = extend_adversarially(blind_spot_class(), noisy_marker(2, 0.0), 3, 6, 8)
    keys = blind_spot_class().hypotheses()
    gaps = []
    for row in rng_for(0, "test").integers(3, size=(300, 8)):
        outputs = [float(h(torch.from_numpy(row[None]))) for h in keys.values()]
        gaps.append(abs(outputs[0] - outputs[1]))
    assert max(gaps) <= extension.disagreement
    assert max(gaps) > 0


def test_no_adversary_without_disagreement():
    """ĥ = h* everywhere: the proposition's condition fails, and so does its conclusion."""
    base = marker_class(2, 2)
    lone = AttentionClass({"sharp": base.keys["sharp"]}, {"parity": base.values["parity"]}, 2, 2)
    assert extend_adversarially(lone, noisy_marker(2, 0.0), 3, 6, 8).disagreement == 0


def test_the_adversary_needs_realizability_and_a_searchable_space():
    with pytest.raises(ValueError, match="no hypothesis realizes"):
        extend_adversarially(blind_spot_class(), noisy_marker(2, 0.1), 3, 6, 8)
    with pytest.raises(ValueError, match="has 14348907 sequences, above the limit of 1048576"):
        extend_adversarially(blind_spot_class(), noisy_marker(2, 0.0), 3, 8, 15)


def test_the_extension_samples_its_point_mass():
    extension = extend_adversarially(blind_spot_class(), noisy_marker(2, 0.0), 3, 6, 8)
    batch = extension.sample(8, 5, rng_for(0, "test"))
    assert (batch.sequences == extension.sequence).all()
    assert extension.sample(6, 5, rng_for(0, "test")).sequences.shape == (5, 6)
    assert extension.num_sequences(8) == 1


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4), st.integers(1, 7))
@settings(deadline=None, max_examples=60)
def test_a_head_is_sparse_attention(seed, dim, attention_dim, vocab_size):
    rng = rng_for(seed, "test")
    head = random_head(rng, dim, attention_dim, vocab_size)
    tokens = random_tokens(rng, vocab_size, 3, 6)
    assert (head(tokens) - attention_from_head(head)(tokens)).abs().max() <= 1e-10


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_sparse_attention_is_a_head_when_the_vocabulary_fits_the_embedding(seed, dim):
    """|V| ≤ d + 1 suffices: joint rank ≤ d after the free constant."""
    rng = rng_for(seed, "test")
    vocab_size = dim + 1
    scores, outputs = (
        torch.from_numpy(rng.normal(size=vocab_size)),
        torch.from_numpy(rng.normal(size=(vocab_size, dim))),
    )
    attention = SparseAttention(TableKey(scores[None], 1, 0, vocab_size), TableValue(outputs, 1, vocab_size), 1, 0)
    tokens = random_tokens(rng, vocab_size, 3, 6)
    assert (head_from_attention(scores, outputs, dim)(tokens) - attention(tokens)).abs().max() <= 1e-9


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_a_head_survives_the_round_trip(seed):
    rng = rng_for(seed, "test")
    head = random_head(rng, 3, 4, 8)
    table = attention_from_head(head)
    again = head_from_attention(table.key.scores[0], table.value.rows, attention_dim=4)
    tokens = random_tokens(rng, 8, 3, 6)
    assert (again(tokens) - head(tokens)).abs().max() <= 1e-9


def test_head_equality_can_fail():
    rng = rng_for(1, "test")
    head, other = random_head(rng, 3, 4, 5), random_head(rng, 3, 4, 5)
    tokens = random_tokens(rng, 5, 3, 6)
    assert (head(tokens) - attention_from_head(other)(tokens)).abs().max() > 0.01


def test_prop_b1_fails_as_printed_for_large_vocabularies():
    """Three tokens, d = 1: outputs 0, 1/2, 1 and scores 0, 1, 0 are those of no head, whatever h is."""
    scores, outputs = torch.tensor([0.0, 1.0, 0.0]).double(), torch.tensor([[0.0], [0.5], [1.0]]).double()
    assert shared_rank(scores, outputs)[1] == 2
    assert distance_from_heads(scores, outputs) == pytest.approx(np.sqrt(2 / 3))
    for attention_dim in (1, 5):
        with pytest.raises(ValueError, match="joint rank 2, above the embedding dimension 1"):
            head_from_attention(scores, outputs, attention_dim)
    affine = torch.tensor([3.0, 5.0, 7.0]).double()  # 3 + 4 · output: a constant, and a multiple of the outputs
    assert distance_from_heads(affine, outputs) == pytest.approx(0, abs=1e-12)
    head_from_attention(affine, outputs, 1)


def test_scores_do_not_matter_where_outputs_are_constant():
    """Any scores then, though (scores, outputs) have joint rank 2 and d = 1."""
    scores, outputs = torch.tensor([0.0, 1.0, 0.0]).double(), torch.full((3, 1), 0.5).double()
    assert shared_rank(scores, outputs)[1] == 2
    tokens = torch.tensor([[0, 1, 2], [1, 1, 0]])
    assert head_from_attention(scores, outputs, 1)(tokens).flatten().tolist() == pytest.approx([0.5, 0.5])
    outputs[0] = 0.25  # no longer constant
    outputs[2] = 0.75
    with pytest.raises(ValueError, match="joint rank 2, above the embedding dimension 1"):
        head_from_attention(scores, outputs, 1)


@pytest.mark.parametrize(("size", "offset"), [(1e10, 0.0), (1.0, 1e6), (1e-10, 0.0)])
def test_scores_and_outputs_of_unlike_size_keep_their_rank(size, offset):
    rng = rng_for(0, "test")
    scores, outputs = torch.from_numpy(size * rng.normal(size=4) + offset), torch.from_numpy(rng.normal(size=(4, 3)))
    attention = SparseAttention(TableKey(scores[None], 1, 0, 4), TableValue(outputs, 1, 4), 1, 0)
    tokens = random_tokens(rng, 4, 5, 6)
    assert (head_from_attention(scores, outputs, 3)(tokens) - attention(tokens)).abs().max() <= 1e-8
    with pytest.raises(ValueError, match="joint rank 3, above the embedding dimension 2"):
        head_from_attention(scores, outputs[:, :2], 2)


def test_a_head_needs_attention_dimensions_for_its_outputs():
    outputs = torch.eye(3).double()
    with pytest.raises(ValueError, match="attention_dim=2 is below the outputs' rank 3"):
        head_from_attention(torch.zeros(3).double(), outputs, 2)
