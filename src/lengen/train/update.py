"""One update of the weights, alone or among many processes."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from lengen.batch import Batch
from lengen.loss import summed_loss
from lengen.model.decoder import Decoder, DecoderOutput
from lengen.stopped import Failed
from lengen.train.distributed import ALONE, Processes
from lengen.train.settings import Settings

Forward = Callable[..., DecoderOutput]


class NonFiniteLoss(Failed):
    """The loss or its gradient is infinite or not a number; the last checkpoint is untouched."""


def training_step(
    forward: Forward,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    learning_rate: float,
    config: Settings,
    processes: Processes = ALONE,
) -> tuple[float, float]:
    """One update; returns the mean loss over all targets and the share of targets predicted right before it.

    `batches` is the whole step; each process computes its share of it.
    """
    num_targets = sum(batch.target_tokens.numel() for batch in batches)
    optimizer.zero_grad(set_to_none=True)
    loss, num_correct = 0.0, 0.0
    for batch in batches:
        batch = processes.slice(batch).to(processes.device)
        with torch.autocast(batch.token_ids.device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16"):
            output = forward(batch.input_token_ids, batch.input_position_ids, batch.first_target)
            summed = summed_loss(output, batch, config.position_loss_weight)
        mean = summed.total / num_targets  # every target weighs the same, whatever its group and its process
        # The engines average gradients over processes; what is wanted is their sum.
        (mean * processes.size).backward()  # type: ignore[no-untyped-call]
        loss += mean.item()
        num_correct += summed.num_correct
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    norm = processes.whole(nn.utils.clip_grad_norm_(parameters, config.clip_norm))
    loss, num_correct = processes.sum(loss, num_correct)
    if not np.isfinite(loss) or not torch.isfinite(norm):
        raise NonFiniteLoss(
            f"the loss became {loss} with gradient norm {norm.item()}; the last checkpoint is kept: lower "
            f"--learning-rate (now {config.learning_rate:g}) or raise --warmup-steps (now {config.warmup_steps})"
        )
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return loss, num_correct / num_targets


def build_optimizer(decoder: Decoder, weight_decay: float) -> torch.optim.AdamW:
    matrices = [parameter for parameter in decoder.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in decoder.parameters() if parameter.ndim < 2]  # biases, norms, scalars
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, fused=True)
