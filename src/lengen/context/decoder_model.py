"""Our own decoder."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lengen.context.causal_model import CausalModel, Prefix
from lengen.model.cache import KVCache
from lengen.model.decoder import Decoder


class DecoderModel(CausalModel):
    first_position_id = 1  # 0 is reserved by the assigners

    def __init__(self, decoder: Decoder, name: str) -> None:
        self.decoder, self.name = decoder.eval(), name
        self.vocab_size = decoder.embedding.num_embeddings
        self.max_tokens = decoder.scheme.num_ids - 1 if decoder.scheme.encoder.has_table else None

    @property
    def module(self) -> nn.Module:
        return self.decoder

    @torch.inference_mode()
    def read(self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"]) -> Prefix:
        cache = self._new_cache(len(token_ids), token_ids.shape[1])
        self._logits(token_ids, position_ids, 1, cache, first_slot=0)
        return Prefix(position_ids, tuple(cache.keys), tuple(cache.values))

    @torch.inference_mode()
    def logits(
        self,
        token_ids: Int[Tensor, "B T"],
        position_ids: Int[Tensor, "B T"],
        num_last: int,
        prefix: Prefix | None = None,
    ) -> Float[Tensor, "B N V"]:
        if prefix is None or prefix.position_ids.shape[1] == 0:
            return self.decoder(token_ids, position_ids, first_target=token_ids.shape[1] - num_last).token_logits
        num_read = prefix.position_ids.shape[1]
        cache = self._new_cache(len(token_ids), num_read + token_ids.shape[1])
        cache.ids[:, :num_read] = prefix.position_ids
        for store, read in zip([*cache.keys, *cache.values], [*prefix.keys, *prefix.values], strict=True):
            store[:, :, :num_read] = read
        return self._logits(token_ids, position_ids, num_last, cache, num_read)

    @torch.inference_mode()
    def attention(
        self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"], num_last: int
    ) -> Float[Tensor, "B N T"]:
        weights: list[Tensor] = []
        self.decoder(token_ids, position_ids, first_target=token_ids.shape[1] - num_last, weights=weights)
        return torch.stack([layer[:, :, -num_last:].mean(1) for layer in weights]).mean(0)

    def _new_cache(self, batch_size: int, num_slots: int) -> KVCache:
        return KVCache(self.decoder.config, batch_size, num_slots, self.decoder.embedding.weight)

    def _logits(
        self,
        token_ids: Int[Tensor, "B T"],
        position_ids: Int[Tensor, "B T"],
        num_last: int,
        cache: KVCache,
        first_slot: int,
    ) -> Float[Tensor, "B N V"]:
        num_tokens = token_ids.shape[1]
        slots = torch.arange(first_slot, first_slot + num_tokens).expand(token_ids.shape)
        return self.decoder(
            token_ids, position_ids, first_target=num_tokens - num_last, slots=slots, cache=cache
        ).token_logits
