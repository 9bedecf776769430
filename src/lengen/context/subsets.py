"""The loss when only some of the far tokens are visible: L_short, L_long and L_short,sparse are three such subsets."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.context.causal_model import CausalModel, losses_of
from lengen.context.window import Window


def subset_losses(
    model: CausalModel,
    examples: Int[Tensor, "E L"],
    window: Window,
    subsets: Sequence[tuple[int, frozenset[int]]],
    max_batch_tokens: int,
) -> Float[Tensor, " N"]:
    """The loss for each pair of an example's index and the far tokens that it sees besides the recent ones.

    Subsets of one size share a batch, and the same subset is computed once.
    """
    by_size: dict[int, list[tuple[int, frozenset[int]]]] = defaultdict(list)
    for case in dict.fromkeys(subsets):
        by_size[len(case[1])].append(case)
    position_ids = model.position_ids(window.num_inputs)
    recent = list(range(window.num_far, window.num_inputs))
    found: dict[tuple[int, frozenset[int]], float] = {}
    for size, cases in by_size.items():
        room = max(1, max_batch_tokens // (size + window.short))
        for first in range(0, len(cases), room):
            part = cases[first : first + room]
            rows = torch.tensor([row for row, _ in part])
            visible = torch.tensor([sorted(far) + recent for _, far in part])
            logits = model.last_logits(examples[rows[:, None], visible], position_ids[visible])
            found.update(zip(part, losses_of(logits, examples[rows, -1]).tolist(), strict=True))
    return torch.tensor([found[case] for case in subsets], dtype=torch.float64)
