"""The bridge: sparse functional attention learned by gradient descent on short sequences works on long ones."""

import numpy as np
import pytest
import torch

from lengen.seeding import rng_for
from lengen.theory.ensembles import LabelledBatch
from lengen.theory.examples import planted_parity
from lengen.theory.learning import (
    LastTokenValue,
    MatchKey,
    QueryRetrieval,
    TrainingSetup,
    learn_planted_parity,
    learn_retrieval,
)

QUICK = TrainingSetup(max_length=24, steps=150, batch_size=64)


class CoinFlips:
    """Planted parity with labels that have nothing to do with the sequence."""

    def sample(self, length: int, n: int, rng: np.random.Generator) -> LabelledBatch:
        batch = planted_parity(2, 4).sample(length, n, rng)
        labels = rng.integers(2, size=(n, 1)).astype(np.float64)
        return LabelledBatch(batch.sequences, batch.planted, labels, batch.weights)


def test_planted_parity_learned_on_24_works_on_384():
    trained = learn_planted_parity(planted_parity(2, 4), 2, 4, QUICK)
    assert trained.training_losses[0] == pytest.approx(0.5)
    losses = trained.loss_by_length([24, 384], samples=2000)
    assert losses[24].high < 0.02
    assert losses[384].high < 0.1


def test_what_cannot_be_learned_is_not():
    trained = learn_planted_parity(CoinFlips(), 2, 4, QUICK)
    assert trained.loss_by_length([24], samples=2000)[24].low > 0.4


def test_retrieval_learned_on_24_works_on_384():
    trained = learn_retrieval(QueryRetrieval(2, 64), 3, QUICK)
    losses = trained.loss_by_length([24, 384], samples=4000)
    assert losses[24].high < 0.1
    assert losses[384].value < 0.2
    assert losses[384].value > losses[24].value  # chance repeats of the bigram: 384 / 64² of them
    scores = trained.hypothesis.key.scores.detach()
    assert int(scores.argmax()) == 3  # the first shape (three neighbours), both query tokens matched


def test_training_is_a_function_of_its_seed():
    short = TrainingSetup(max_length=16, steps=5, batch_size=8)
    first, second = (learn_planted_parity(planted_parity(2, 3), 2, 3, short) for _ in range(2))
    assert first.training_losses == second.training_losses
    other = learn_planted_parity(planted_parity(2, 3), 2, 3, TrainingSetup(16, 5, 8, seed=1))
    assert other.training_losses != first.training_losses


def test_query_retrieval_is_k_gram_retrieval_with_its_query_written_on_each_token():
    task = QueryRetrieval(2, 5)
    batch = task.sample(12, 300, rng_for(0, "test"))
    assert batch.sequences.shape == (300, 10)
    own, query = batch.sequences % 5, batch.sequences // 5
    assert (query == query[:, :1]).all()
    window = np.take_along_axis(own, batch.planted - 1, axis=1)
    assert (window[:, 0] + 5 * window[:, 1] == query[:, 0]).all()
    assert (batch.labels[:, 0] == window[:, 2] % 2).all()
    assert set((batch.planted[:, 0] - 1).tolist()) == set(range(1, 12 - 5 + 1))


def test_match_key_scores_shapes_and_matches():
    task = QueryRetrieval(2, 5)
    scores = torch.arange(12.0).reshape(3, 4)  # shapes (0,1,2), (0,1,3), (0,2,3); patterns none, second, first, both
    key = MatchKey(scores, task, locality=3)
    query = 5 * (3 + 5 * 4)  # asks for 3, 4
    tokens = torch.tensor([[3, 4, 0], [3, 0, 0], [0, 4, 0], [4, 3, 0], [3, 4, 0]]) + query
    positions = torch.tensor([[1, 2, 3], [1, 2, 4], [2, 4, 5], [7, 8, 9], [1, 2, 9]])
    assert key(positions, tokens).tolist() == [3.0, 6.0, 9.0, 0.0, -torch.inf]
    value = LastTokenValue(torch.tensor([0.0, 10.0, 0.0, 0.0, -10.0]))
    assert value(torch.tensor([[0, 0, 1 + query]])).item() > 0.99
    assert value(torch.tensor([[1, 1, 4 + query]])).item() < 0.01
