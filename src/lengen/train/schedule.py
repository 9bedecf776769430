"""The learning rate of each step: linear warm-up, then linear or cosine decay to zero."""

import math
from typing import Literal


def learning_rate_at(
    step: int, peak: float, warmup_steps: int, num_steps: int, schedule: Literal["linear", "cosine"]
) -> float:
    """Step 0 is the first; the peak comes as the warm-up ends, and zero would come one step after the last."""
    if step < warmup_steps:
        return peak * (step + 1) / (warmup_steps + 1)
    progress = (step - warmup_steps) / max(num_steps - warmup_steps, 1)
    if schedule == "linear":
        return peak * (1 - progress)
    return peak * (1 + math.cos(math.pi * progress)) / 2
