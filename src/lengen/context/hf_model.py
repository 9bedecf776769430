"""Any causal language model of `transformers`."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lengen.context.causal_model import CausalModel, Prefix


class HuggingFaceModel(CausalModel):
    """Every call passes a mask: without one, transformers takes a jump in the ids for a new packed sequence
    and silently cuts attention across it."""

    first_position_id = 0

    def __init__(self, model: Any, name: str) -> None:
        accepted = inspect.signature(model.forward).parameters
        missing = [argument for argument in ("attention_mask", "position_ids") if argument not in accepted]
        if missing:
            raise ValueError(
                f"the model {name} ({type(model).__name__}) takes no {' and no '.join(missing)}, so a token cannot be "
                "masked out with the ids of the others kept; choose a model that does (Llama, GPT-NeoX, GPT-2, OLMo, …)"
            )
        self.model, self.name = model.eval(), name
        self._keeps_last_logits = "logits_to_keep" in accepted
        text_config = model.config.get_text_config(decoder=True)
        self.vocab_size = model.get_input_embeddings().num_embeddings
        limits = [getattr(text_config, field, None) for field in ("max_position_embeddings", "sliding_window")]
        self.max_tokens = min((limit for limit in limits if limit), default=None)

    @property
    def module(self) -> nn.Module:
        return cast(nn.Module, self.model)

    @torch.inference_mode()
    def read(self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"]) -> Prefix:
        from transformers import DynamicCache

        cache = DynamicCache()
        self._forward(token_ids, position_ids, cache)
        return Prefix(
            position_ids,
            tuple(layer.keys for layer in cache.layers),
            tuple(layer.values for layer in cache.layers),
        )

    @torch.inference_mode()
    def logits(
        self,
        token_ids: Int[Tensor, "B T"],
        position_ids: Int[Tensor, "B T"],
        num_last: int,
        prefix: Prefix | None = None,
    ) -> Float[Tensor, "B N V"]:
        return self._forward(token_ids, position_ids, _as_cache(prefix), num_last=num_last).logits[:, -num_last:]

    @torch.inference_mode()
    def masked_logits(
        self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"], mask: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B V"]:
        """The obvious way: the whole input, with zeros in the mask for tokens that nobody may attend to."""
        return self._forward(token_ids, position_ids, None, mask=mask).logits[:, -1]

    @torch.inference_mode()
    def attention(
        self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"], num_last: int
    ) -> Float[Tensor, "B N T"]:
        (early, last), (early_ids, last_ids) = (
            (ids[:, :-num_last], ids[:, -num_last:]) for ids in (token_ids, position_ids)
        )
        prefix = self.read(early, early_ids)
        with self._eager_attention():  # the fused kernels do not say where they attend
            output = self._forward(last, last_ids, _as_cache(prefix), output_attentions=True)
        return torch.stack([weights.float().mean(1) for weights in output.attentions]).mean(0)

    def _forward(
        self,
        token_ids: Int[Tensor, "B T"],
        position_ids: Int[Tensor, "B T"],
        cache: Any,
        num_last: int = 1,
        mask: Int[Tensor, "B S"] | None = None,
        **arguments: bool,
    ) -> Any:
        if mask is None:
            num_cached = 0 if cache is None else cache.get_seq_length()
            mask = token_ids.new_ones((len(token_ids), num_cached + token_ids.shape[1]))
        return self.model(
            input_ids=token_ids,
            position_ids=position_ids,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=cache is not None,
            **({"logits_to_keep": num_last} if self._keeps_last_logits else {}),
            **arguments,
        )

    @contextmanager
    def _eager_attention(self) -> Iterator[None]:
        before = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.model.set_attn_implementation(before)


def _as_cache(prefix: Prefix | None) -> Any:
    from transformers import DynamicCache

    if prefix is None or prefix.position_ids.shape[1] == 0:
        return None
    return DynamicCache(list(zip(prefix.keys, prefix.values, strict=True)))
