"""A key-value cache with one row a slot, whatever the position ids are."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.model.config import ModelConfig


class KVCache:
    """Keys (already rotated), values and ids of every slot written so far.

    Each example writes at slots of its own. Slots beyond an example's newest hold leftovers of right padding; no query
    can see them, because causality is decided by slot, and they are overwritten as the example grows.
    """

    def __init__(self, config: ModelConfig, batch_size: int, num_slots: int, like: Tensor) -> None:
        shape = (batch_size, config.num_heads, num_slots, config.head_size)
        self.keys = [like.new_zeros(shape) for _ in range(config.num_layers)]
        self.values = [like.new_zeros(shape) for _ in range(config.num_layers)]
        self.ids = torch.zeros((batch_size, num_slots), dtype=torch.int64, device=like.device)
        self._rows = torch.arange(batch_size, device=like.device)[:, None]

    def write_ids(self, slots: Int[Tensor, "B T"], ids: Int[Tensor, "B T"]) -> Int[Tensor, "B S"]:
        """Store the ids of these slots; return those of all slots up to the newest of any example."""
        self.ids[self._rows, slots] = ids
        return self.ids[:, : int(slots.max()) + 1]

    def write(
        self, layer: int, slots: Int[Tensor, "B T"], keys: Float[Tensor, "B H T K"], values: Float[Tensor, "B H T K"]
    ) -> Iterator[Float[Tensor, "B H S K"]]:
        """Store keys and values at their slots; yield all keys, then all values, up to the newest slot."""
        num_used = int(slots.max()) + 1
        for store, new in ((self.keys[layer], keys), (self.values[layer], values)):
            store[self._rows, :, slots] = new.transpose(1, 2)
            yield store[:, :, :num_used]
