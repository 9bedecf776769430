"""A GPT-NeoX decoder (parallel residual) with a token head and, for schemes that predict ids, a position head."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lengen.model.attention import Attention, Repeats, View
from lengen.model.cache import KVCache, Slots
from lengen.model.config import ModelConfig
from lengen.positions.encode import build_encoder
from lengen.positions.scheme import Scheme
from lengen.seeding import torch_seed_for

ID_LIMIT = 2**32  # above any id: one outside its table stays outside, and the table says so


class DecoderOutput(NamedTuple):
    token_logits: Float[Tensor, "B T V"]
    position_logits: Float[Tensor, "B T P"] | None  # None: this scheme predicts no ids


class Block(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = Attention(config, layer)
        self.mlp_norm = nn.LayerNorm(config.width)
        self.mlp_in = nn.Linear(config.width, config.mlp_ratio * config.width)
        self.mlp_out = nn.Linear(config.mlp_ratio * config.width, config.width)

    def forward(
        self, hidden: Float[Tensor, "B T D"], view: View, first_query: int, repeats: Repeats | None
    ) -> Float[Tensor, "C Q D"]:
        attended = self.attention(self.attention_norm(hidden), view, first_query, repeats)
        hidden = hidden[:, first_query:] if repeats is None else hidden
        transformed = self.mlp_out(nn.functional.gelu(self.mlp_in(self.mlp_norm(hidden))))
        if repeats is not None:
            return attended + repeats.spread(hidden + transformed, hidden, first_query)
        return hidden + attended + transformed  # parallel: both branches read the same input


class Decoder(nn.Module):
    def __init__(self, config: ModelConfig, scheme: Scheme, vocab_size: int) -> None:
        super().__init__()
        self.config, self.scheme = config, scheme
        self.embedding = nn.Embedding(vocab_size, config.width)
        self.encoder = build_encoder(
            scheme.encoder,
            num_ids=scheme.num_ids,
            width=config.width,
            num_heads=config.num_heads,
            head_size=config.head_size,
        )
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.num_layers))
        self.final_norm = nn.LayerNorm(config.width)
        self.token_head = nn.Linear(config.width, vocab_size, bias=False)
        self.position_head = (
            nn.Linear(config.width, scheme.num_ids, bias=False) if scheme.assigner.predicts_ids else None
        )

    @torch.no_grad()
    def initialize(self, seed: int) -> "Decoder":
        """Matrices ~ N(0, init_std²), biases 0, norms 1; scalars keep their own start values."""
        generator = torch.Generator().manual_seed(torch_seed_for(seed, "initialize"))
        for name, parameter in self.named_parameters():
            if name.startswith("encoder.hidden") or name.startswith("encoder.output"):
                # FIRE's MLP maps one number in [0, 1] to a bias: it is not as wide as the model, and neither is this.
                parameter.uniform_(
                    -1.0 / parameter.shape[-1] ** 0.5, 1.0 / parameter.shape[-1] ** 0.5, generator=generator
                )
            elif parameter.ndim >= 2:
                parameter.normal_(0.0, self.config.init_std, generator=generator)
            elif name.endswith("bias"):
                parameter.zero_()
        return self

    def forward(
        self,
        token_ids: Int[Tensor, "B T"],
        position_ids: Int[Tensor, "B T"],
        first_target: int = 0,
        slots: Int[Tensor, "B T"] | None = None,
        cache: KVCache | None = None,
        weights: list[Float[Tensor, "B H Q S"]] | None = None,
    ) -> DecoderOutput:
        """Logits for what follows each token from index `first_target` on.

        Before it only keys and values are needed in the last layer, so nothing else is computed there. With a cache,
        `slots` says where these tokens stand; without one they stand at 0, 1, …. Attention weights are added to the
        list `weights`, layer by layer, if there is one.
        """
        view = self.view(position_ids, slots, cache, weights)
        repeats = None
        if position_ids.shape[1] > 1 and not torch.compiler.is_compiling():  # looking costs more than a single token
            token_ids, position_ids, repeats = self._distinct_inputs(token_ids, position_ids)
        hidden = self.encoder.embed(self.embedding(token_ids), position_ids)
        last = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            hidden = block(hidden, view, first_target if layer == last else 0, repeats if layer == 0 else None)
        hidden = self.final_norm(hidden)
        return DecoderOutput(
            self.token_head(hidden), None if self.position_head is None else self.position_head(hidden)
        )

    def view(
        self,
        position_ids: Int[Tensor, "B T"],
        slots: Int[Tensor, "B T"] | None,
        cache: KVCache | None,
        weights: list[Float[Tensor, "B H Q S"]] | None = None,
    ) -> View:
        """What every layer shares when these tokens are read. Their ids join the cache."""
        key_ids, placed = position_ids, None
        if cache is not None:
            assert slots is not None, "a cache needs to know the slots"
            placed = Slots.of(slots)
            key_ids = cache.write_ids(placed, position_ids)
        return View(
            placed,
            self.encoder.rotation(position_ids),
            self.encoder.bias(position_ids, key_ids),
            self._sharpness(position_ids.shape[1], slots),
            cache,
            weights,
        )

    def _sharpness(self, num_tokens: int, slots: Int[Tensor, "B T"] | None) -> Float[Tensor, "#B 1 T 1"] | None:
        """What products of queries and keys are multiplied by. Causality is by slot: a query at slot i sees i + 1."""
        config = self.config
        if config.sharpness == 1.0 and not config.sharpen_from:
            return None
        if slots is None:
            slots = torch.arange(num_tokens, device=self.token_head.weight.device)[None]
        growth = (slots + 1).log() / math.log(config.sharpen_from) if config.sharpen_from else torch.ones_like(slots)
        return (config.sharpness * growth)[:, None, :, None]

    def _distinct_inputs(
        self, token_ids: Int[Tensor, "B T"], position_ids: Int[Tensor, "B T"]
    ) -> tuple[Int[Tensor, "1 U"], Int[Tensor, "1 U"], Repeats]:
        """The different inputs of a batch, and which of them stands at each slot.

        The first layer's norms, projections and MLP read a slot's input alone (the residual is parallel), and a batch
        of a small vocabulary repeats few of them many times.
        """
        keys = token_ids * ID_LIMIT + (position_ids if self.encoder.adds_ids_to_input else 0)
        distinct, row_of_slot = torch.unique(keys, return_inverse=True)
        return (distinct // ID_LIMIT)[None], (distinct % ID_LIMIT)[None], Repeats(row_of_slot)

    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())
