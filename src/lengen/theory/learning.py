"""The bridge to practice: k-sparse functional attention whose key and value are learned by gradient descent.

Training sees lengths in [L/2, L] only; `TrainedAttention.loss_by_length` then measures far longer ones.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.seeding import rng_for
from lengen.theory.attention import SparseAttention
from lengen.theory.ensembles import LabelledBatch, Sampler
from lengen.theory.keys import ShapeLookup, TableKey, encode_tuples, local_shapes
from lengen.theory.risk import Estimate, estimate_loss


@dataclass(frozen=True)
class QueryRetrieval:
    """k-gram retrieval (Sec. 3.1) as a head with a query sees it: each token carries the k-gram that is asked for.

    The last k tokens are the query q; the sequence is the tokens before it, each written as (x, q). Then the planted
    set is k + 1 neighbours, and local, as a head whose query vector comes from the last tokens has it (footnote 4).
    The label is the lowest bit of the token after the matching k-gram.
    """

    gram: int
    vocab_size: int

    def sample(self, length: int, n: int, rng: np.random.Generator) -> LabelledBatch:
        sequences = rng.integers(self.vocab_size, size=(n, length - self.gram))
        firsts = rng.integers(1, length - 2 * self.gram, size=n)  # the paper's ℓ' in [ℓ − 2k − 1]
        planted = firsts[:, None] + np.arange(1, self.gram + 2)
        window = np.take_along_axis(sequences, planted - 1, axis=1)
        query = window[:, : self.gram] @ self.vocab_size ** np.arange(self.gram)
        annotated = sequences + self.vocab_size * query[:, None]
        return LabelledBatch(annotated, planted, (window[:, -1:] % 2).astype(np.float64), np.full(n, 1 / n))


@dataclass(frozen=True, eq=False)
class MatchKey:
    """A key for `QueryRetrieval`: one learned score for each shape and each pattern of matches with the query."""

    scores: Float[Tensor, "n patterns"]
    task: QueryRetrieval
    locality: int

    @cached_property
    def _lookup(self) -> ShapeLookup:
        return ShapeLookup(self.task.gram + 1, self.locality)

    def __call__(self, positions: Int[Tensor, "*N k"], tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N"]:
        pattern = torch.zeros(tokens.shape[:-1], dtype=torch.int64)
        own, query = tokens % self.task.vocab_size, tokens[..., 0] // self.task.vocab_size
        for place in range(self.task.gram):
            asked = query // self.task.vocab_size**place % self.task.vocab_size
            pattern = 2 * pattern + (own[..., place] == asked)
        rows = self._lookup(positions)
        return torch.where(rows < 0, -torch.inf, self.scores[rows.clamp(min=0), pattern])


@dataclass(frozen=True, eq=False)
class LastTokenValue:
    """A learned label for the last token of a set, whatever the query."""

    logits: Float[Tensor, " V"]

    def __call__(self, tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N d"]:
        return torch.sigmoid(self.logits[tokens[..., -1] % len(self.logits)])[..., None]


@dataclass(frozen=True, eq=False)
class LogitTableValue:
    """A learned label for each token tuple."""

    logits: Float[Tensor, " tuples"]
    vocab_size: int

    def __call__(self, tokens: Int[Tensor, "*N k"]) -> Float[Tensor, "*N d"]:
        return torch.sigmoid(self.logits[encode_tuples(tokens, self.vocab_size)])[..., None]


@dataclass(frozen=True)
class TrainingSetup:
    """Adam on the loss of eq. (3), a fresh batch of one length each step. The defaults need under a minute a run."""

    max_length: int = 64
    steps: int = 400
    batch_size: int = 128
    learning_rate: float = 0.1
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TrainedAttention:
    """A learned hypothesis, and where it came from."""

    hypothesis: SparseAttention
    task: Sampler
    setup: TrainingSetup
    training_losses: list[float]

    def loss_by_length(self, lengths: list[int], samples: int) -> dict[int, Estimate]:
        """The loss at each length from fresh samples; `samples` shrink with the length, so that each costs alike."""
        losses = {}
        for length in lengths:
            n = max(512, samples * self.setup.max_length // max(length, self.setup.max_length))
            rng = rng_for(self.setup.seed, "theory/evaluate", length)
            losses[length] = estimate_loss(self.hypothesis, self.task, length, n, rng)
        return losses


def learn_planted_parity(task: Sampler, sparsity: int, locality: int, setup: TrainingSetup) -> TrainedAttention:
    """Learn full tables of keys (shape × tuple) and values (tuple) for `examples.planted_parity`'s four tokens."""
    vocab_size = 4
    scores = torch.zeros(len(local_shapes(sparsity, locality)), vocab_size**sparsity, requires_grad=True)
    logits = torch.zeros(vocab_size**sparsity, requires_grad=True)
    key = TableKey(scores, sparsity, locality, vocab_size)
    hypothesis = SparseAttention(key, LogitTableValue(logits, vocab_size), sparsity, locality)
    return _train(hypothesis, [scores, logits], task, setup)


def learn_retrieval(task: QueryRetrieval, locality: int, setup: TrainingSetup) -> TrainedAttention:
    """Learn which shape and pattern of matches to attend to, and every token's label."""
    sparsity = task.gram + 1
    scores = torch.zeros(len(local_shapes(sparsity, locality)), 2**task.gram, requires_grad=True)
    logits = torch.zeros(task.vocab_size, requires_grad=True)
    hypothesis = SparseAttention(MatchKey(scores, task, locality), LastTokenValue(logits), sparsity, locality)
    return _train(hypothesis, [scores, logits], task, setup)


def _train(
    hypothesis: SparseAttention, parameters: list[Tensor], task: Sampler, setup: TrainingSetup
) -> TrainedAttention:
    optimizer = torch.optim.Adam(parameters, lr=setup.learning_rate)
    losses = []
    for step in range(setup.steps):
        rng = rng_for(setup.seed, "theory/train", step)
        length = int(rng.integers(setup.max_length // 2, setup.max_length + 1))
        batch = task.sample(length, setup.batch_size, rng)
        outputs = hypothesis(torch.from_numpy(batch.sequences))
        loss = (outputs - torch.from_numpy(batch.labels).to(outputs.dtype)).abs().amax(dim=1).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(float(loss.detach()))
    return TrainedAttention(hypothesis, task, setup, losses)
