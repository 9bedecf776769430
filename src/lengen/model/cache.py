"""A key-value cache with one row a slot, whatever the position ids are."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengen.model.config import ModelConfig


class KVCache:
    """Keys (already rotated), values and ids of every slot written so far.

    Each example writes at slots of its own. Slots beyond an example's newest hold leftovers of right padding; no query
    can see them, because causality is decided by slot, and they are overwritten as the example grows.
    """

    def __init__(self, config: ModelConfig, batch_size: int, num_slots: int, like: Tensor) -> None:
        shape = (batch_size, config.num_heads, num_slots, config.head_size)
        # Plain tensors even if `like` is a slice of a weight that many processes share.
        self.keys = [torch.zeros(shape, dtype=like.dtype, device=like.device) for _ in range(config.num_layers)]
        self.values = [torch.zeros(shape, dtype=like.dtype, device=like.device) for _ in range(config.num_layers)]
        self.ids = torch.zeros((batch_size, num_slots), dtype=torch.int64, device=like.device)
        self._rows = torch.arange(batch_size, device=like.device)[:, None]

    def keep(self, examples: Bool[Tensor, " B"]) -> None:
        """Forget all other examples."""
        if not examples.all():
            self.keys = [store[examples] for store in self.keys]
            self.values = [store[examples] for store in self.values]
            self.ids = self.ids[examples]
            self._rows = self._rows[: len(self.ids)]

    def write_ids(self, slots: "Slots", ids: Int[Tensor, "B T"]) -> Int[Tensor, "B S"]:
        """Store the ids of these slots; return those of all slots up to the newest of any example."""
        if slots.shared_start is not None:
            self.ids[:, slots.shared_start : slots.num_used] = ids
        else:
            self.ids[self._rows, slots.of_token] = ids
        return self.ids[:, : slots.num_used]

    def write(
        self, layer: int, slots: "Slots", keys: Float[Tensor, "B H T K"], values: Float[Tensor, "B H T K"]
    ) -> Iterator[Float[Tensor, "B H S K"]]:
        """Store keys and values at their slots; yield all keys, then all values, up to the newest slot."""
        for store, new in ((self.keys[layer], keys), (self.values[layer], values)):
            if slots.shared_start is not None:
                store[:, :, slots.shared_start : slots.num_used] = new
            else:
                store[self._rows, :, slots.of_token] = new.transpose(1, 2)
            yield store[:, :, : slots.num_used]


class Slots(NamedTuple):
    """Where new tokens stand, with what every layer asks about it worked out once."""

    of_token: Int[Tensor, "B T"]
    num_used: int  # slots up to the newest of any example
    shared_start: int | None  # the first, if all examples write the same slots in a row; None if each has its own

    @classmethod
    def of(cls, of_token: Int[Tensor, "B T"]) -> "Slots":
        lowest, highest = int(of_token.min()), int(of_token.max())
        # The slots of an example increase, so a range this narrow leaves each of them no choice.
        is_shared = highest - lowest + 1 == of_token.shape[1]
        return cls(of_token, highest + 1, lowest if is_shared else None)
