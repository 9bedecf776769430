"""Accuracy by length: one forward pass where that equals decoding, real decoding where it does not.

Greedy decoding reproduces the whole target exactly when every teacher-forced prediction is right: tokens, and ids where
the scheme predicts them. So one pass settles every example that is right throughout. The others are decoded, and only
for the measures that can still be met after a mistake: the last token, or all tokens despite a wrong id. Where none of
these is asked for, an example is not read on after its first mistake.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lengen.batch import Batch, sample_batch
from lengen.decode import Prompts, greedy_decode
from lengen.model.cache import KVCache
from lengen.model.decoder import Decoder, DecoderOutput
from lengen.results.schema import Mode
from lengen.seeding import rng_for
from lengen.tasks import Task

EXAMPLES_AT_A_TIME = 64  # bounds memory; what is measured does not depend on it
# A model that fails mostly fails early, and then most of the reading is spared. One that does not pays for two short
# passes more.
READ_BEFORE_LOOKING = (1 / 16, 1 / 4, 1)  # shares of the targets


class Measurement(NamedTuple):
    length: int
    metric: str
    correct: int
    total: int


class Verdict(NamedTuple):
    """For each example and target: is the token right, is the id right? (Ids that are given count as right.)"""

    token_is_right: Bool[Tensor, "B N"]
    id_is_right: Bool[Tensor, "B N"]

    def measures(self, predicts_ids: bool) -> dict[str, Bool[Tensor, " B"]]:
        exact_tokens = self.token_is_right.all(1)
        measures = {"last-token": self.token_is_right[:, -1], "exact-tokens": exact_tokens}
        return measures | {"joint": exact_tokens & self.id_is_right.all(1)} if predicts_ids else measures


def length_curve(
    decoder: Decoder,
    task: Task,
    lengths: Sequence[int],
    num_examples: int,
    seed: int,
    mode: Mode = "one-pass",
    only: str | None = None,
) -> Iterator[Measurement]:
    """Measure each length in turn; `only` names a single measure and spares the decoding that others need."""
    possible = ("last-token", "exact-tokens", *(("joint",) if decoder.scheme.assigner.predicts_ids else ()))
    if only is not None and only not in possible:
        raise ValueError(f"{only!r} is no measure of this decoder; use one of: {', '.join(possible)}")
    device = decoder.token_head.weight.device
    for length in lengths:
        task.check_length(length)
        decoder.scheme.check_test_length(task, length)
    for length in lengths:
        examples = sample_batch(task, decoder.scheme, rng_for(seed, "evaluate", length), num_examples, length, False)
        counts: dict[str, int] = {}
        for start in range(0, num_examples, EXAMPLES_AT_A_TIME):
            batch = examples.rows(slice(start, start + EXAMPLES_AT_A_TIME)).to(device)
            for metric, is_right in _measure(decoder, batch, mode, only).items():
                counts[metric] = counts.get(metric, 0) + int(is_right.sum())
        for metric, correct in counts.items():
            yield Measurement(length, metric, correct, num_examples)


def _measure(decoder: Decoder, batch: Batch, mode: Mode, only: str | None) -> dict[str, Bool[Tensor, " B"]]:
    predicts_ids = decoder.scheme.assigner.predicts_ids
    strictest = "joint" if predicts_ids else "exact-tokens"
    if mode == "decode":
        measures = decoded_verdict(decoder, batch).measures(predicts_ids)
    elif only == strictest:
        measures = {strictest: right_throughout(decoder, batch)}
    else:
        measures = teacher_forced_verdict(decoder, batch).measures(predicts_ids)
        failed = (~measures[strictest]).nonzero()[:, 0]
        if batch.target_tokens.shape[1] > 1 and len(failed):
            after_mistakes = decoded_verdict(decoder, batch.rows(failed)).measures(predicts_ids)
            for metric, is_right in measures.items():
                is_right[failed] = after_mistakes[metric]
    return {metric: is_right for metric, is_right in measures.items() if only in (None, metric)}


@torch.no_grad()
def teacher_forced_verdict(decoder: Decoder, batch: Batch) -> Verdict:
    output = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
    return _compare(output, batch.target_tokens, batch.target_ids)


@torch.inference_mode()
def right_throughout(decoder: Decoder, batch: Batch) -> Bool[Tensor, " B"]:
    """Which examples have every teacher-forced prediction right: one pass, in parts, over those still right so far."""
    num_examples, num_targets = batch.target_tokens.shape
    right_so_far = torch.arange(num_examples, device=batch.token_ids.device)
    num_slots = batch.input_token_ids.shape[1]
    cache = KVCache(decoder.config, num_examples, num_slots, like=next(decoder.parameters()))
    start, first_new = 0, 0  # the next slot to read, the next target to look at
    for end_share in READ_BEFORE_LOOKING:
        end_target = math.ceil(end_share * num_targets)
        if end_target == first_new or not len(right_so_far):
            continue
        end = batch.first_target + end_target
        slots = torch.arange(start, end, device=right_so_far.device).expand(len(right_so_far), end - start)
        output = decoder(
            batch.input_token_ids[right_so_far, start:end],
            batch.input_position_ids[right_so_far, start:end],
            batch.first_target + first_new - start,
            slots,
            cache,
        )
        new = slice(first_new, end_target)
        verdict = _compare(output, batch.target_tokens[right_so_far, new], batch.target_ids[right_so_far, new])
        still_right = (verdict.token_is_right & verdict.id_is_right).all(1)
        right_so_far = right_so_far[still_right]
        cache.keep(still_right)
        start, first_new = end, end_target
    is_right = torch.zeros(num_examples, dtype=torch.bool, device=right_so_far.device)
    is_right[right_so_far] = True
    return is_right.clone()


def _compare(output: DecoderOutput, target_tokens: Int[Tensor, "B N"], target_ids: Int[Tensor, "B N"]) -> Verdict:
    token_is_right = output.token_logits.argmax(-1) == target_tokens
    if output.position_logits is None:
        return Verdict(token_is_right, torch.ones_like(token_is_right))
    return Verdict(token_is_right, output.position_logits.argmax(-1) == target_ids)


def decoded_verdict(decoder: Decoder, batch: Batch) -> Verdict:
    decoded = greedy_decode(decoder, Prompts.of(batch), batch.target_ids)
    return Verdict(decoded.token_ids == batch.target_tokens, decoded.position_ids == batch.target_ids)
