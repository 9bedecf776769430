"""Orders in which far tokens are unmasked: by influence, and the baselines that give "sparse" its meaning."""

from typing import Literal

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


def at_random(num_far: int, seed: int, text: int) -> list[int]:
    """One order for each window of text."""
    return [int(token) for token in rng_for(seed, "context/random", text).permutation(num_far)]


def most_recent(num_far: int) -> list[int]:
    return list(range(num_far - 1, -1, -1))


def most_attended(
    model: CausalModel, texts: Int[Tensor, "W L"], window: Window, max_batch_tokens: int
) -> list[list[int]]:
    """For each example, by the attention of the slot that predicts, in a pass over the whole context."""
    position_ids = model.position_ids(window.num_inputs)
    parts = torch.split(texts[:, :-1], max(1, max_batch_tokens // window.num_inputs))
    attention = torch.cat(
        [model.attention(inputs, position_ids.expand(inputs.shape), window.num_targets) for inputs in parts]
    ).flatten(0, 1)
    return attention[:, : window.num_far].argsort(dim=1, descending=True, stable=True).tolist()


def greedily(
    model: CausalModel,
    texts: Int[Tensor, "W L"],
    example: int,
    window: Window,
    num_tokens: int,
    max_batch_tokens: int,
) -> list[int]:
    """Forward selection: each time the far token that lowers the loss most together with those chosen before."""
    chosen: list[int] = []
    for _ in range(num_tokens):
        candidates = [token for token in range(window.num_far) if token not in chosen]
        subsets = [(example, frozenset([*chosen, token])) for token in candidates]
        losses = subset_losses(model, texts, window, subsets, max_batch_tokens)
        chosen.append(candidates[int(losses.argmin())])
    return chosen


def curve_points(num_far: int, num_influential: int, curve: Literal["some", "full", "none"]) -> tuple[int, ...]:
    """How many far tokens to unmask along a curve: numbers that a logarithmic axis shows evenly, all, or only k."""
    if curve == "full":
        return tuple(range(num_far + 1))
    steps = [digit * 10**power for power in range(len(str(num_far))) for digit in (1, 2, 5)] if curve == "some" else []
    return tuple(sorted({step for step in steps if step < num_far} | {0, num_influential, num_far}))
