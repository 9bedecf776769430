"""Orders in which far tokens are unmasked: by influence, and the baselines that give "sparse" its meaning."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.context.causal_model import CausalModel
from lengen.context.subsets import subset_losses
from lengen.context.window import Window
from lengen.seeding import rng_for


def by_influence(losses_without: Float[Tensor, " F"]) -> list[int]:
    """Eq. (6): the smaller the probability without a token, the more influential it is."""
    return [int(token) for token in losses_without.argsort(descending=True, stable=True)]


def at_random(num_far: int, seed: int, example: int) -> list[int]:
    return [int(token) for token in rng_for(seed, "context/random", example).permutation(num_far)]


def most_recent(num_far: int) -> list[int]:
    return list(range(num_far - 1, -1, -1))


def most_attended(
    model: CausalModel, examples: Int[Tensor, "E L"], window: Window, max_batch_tokens: int
) -> list[list[int]]:
    """By the attention of the last input slot in a pass over the whole context."""
    position_ids = model.position_ids(window.num_inputs)
    parts = torch.split(examples[:, :-1], max(1, max_batch_tokens // window.num_inputs))
    attention = torch.cat([model.last_attention(inputs, position_ids.expand(inputs.shape)) for inputs in parts])
    return attention[:, : window.num_far].argsort(dim=1, descending=True, stable=True).tolist()


def greedily(
    model: CausalModel, example: Int[Tensor, " L"], window: Window, num_tokens: int, max_batch_tokens: int
) -> list[int]:
    """Forward selection: each time the far token that lowers the loss most together with those chosen before."""
    chosen: list[int] = []
    for _ in range(num_tokens):
        candidates = [token for token in range(window.num_far) if token not in chosen]
        subsets = [(0, frozenset([*chosen, token])) for token in candidates]
        losses = subset_losses(model, example[None], window, subsets, max_batch_tokens)
        chosen.append(candidates[int(losses.argmin())])
    return chosen


def curve_points(num_far: int, num_influential: int, every_point: bool) -> tuple[int, ...]:
    """How many far tokens to unmask along a curve: all numbers, or some that a logarithmic axis shows evenly."""
    if every_point:
        return tuple(range(num_far + 1))
    steps = [0, *(digit * 10**power for power in range(len(str(num_far))) for digit in (1, 2, 5))]
    return tuple(sorted({step for step in steps if step < num_far} | {num_influential, num_far}))
