"""A decoder that reads one token at a time, with its weights folded into two products a layer and one for the heads.

For one token a small model's cost is the calling of operations, not their arithmetic, so it pays to have few.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from lengen.model.cache import KVCache
from lengen.model.decoder import Block, Decoder, DecoderOutput

PAYS_UP_TO_WIDTH = 256  # beyond it arithmetic rules, and folding copies weights for nothing


class Affine(NamedTuple):
    weight: Float[Tensor, "I O"]  # laid out as it is read: a quarter faster than the other way for one row
    bias: Float[Tensor, " O"]

    def __call__(self, x: Float[Tensor, "B I"]) -> Float[Tensor, "B O"]:
        return torch.addmm(self.bias, x, self.weight)

    @classmethod
    def behind(cls, norms_and_layers: list[tuple[nn.LayerNorm, nn.Linear]]) -> "Affine":
        """Layers side by side, each with its norm's gain and shift folded in: one input serves them all."""
        weights, biases = [], []
        for norm, layer in norms_and_layers:
            weights.append(layer.weight * norm.weight)
            shift = layer.weight @ norm.bias
            biases.append(shift if layer.bias is None else shift + layer.bias)
        return cls(torch.cat(weights).t().contiguous(), torch.cat(biases))


class FoldedBlock(NamedTuple):
    """The residual is parallel: attention and MLP read one input, and their outputs are added."""

    read: Affine  # normed input -> queries, keys, values, MLP
    write: Affine  # attended values, MLP -> what is added to the input

    @classmethod
    def of(cls, block: Block) -> "FoldedBlock":
        attention = block.attention
        read = Affine.behind(
            [
                (block.attention_norm, attention.query),
                (block.attention_norm, attention.key_value),
                (block.mlp_norm, block.mlp_in),
            ]
        )
        weight = torch.cat([attention.output.weight, block.mlp_out.weight], dim=1)
        return cls(read, Affine(weight.t().contiguous(), attention.output.bias + block.mlp_out.bias))


class FoldedDecoder:
    """Called like the decoder with a cache, with one new token of each example; equal up to rounding."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.blocks = [FoldedBlock.of(block) for block in decoder.blocks]  # type: ignore[arg-type]
        heads = [decoder.token_head] if decoder.position_head is None else [decoder.token_head, decoder.position_head]
        self.heads = Affine.behind([(decoder.final_norm, head) for head in heads])

    def __call__(
        self, token_ids: Int[Tensor, "B 1"], position_ids: Int[Tensor, "B 1"], slots: Int[Tensor, "B 1"], cache: KVCache
    ) -> DecoderOutput:
        decoder, config = self.decoder, self.decoder.config
        view = decoder.view(position_ids, slots, cache)
        assert view.slots is not None, "there is a cache"
        hidden = decoder.encoder.embed(decoder.embedding(token_ids), position_ids)[:, 0]
        mask = None if view.is_plain else view.mask(0, view.slots.num_used, hidden)
        for layer, block in enumerate(self.blocks):
            projected = block.read(layer_norm(hidden, (config.width,)))
            heads = projected[:, : 3 * config.width].view(len(hidden), 3 * config.num_heads, 1, config.head_size)
            turning, values = heads[:, : 2 * config.num_heads], heads[:, 2 * config.num_heads :]
            if view.rotation is not None:
                turning = view.rotation.apply(turning)
            queries, keys = turning.chunk(2, dim=1)
            if view.sharpness is not None:
                queries = queries * view.sharpness.to(queries.dtype)
            all_keys, all_values = cache.write(layer, view.slots, keys, values)
            attended = scaled_dot_product_attention(queries, all_keys, all_values, attn_mask=mask)
            transformed = gelu(projected[:, 3 * config.width :])
            hidden = hidden + block.write(torch.cat([attended.reshape(len(hidden), config.width), transformed], dim=1))
        logits = self.heads(layer_norm(hidden, (config.width,)))[:, None]
        token_logits, position_logits = logits.tensor_split([decoder.embedding.num_embeddings], dim=-1)
        return DecoderOutput(token_logits, None if decoder.position_head is None else position_logits)
