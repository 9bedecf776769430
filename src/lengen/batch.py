"""From a task and a scheme to the tensors a decoder takes."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lengen.positions.scheme import Scheme
from lengen.tasks.base import Task


class Batch(NamedTuple):
    """Examples of one length. The decoder reads all slots but the last and predicts those from `prompt_len` on."""

    token_ids: Int[Tensor, "B T"]
    position_ids: Int[Tensor, "B T"]
    prompt_len: int

    @property
    def input_token_ids(self) -> Int[Tensor, "B I"]:
        return self.token_ids[:, :-1]

    @property
    def input_position_ids(self) -> Int[Tensor, "B I"]:
        return self.position_ids[:, :-1]

    @property
    def first_target(self) -> int:
        """Where, among the inputs, the first target is predicted: at the last token of the prompt."""
        return self.prompt_len - 1

    @property
    def target_tokens(self) -> Int[Tensor, "B N"]:
        return self.token_ids[:, self.prompt_len :]

    @property
    def target_ids(self) -> Int[Tensor, "B N"]:
        return self.position_ids[:, self.prompt_len :]

    def to(self, device: torch.device | str) -> "Batch":
        return Batch(self.token_ids.to(device), self.position_ids.to(device), self.prompt_len)

    def rows(self, which: slice | Tensor) -> "Batch":
        """Some of the examples."""
        return Batch(self.token_ids[which], self.position_ids[which], self.prompt_len)


def sample_batch(
    task: Task, scheme: Scheme, rng: np.random.Generator, batch_size: int, length: int, training: bool
) -> Batch:
    examples = task.sample(rng, batch_size, length)
    position_ids = scheme.assigner(examples, rng, training)
    return Batch(torch.from_numpy(examples.tokens), torch.from_numpy(position_ids), examples.prompt_len)
