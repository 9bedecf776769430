"""Windows of text as batches, the loss of their tokens, and what the loss of random ones tells."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from lengen.batch import Batch
from lengen.model.decoder import Decoder
from lengen.positions.scheme import Scheme
from lengen.seeding import rng_for
from lengen.tasks.base import Examples

TOKENS_AT_A_TIME = 8192  # bounds memory; what is measured does not depend on it
NUM_REPEATED = 16  # sequences of random tokens


def text_batch(windows: Int[np.ndarray, "B T"], scheme: Scheme, rng: np.random.Generator, training: bool) -> Batch:
    """Windows as a batch: every token but the first is a target, and ids belong to the inputs, all but the last."""
    inputs = windows[:, :-1]
    ids = scheme.assigner(Examples(inputs, inputs, 1, inputs.shape[1]), rng, training)
    ids = np.concatenate([ids, ids[:, -1:] + 1], axis=1)  # the last token is never read; its id is only a place
    return Batch(torch.from_numpy(windows), torch.from_numpy(ids), prompt_len=1)


@torch.no_grad()
def token_losses(
    decoder: Decoder, windows: Int[np.ndarray, "n window"], num_targets: int
) -> Float[Tensor, "n targets"]:
    """The loss of the last `num_targets` tokens of each window, ids as at test."""
    device = decoder.token_head.weight.device
    at_a_time = max(1, TOKENS_AT_A_TIME // windows.shape[1])
    losses = []
    for start in range(0, len(windows), at_a_time):
        part = windows[start : start + at_a_time]
        batch = text_batch(part, decoder.scheme, rng_for(0, "evaluate-text"), training=False).to(device)
        first = batch.input_token_ids.shape[1] - num_targets
        logits = decoder(batch.input_token_ids, batch.input_position_ids, first).token_logits
        targets = batch.target_tokens[:, -num_targets:]
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        losses.append(loss.view(targets.shape).cpu())
    return torch.cat(losses)


def copying_gain(decoder: Decoder, context: int) -> float:
    """By how many nats random tokens are predicted better the second time, half a context later: about 0 if not copied.

    Nothing but their first time tells what comes, so a model that gains has heads that copy (Olsson et al., 2022). Much
    of what far tokens give goes to words that come back (docs/exploration.md).
    """
    half = max(context // 2, 2)  # a token that is repeated needs one before it
    vocab_size = decoder.token_head.weight.shape[0]
    once = rng_for(0, "copying").integers(vocab_size, size=(NUM_REPEATED, half))
    losses = token_losses(decoder, np.concatenate([once, once], axis=1), 2 * half - 1).double()
    # The first token of the second half is left out: nothing tells that a repetition begins.
    return float(losses[:, : half - 1].mean() - losses[:, half:].mean())
