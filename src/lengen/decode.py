"""Batched greedy decoding: the predicted token, and where the scheme predicts it the predicted id, are fed back."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import pad

from lengen.batch import Batch
from lengen.model.cache import KVCache
from lengen.model.decoder import Decoder, DecoderOutput
from lengen.model.folded import PAYS_UP_TO_WIDTH, FoldedDecoder


class Prompts(NamedTuple):
    """Prompts of different lengths, padded on the right; what stands in the padding does not matter."""

    token_ids: Int[Tensor, "B P"]
    position_ids: Int[Tensor, "B P"]
    lens: Int[Tensor, " B"]

    @classmethod
    def of(cls, batch: Batch) -> "Prompts":
        return cls(
            batch.token_ids[:, : batch.prompt_len],
            batch.position_ids[:, : batch.prompt_len],
            torch.full((len(batch.token_ids),), batch.prompt_len, device=batch.token_ids.device),
        )


class Decoded(NamedTuple):
    token_ids: Int[Tensor, "B N"]
    position_ids: Int[Tensor, "B N"]


def greedy_decode(decoder: Decoder, prompts: Prompts, given_ids: Int[Tensor, "B N"], use_cache: bool = True) -> Decoded:
    """N tokens after each prompt. `given_ids` are fed as their ids, unless the scheme predicts ids of its own.

    An example's slots are its own: the first new token of each stands right behind its prompt. Causality by slot hides
    the padding of shorter prompts, so examples of any lengths decode side by side.
    """
    with torch.inference_mode():  # a tenth faster than no_grad: a step is many small operations
        decoded = _decode(decoder, prompts, given_ids, use_cache)
    return Decoded(decoded.token_ids.clone(), decoded.position_ids.clone())  # tensors that autograd may meet again


def _decode(decoder: Decoder, prompts: Prompts, given_ids: Int[Tensor, "B N"], use_cache: bool) -> Decoded:
    batch_size, num_new = given_ids.shape
    num_slots = prompts.token_ids.shape[1] + num_new
    rows = torch.arange(batch_size, device=given_ids.device)
    token_ids = pad(prompts.token_ids, (0, num_new))
    position_ids = pad(prompts.position_ids, (0, num_new))
    cache = None
    read_one_token: Decoder | FoldedDecoder = decoder
    if use_cache:
        cache = KVCache(decoder.config, batch_size, num_slots, like=next(decoder.parameters()))
        # A model sliced over many processes stays as it is: its weights come together only while it is called.
        is_sliced = type(decoder.token_head.weight) is not nn.Parameter
        if num_new > 1 and decoder.config.width <= PAYS_UP_TO_WIDTH and not is_sliced:
            read_one_token = FoldedDecoder(decoder)

    new_tokens = torch.zeros_like(given_ids)
    new_ids = given_ids.clone()
    for step in range(num_new):
        slot = prompts.lens + step  # [B]: where this step's token goes
        if cache is not None and step > 0:
            newest = slice(step - 1, step)
            output = read_one_token(new_tokens[:, newest], new_ids[:, newest], slots=slot[:, None] - 1, cache=cache)
        else:
            output = _read_from_the_start(decoder, token_ids, position_ids, slot, cache)
        new_tokens[:, step] = output.token_logits[:, 0].argmax(-1)
        if output.position_logits is not None:
            new_ids[:, step] = output.position_logits[:, 0].argmax(-1)
        if cache is None:
            token_ids[rows, slot] = new_tokens[:, step]
            position_ids[rows, slot] = new_ids[:, step]
    return Decoded(new_tokens, new_ids)


def _read_from_the_start(
    decoder: Decoder, token_ids: Tensor, position_ids: Tensor, slot: Tensor, cache: KVCache | None
) -> DecoderOutput:
    """The logits for each example's `slot`, that is, the output at the slot before it: shapes [B, 1, …]."""
    rows = torch.arange(len(slot), device=slot.device)[:, None]
    last = (slot - 1)[:, None]
    first_target, num_read = int(last.min()), int(slot.max())
    slots = None if cache is None else torch.arange(num_read, device=slot.device).expand(len(slot), num_read)
    output = decoder(token_ids[:, :num_read], position_ids[:, :num_read], first_target, slots, cache)
    return DecoderOutput(*(None if logits is None else logits[rows, last - first_target] for logits in output))  # type: ignore[arg-type]
