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
    texts: Int[Tensor, "W L"],
    window: Window,
    subsets: Sequence[tuple[int, frozenset[int]]],
    max_batch_tokens: int,
) -> Float[Tensor, " N"]:
    """The loss for each pair of an example's index and the far tokens that it sees besides the recent ones.

    Subsets of one size share a batch, and the same subset of a window of text is computed once, for all its targets.
    """
    by_size: dict[int, list[tuple[int, frozenset[int]]]] = defaultdict(list)
    for case in dict.fromkeys((example // window.num_targets, far) for example, far in subsets):
        by_size[len(case[1])].append(case)
    position_ids = model.position_ids(window.num_inputs)
    recent = list(range(window.num_far, window.num_inputs))
    found: dict[tuple[int, frozenset[int]], list[float]] = {}
    for size, cases in by_size.items():
        room = max(1, max_batch_tokens // (size + len(recent)))
        for first in range(0, len(cases), room):
            part = cases[first : first + room]
            rows = torch.tensor([row for row, _ in part])
            visible = torch.tensor([sorted(far) + recent for _, far in part])
            logits = model.logits(texts[rows[:, None], visible], position_ids[visible], window.num_targets)
            losses = losses_of(logits, texts[rows, -window.num_targets :])
            found.update(zip(part, losses.tolist(), strict=True))
    places = [(divmod(example, window.num_targets), far) for example, far in subsets]
    return torch.tensor([found[text, far][target] for (text, target), far in places], dtype=torch.float64)
