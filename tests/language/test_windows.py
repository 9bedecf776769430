"""Windows are shuffled without being stored, each once an epoch; ids of packed batches are PoSE's."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from lengen.language.presets import language_preset
from lengen.language.training import training_batch
from lengen.language.windows import check_size, num_windows, permuted, training_windows
from lengen.seeding import rng_for


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 1000, 4097])
def test_a_permutation_hits_everything_once(size):
    image = permuted(np.arange(size), size, rng_for(0, "windows"))
    assert sorted(image.tolist()) == list(range(size))


def test_it_shuffles_and_follows_the_seed():
    first, second = (permuted(np.arange(1000), 1000, rng_for(seed, "windows")) for seed in (0, 1))
    assert not np.array_equal(first, second)
    for image in (first, second):
        assert abs(np.corrcoef(image, np.arange(1000))[0, 1]) < 0.15  # sorted would have 1
        assert (np.diff(image) == 1).mean() < 0.02


def test_a_part_of_the_indices_is_enough():
    whole = permuted(np.arange(777), 777, rng_for(3, "windows"))
    assert np.array_equal(permuted(np.array([5, 700]), 777, rng_for(3, "windows")), whole[[5, 700]])


def test_an_epoch_shows_every_window_once(corpus):
    tokens, context, batch_size = corpus.split("train"), 16, 8
    total = num_windows(len(tokens.tokens), context)
    steps = total // batch_size
    seen = np.concatenate([training_windows(tokens, context, batch_size, 0, step) for step in range(steps)])
    offset = int(rng_for(0, "windows", 0).integers(context))
    stream = np.asarray(tokens.tokens)
    cut = {tuple(stream[offset + context * i : offset + context * i + context + 1].tolist()) for i in range(total)}
    shown = [tuple(window) for window in seen.tolist()]
    assert set(shown) <= cut
    assert len(set(shown)) >= len(cut) - batch_size - (total - len(cut))  # all but the last, unfinished batch
    later = np.concatenate([training_windows(tokens, context, batch_size, 0, steps + step) for step in range(steps)])
    assert not np.array_equal(seen, later)  # the next epoch has another order


def test_windows_are_a_pure_function_of_seed_and_step(corpus):
    tokens = corpus.split("train")
    first, again = (training_windows(tokens, 16, 4, 0, 7) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, training_windows(tokens, 16, 4, 1, 7))
    assert not np.array_equal(first, training_windows(tokens, 16, 4, 0, 8))


def test_too_small_a_corpus_is_named(corpus):
    with pytest.raises(ValueError, match="too few for one window of 1000000"):
        check_size(corpus.split("train"), 1_000_000)


def is_pose(ids: list[int], max_id: int) -> bool:
    """Two runs of consecutive ids, the second not below where the first would have gone on, all below max_id."""
    jumps = [b - a for a, b in pairwise(ids) if b - a != 1]
    return len(jumps) <= 1 and all(jump > 1 for jump in jumps) and ids[0] >= 1 and ids[-1] < max_id


def test_ids_of_packed_batches_are_those_of_pose(corpus):
    config = language_preset("short", "smoke", corpus.stamp)
    before = training_batch(config, corpus.split("train"), config.first_steps - 1)
    after = training_batch(config, corpus.split("train"), config.first_steps)
    assert before.input_position_ids.tolist() == [list(range(1, 65))] * config.batch_size
    rows = after.input_position_ids.tolist()
    assert all(is_pose(row, 128) for row in rows)
    assert len({tuple(row) for row in rows}) > 1
    assert any(max(np.diff(row)) > 1 for row in rows)
    assert torch.equal(after.target_tokens, after.token_ids[:, 1:])
    assert after.first_target == 0


def test_the_check_of_pose_can_fail():
    assert is_pose([1, 2, 7, 8], 9)
    assert not is_pose([1, 2, 7, 8], 8)  # beyond the largest id
    assert not is_pose([1, 3, 5, 6], 9)  # three chunks
    assert not is_pose([4, 5, 1, 2], 9)  # backwards


def test_the_long_model_sees_the_same_tokens_in_half_as_many_windows(corpus):
    short, long = (language_preset(name, "cpu", corpus.stamp) for name in ("short", "long"))
    assert (short.context, long.context) == (64, 128)
    assert short.steps * short.batch_size * short.context == long.steps * long.batch_size * long.context
