"""Cross-entropy on the targets: tokens, and position ids where the scheme predicts them."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from lengen.batch import Batch
from lengen.model.decoder import DecoderOutput


class SummedLoss(NamedTuple):
    """Summed over targets, not averaged, so that batches of several lengths add up to one mean over all targets."""

    total: Float[Tensor, ""]
    num_targets: int
    num_correct: int  # targets whose token, and id where it is predicted, are both the most likely ones


def summed_loss(output: DecoderOutput, batch: Batch, position_loss_weight: float) -> SummedLoss:
    """Token cross-entropy plus `position_loss_weight` times position cross-entropy, over target slots alone."""
    total = cross_entropy(output.token_logits.flatten(0, 1), batch.target_tokens.flatten(), reduction="sum")
    correct = output.token_logits.argmax(-1) == batch.target_tokens
    if output.position_logits is not None:
        position_loss = cross_entropy(output.position_logits.flatten(0, 1), batch.target_ids.flatten(), reduction="sum")
        total = total + position_loss_weight * position_loss
        correct &= output.position_logits.argmax(-1) == batch.target_ids
    return SummedLoss(total, correct.numel(), int(correct.sum()))
