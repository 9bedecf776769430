"""What the analysis asks of a causal language model: logits at the last slots, after a prefix that was read before.

Masking a token out of *all* attention while keeping every position id is the same as leaving it out of the input and
giving the other tokens their ids explicitly: causality is decided by slot, nearness by id, and a token that nobody
attends to contributes nothing else. So no model here needs a mask, and a batch of variants has one length.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Prefix(NamedTuple):
    """Keys (as attention uses them) and values of tokens that have been read: one pair a layer."""

    position_ids: Int[Tensor, "B S"]
    keys: tuple[Float[Tensor, "B G S K"], ...]
    values: tuple[Float[Tensor, "B G S K"], ...]

    def select(self, rows: Int[Tensor, " R"], num_slots: int) -> "Prefix":
        """The first slots of some examples; an example may be chosen many times."""
        return Prefix(
            self.position_ids[rows, :num_slots],
            tuple(keys[rows, :, :num_slots] for keys in self.keys),
            tuple(values[rows, :, :num_slots] for values in self.values),
        )


class CausalModel(ABC):
    """An adapter around one model, in evaluation mode."""

    name: str
    vocab_size: int
    max_tokens: int | None  # what it can read at most; None: any number
    first_position_id: int

    @property
    @abstractmethod
    def module(self) -> nn.Module:
        """What holds the weights."""

    def position_ids(self, num_tokens: int) -> Int[Tensor, " T"]:
        """The ids of an undisturbed input."""
        return torch.arange(self.first_position_id, self.first_position_id + num_tokens)

    @abstractmethod
    def read(self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"]) -> Prefix:
        """What later tokens may attend to."""

    @abstractmethod
    def logits(
        self,
        token_ids: Int[Tensor, "B T"],
        position_ids: Int[Tensor, "B T"],
        num_last: int,
        prefix: Prefix | None = None,
    ) -> Float[Tensor, "B N V"]:
        """Logits for what follows each of the last tokens."""

    def last_logits(
        self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"], prefix: Prefix | None = None
    ) -> Float[Tensor, "B V"]:
        """Logits for what follows the last token."""
        return self.logits(token_ids, position_ids, 1, prefix)[:, 0]

    @abstractmethod
    def attention(
        self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"], num_last: int
    ) -> Float[Tensor, "B N T"]:
        """How much each of the last slots attends to each slot, averaged over heads and layers."""


def losses_of(logits: Float[Tensor, "*shape V"], targets: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Negative log-likelihoods, in nats; of float64 sums, since influences are small differences of them."""
    wide = logits.double()
    return wide.logsumexp(-1) - wide.gather(-1, targets[..., None])[..., 0]
