"""Accuracy by length: one forward pass where that equals decoding, real decoding where it does not.

Greedy decoding reproduces the whole target exactly when every teacher-forced prediction is right: tokens, and ids where
the scheme predicts them. So one pass settles every example that is right throughout. The others are decoded, and only
for the measures that can still be met after a mistake: the last token, or all tokens despite a wrong id.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from lengen.batch import Batch, sample_batch
from lengen.decode import Prompts, greedy_decode
from lengen.model.decoder import Decoder
from lengen.results.schema import Mode
from lengen.seeding import rng_for
from lengen.tasks import Task

EXAMPLES_AT_A_TIME = 64  # bounds memory; what is measured does not depend on it


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
    if mode == "decode":
        measures = decoded_verdict(decoder, batch).measures(predicts_ids)
    else:
        measures = teacher_forced_verdict(decoder, batch).measures(predicts_ids)
        strictest = "joint" if predicts_ids else "exact-tokens"
        one_pass_suffices = only == strictest or batch.target_tokens.shape[1] == 1
        failed = (~measures[strictest]).nonzero()[:, 0]
        if not one_pass_suffices and len(failed):
            after_mistakes = decoded_verdict(decoder, batch.rows(failed)).measures(predicts_ids)
            for metric, is_right in measures.items():
                is_right[failed] = after_mistakes[metric]
    return {metric: is_right for metric, is_right in measures.items() if only in (None, metric)}


@torch.no_grad()
def teacher_forced_verdict(decoder: Decoder, batch: Batch) -> Verdict:
    output = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
    token_is_right = output.token_logits.argmax(-1) == batch.target_tokens
    if output.position_logits is None:
        return Verdict(token_is_right, torch.ones_like(token_is_right))
    return Verdict(token_is_right, output.position_logits.argmax(-1) == batch.target_ids)


def decoded_verdict(decoder: Decoder, batch: Batch) -> Verdict:
    decoded = greedy_decode(decoder, Prompts.of(batch), batch.target_ids)
    return Verdict(decoded.token_ids == batch.target_tokens, decoded.position_ids == batch.target_ids)
