"""Remark 4.2: PoSE ids, and whether training with them removes the need for locality."""

import numpy as np
import pytest

from lengen.seeding import rng_for
from lengen.theory.attention import AttentionClass
from lengen.theory.counterexamples import ZeroWhere, without_locality
from lengen.theory.pose import pose_ids, pose_length_generalization, spread_sets_example
from lengen.theory.risk import length_generalization


def test_ids_are_the_papers():
    """Sec. 2.2, sampled as written: offsets from [L̄ − ℓ], the smaller for chunk one, the larger plus ℓ_1 for two."""
    length, test_length, draws = 3, 6, 20_000
    exact = pose_ids(length, test_length)
    law = {tuple(row): p for row, p in zip(exact.rows.tolist(), exact.probabilities, strict=True)}
    rng, counts = rng_for(0, "test"), dict.fromkeys(law, 0)
    for _ in range(draws):
        split = int(rng.integers(1, length))
        j0, j1 = rng.integers(1, test_length - length + 1, size=2)
        first = [int(min(j0, j1)) + i for i in range(split)]
        second = [int(max(j0, j1)) + split + i for i in range(length - split)]
        counts[tuple(first + second)] += 1  # a KeyError would be an id row that the enumeration misses
    assert sum(abs(counts[row] / draws - p) for row, p in law.items()) / 2 < 0.02
    assert sum(law.values()) == pytest.approx(1)


def test_ids_increase_and_stop_one_short_of_the_test_length():
    for chunks in (2, 3):
        rows = pose_ids(5, 11, chunks).rows
        assert (np.diff(rows, axis=1) > 0).all()
        assert rows.min() == 1
        assert rows.max() == 10
        assert ((np.diff(rows, axis=1) > 1).sum(axis=1)).max() == chunks - 1


def test_pose_removes_the_locality_requirement_for_pairs():
    attention_class, ensemble = spread_sets_example(sparsity=2, max_length=5)
    assert length_generalization(attention_class, ensemble, 5, 14).worst.value > 0.5
    assert pose_length_generalization(attention_class, ensemble, 5, 14).worst.value == 0


def test_pose_repairs_the_papers_own_locality_counterexample():
    example = without_locality(5)
    assert example.outcome(12).worst.value > 0.5
    assert pose_length_generalization(example.attention_class, example.ensemble, 5, 12).worst.value == 0


def test_two_chunks_do_not_suffice_for_triples_and_three_do():
    attention_class, ensemble = spread_sets_example(sparsity=3, max_length=5)
    two, three = (pose_length_generalization(attention_class, ensemble, 5, 14, chunks) for chunks in (2, 3))
    assert len(two.minimisers) == 2
    assert two.worst.value > 0.5
    assert three.worst.value == 0
    assert three.training_risks["planted or spread", "all ones"] > 0


def test_the_widest_pair_is_never_shown():
    """Ids end at L̄ − 1 in training, so a key that errs on the pair (1, L̄) alone goes unpunished."""
    base, ensemble = spread_sets_example(sparsity=2, max_length=5)
    keys = {
        "planted": base.keys["planted"],
        "planted or widest": ZeroWhere(lambda s, x: (x == 1).all(dim=-1) | (s[..., 1] - s[..., 0] == 13)),
    }
    outcome = pose_length_generalization(AttentionClass(keys, base.values, 2), ensemble, 5, 14)
    assert outcome.worst.value == pytest.approx(0.5)


def test_impossible_and_endless_ids_are_refused():
    with pytest.raises(ValueError, match="cannot split length 6 in 2 chunks with offsets up to 0"):
        pose_ids(6, 6)
    with pytest.raises(ValueError, match="cannot split length 2 in 3 chunks"):
        pose_ids(2, 9, chunks=3)
    with pytest.raises(ValueError, match="has 45000000 draws, above the limit of 1048576"):
        pose_ids(46, 1046)
