"""Causal self-attention: nearness by position id, causality by slot."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, scaled_dot_product_attention

from lengen.model.cache import KVCache, Slots
from lengen.model.config import ModelConfig
from lengen.positions.encode import Rotation


class View(NamedTuple):
    """What the attention of every layer shares in one forward pass."""

    slots: Slots | None  # None: all slots from 0, nothing cached
    rotation: Rotation | None
    bias: Float[Tensor, "B H T S"] | None
    sharpness: Float[Tensor, "#B 1 T 1"] | None  # by which scores are multiplied; None: by nothing
    cache: KVCache | None
    weights: list[Float[Tensor, "B H Q S"]] | None  # every layer adds its own, for those who look inside

    @property
    def shared_start(self) -> int | None:
        """The first slot, if all examples stand at the same ones."""
        return 0 if self.slots is None else self.slots.shared_start

    @property
    def is_plain(self) -> bool:
        """Whether the fused kernel knows this attention: causal, the same for all examples, scores as they are."""
        return self.shared_start is not None and self.bias is None

    def mask(
        self, first_query: int, num_keys: int, like: Tensor
    ) -> Bool[Tensor, "#B 1 Q S"] | Float[Tensor, "B H Q S"]:
        """Everything else is spelled out: which keys a query may see, or what is added to their scores."""
        if self.slots is None:
            slots = torch.arange(num_keys, device=like.device)[None]
        else:  # one mask serves all examples if they stand at the same slots
            slots = self.slots.of_token if self.slots.shared_start is None else self.slots.of_token[:1]
        visible = torch.arange(num_keys, device=like.device) <= slots[:, None, first_query:, None]
        if self.bias is None:
            return visible
        return self.bias[:, :, first_query:].masked_fill(~visible, -torch.inf).to(like.dtype)


class Repeats(NamedTuple):
    """Which of the distinct inputs stands at each slot: what depends on the input alone is computed once for each."""

    row_of_slot: Int[Tensor, "B T"]

    def spread(self, rows: Float[Tensor, "1 U F"], like: Tensor, first_slot: int = 0) -> Float[Tensor, "B Q F"]:
        """Rows to slots. Gradients of a row's slots add up in the precision of `like`, not in autocast's."""
        spread: Tensor = embedding(self.row_of_slot[:, first_slot:], rows[0].to(like.dtype))
        return spread.to(rows.dtype)


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.num_heads, self.head_size = config.num_heads, config.head_size
        self.query = nn.Linear(config.width, config.width)
        self.key_value = nn.Linear(config.width, 2 * config.width)
        self.output = nn.Linear(config.width, config.width)

    def forward(
        self, hidden: Float[Tensor, "B T D"], view: View, first_query: int, repeats: Repeats | None
    ) -> Float[Tensor, "C Q D"]:
        """Keys and values everywhere, queries from index `first_query` on."""
        if repeats is None:
            queries, keys_values = self.query(hidden[:, first_query:]), self.key_value(hidden)
        else:
            queries = repeats.spread(self.query(hidden), hidden, first_query)
            keys_values = repeats.spread(self.key_value(hidden), hidden)
        batch_size, num_tokens, _ = keys_values.shape
        width = self.num_heads * self.head_size
        queries = queries.view(batch_size, num_tokens - first_query, self.num_heads, self.head_size).transpose(1, 2)
        keys, values = keys_values.view(batch_size, num_tokens, 2, self.num_heads, self.head_size).permute(
            2, 0, 3, 1, 4
        )
        if view.rotation is not None:
            cos, signed_sin = view.rotation
            queries = Rotation(cos[:, :, first_query:], signed_sin[:, :, first_query:]).apply(queries)
            keys = view.rotation.apply(keys)
        if view.sharpness is not None:
            queries = queries * view.sharpness[:, :, first_query:].to(queries.dtype)
        if view.cache is not None:
            assert view.slots is not None
            keys, values = view.cache.write(self.layer, view.slots, keys, values)

        is_last_slot_only = view.is_plain and first_query == num_tokens - 1  # it may see all there is
        is_square = view.is_plain and view.shared_start == 0 and first_query == 0
        mask = None
        if not is_last_slot_only and not is_square:
            mask = view.mask(first_query, keys.shape[2], keys)
        if view.weights is not None:
            view.weights.append(_weights(queries, keys, view.mask(first_query, keys.shape[2], keys)))
        attended = scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=is_square)
        return self.output(attended.transpose(1, 2).reshape(batch_size, num_tokens - first_query, width))


def _weights(
    queries: Float[Tensor, "B H Q K"], keys: Float[Tensor, "B H S K"], mask: Tensor
) -> Float[Tensor, "B H Q S"]:
    """What the fused kernel multiplies values by and does not tell."""
    scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1)
