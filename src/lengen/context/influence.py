"""Leave-one-out influence (eq. 6): the loss of a predicted token when one far token is masked out of all attention.

Two things are shared. What stands before token j cannot change, so it is read once and its keys and values are reused.
And variants are batched: for a block of neighbouring j and several windows of text, the suffixes have one length.
Logits are computed where something is predicted.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.context.causal_model import CausalModel, losses_of
from lengen.context.window import Window

DEFAULT_MAX_BATCH_TOKENS = 2048  # on a CPU, more is not faster: it leaves the processor's cache


def leave_one_out(
    model: CausalModel,
    texts: Int[Tensor, "W L"],
    window: Window,
    max_batch_tokens: int = DEFAULT_MAX_BATCH_TOKENS,
) -> Float[Tensor, "E F"]:
    """For each example and far token: the loss without that token. Examples go by window of text, then by target."""
    at_once = max(1, max_batch_tokens // window.num_inputs)
    return torch.cat([_leave_one_out(model, part, window, max_batch_tokens) for part in torch.split(texts, at_once)])


def _leave_one_out(
    model: CausalModel, texts: Int[Tensor, "W L"], window: Window, max_batch_tokens: int
) -> Float[Tensor, "E F"]:
    """For windows of text of which one batch can read all."""
    inputs, targets = texts[:, :-1], texts[:, -window.num_targets :]
    num_texts, num_inputs = inputs.shape
    position_ids = model.position_ids(num_inputs)
    far_ids = position_ids[: window.num_far].expand(num_texts, -1)
    read = model.read(inputs[:, : window.num_far], far_ids)
    losses = torch.empty((num_texts, window.num_targets, window.num_far), dtype=torch.float64)
    start = 0
    while start < window.num_far:
        # As many neighbours as fill a batch: each more computes again what stands between the block's start and itself.
        room = max(1, max_batch_tokens // num_inputs)
        stop = min(start + max(1, room // num_texts), window.num_far)
        variants = torch.cartesian_prod(torch.arange(num_texts), torch.arange(start, stop))
        for first in range(0, len(variants), room):
            rows, omitted = variants[first : first + room].unbind(1)
            kept = _all_but(omitted - start, num_inputs - start) + start
            logits = model.logits(
                inputs[rows[:, None], kept],
                position_ids[kept],
                window.num_targets,
                read.select(rows, start) if start else None,
            )
            losses[rows, :, omitted] = losses_of(logits, targets[rows])
        start = stop
    return losses.flatten(0, 1)


def _all_but(omitted: Int[Tensor, " R"], count: int) -> Int[Tensor, "R C"]:
    """0 … count − 1 without one number, a row for each."""
    shorter = torch.arange(count - 1)
    return shorter + (shorter >= omitted[:, None])
