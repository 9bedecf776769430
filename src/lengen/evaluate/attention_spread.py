"""How many keys a head attends to: sparse attention stays with a few of them however many there are.

The theory (Sec. 4) has attention choose k tokens at any length. A trained softmax that puts nearly all of its weight on
a few keys at training lengths may spread over many when there are more, and then what it looks for is drowned.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from lengen.batch import sample_batch
from lengen.model.decoder import Decoder
from lengen.seeding import rng_for
from lengen.tasks.base import Task

EXAMPLES_AT_ONCE = 4  # weights are quadratic in the length


def effective_keys(weights: Float[Tensor, "... S"]) -> Float[Tensor, "..."]:
    """exp of the entropy: n keys of equal weight count as n, a key that has all of it as one."""
    return torch.special.entr(weights).sum(-1).exp()


@torch.no_grad()
def attention_spread(
    decoder: Decoder, task: Task, length: int, num_examples: int, seed: int
) -> Float[Tensor, "layers H"]:
    """Effective keys by layer and head, on average over examples and over the slots that predict a target."""
    decoder.scheme.check_test_length(task, length)
    rng = rng_for(seed, "attention", length)
    batch = sample_batch(task, decoder.scheme, rng, num_examples, length, training=False)
    num_targets = batch.input_token_ids.shape[1] - batch.first_target
    parts = []
    for first in range(0, num_examples, EXAMPLES_AT_ONCE):
        part = batch.rows(slice(first, first + EXAMPLES_AT_ONCE))
        weights: list[Tensor] = []
        decoder(part.input_token_ids, part.input_position_ids, part.first_target, weights=weights)
        spread = [effective_keys(layer[:, :, -num_targets:]).mean(-1) for layer in weights]
        parts.append(torch.stack(spread, dim=1))  # [B, layers, H]
    return torch.cat(parts).mean(0)
