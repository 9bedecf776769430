"""Weights to and from `transformers.GPTNeoXForCausalLM`: the same function, in the other library's layout.

GPT-NeoX has one fused projection with query, key and value of each head side by side; ours keeps the query apart, so
that the last layer can compute it at target slots only. Always pass Hugging Face models an attention mask: given
position ids but neither mask nor cache, recent versions take every jump in the ids for the start of a new packed
sequence and silently cut attention there.
"""

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lengen.extras import extra_module
from lengen.model.config import PLAIN_ATTENTION, ModelConfig
from lengen.model.decoder import Decoder
from lengen.positions.assign import Contiguous
from lengen.positions.encode import ntk_base, rotary_size_of
from lengen.positions.scheme import Rope, Scheme

if TYPE_CHECKING:
    from transformers import GPTNeoXForCausalLM

SHARED_NAMES = {  # ours -> GPT-NeoX's, for what is the same in both
    "embedding.weight": "gpt_neox.embed_in.weight",
    "final_norm.weight": "gpt_neox.final_layer_norm.weight",
    "final_norm.bias": "gpt_neox.final_layer_norm.bias",
}
BLOCK_NAMES = {
    "attention_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
    "attention.output": "attention.dense",
    "mlp_in": "mlp.dense_h_to_4h",
    "mlp_out": "mlp.dense_4h_to_h",
}


def to_hf(decoder: Decoder, max_positions: int = 2048) -> "GPTNeoXForCausalLM":
    """A GPT-NeoX model with the same logits. Only rotary schemes that predict no ids exist there."""
    transformers = extra_module("transformers", "hf")
    config, encoder = decoder.config, decoder.scheme.encoder
    if not isinstance(encoder, Rope) or decoder.position_head is not None:
        raise ValueError(
            f"GPT-NeoX has rotary positions and no position head, so {decoder.scheme.name} cannot be converted; "
            "use a scheme with rope that predicts no ids"
        )
    for name, plain in PLAIN_ATTENTION.items():
        if (value := getattr(config, name)) != plain:
            raise ValueError(
                f"GPT-NeoX has plain attention, so a model with {name}={value} cannot be converted; use {name}={plain}"
            )
    hf_config = transformers.GPTNeoXConfig(
        vocab_size=decoder.embedding.num_embeddings,
        hidden_size=config.width,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        intermediate_size=config.mlp_ratio * config.width,
        max_position_embeddings=max_positions,
        initializer_range=config.init_std,
        rope_parameters=_rope_parameters(encoder, config.head_size),
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.GPTNeoXForCausalLM(hf_config).to(decoder.token_head.weight.dtype)
    ours = decoder.state_dict()
    theirs = {hf_name: ours[name] for name, hf_name in _shared_names(config.num_layers)}
    for query_name, key_value_name, hf_name in _fused_names(config.num_layers):
        theirs[hf_name] = _fuse(ours[query_name], ours[key_value_name], config.num_heads)
    theirs[_head_name(model)] = ours["token_head.weight"]
    model.load_state_dict(theirs)
    return model.eval()


def from_hf(model: "GPTNeoXForCausalLM", max_position_id: int = 2048) -> Decoder:
    """A decoder with the same logits as a GPT-NeoX model."""
    hf_config = model.config
    rope, head_size = hf_config.rope_parameters, hf_config.hidden_size // hf_config.num_attention_heads
    unsupported = {
        "use_parallel_residual": not hf_config.use_parallel_residual,
        "hidden_act": hf_config.hidden_act != "gelu",
        "attention_bias": not hf_config.attention_bias,
        "layer_norm_eps": hf_config.layer_norm_eps != 1e-5,
        "tie_word_embeddings": hf_config.tie_word_embeddings,
        "rope_type": rope.get("rope_type", "default") not in ("default", "linear"),
        "intermediate_size": hf_config.intermediate_size % hf_config.hidden_size != 0,
        "partial_rotary_factor": int(head_size * rope["partial_rotary_factor"]) % 2 == 1,
    }
    for name, is_unsupported in unsupported.items():
        if is_unsupported:
            value = rope[name] if name in rope else getattr(hf_config, name)
            raise ValueError(f"a GPT-NeoX model with {name}={value} cannot be converted; convert a plain one")
    config = ModelConfig(
        num_layers=hf_config.num_hidden_layers,
        num_heads=hf_config.num_attention_heads,
        width=hf_config.hidden_size,
        mlp_ratio=hf_config.intermediate_size // hf_config.hidden_size,
    )
    encoder = Rope(
        rotary_fraction=rope["partial_rotary_factor"],
        base=rope["rope_theta"],
        interpolation="linear" if rope.get("rope_type") == "linear" else "none",
        factor=rope.get("factor", 1.0),
    )
    decoder = Decoder(config, Scheme(Contiguous(max_position_id), encoder), hf_config.vocab_size)
    theirs = model.state_dict()
    ours = {name: theirs[hf_name] for name, hf_name in _shared_names(config.num_layers)}
    for query_name, key_value_name, hf_name in _fused_names(config.num_layers):
        ours[query_name], ours[key_value_name] = _split(theirs[hf_name], config.num_heads)
    ours["token_head.weight"] = theirs[_head_name(model)]
    # A decoder computes with at least float32: half precision is for autocast, which leaves the angles of rope alone.
    decoder.to(torch.promote_types(ours["token_head.weight"].dtype, torch.float32)).load_state_dict(ours)
    return decoder.eval()


def _head_name(model: "GPTNeoXForCausalLM") -> str:
    # It was renamed within transformers 5.
    return "lm_head.weight" if "lm_head.weight" in model.state_dict() else "embed_out.weight"


def _shared_names(num_layers: int) -> Iterator[tuple[str, str]]:
    yield from SHARED_NAMES.items()
    for layer, (name, hf_name), part in product(range(num_layers), BLOCK_NAMES.items(), ("weight", "bias")):
        yield f"blocks.{layer}.{name}.{part}", f"gpt_neox.layers.{layer}.{hf_name}.{part}"


def _fused_names(num_layers: int) -> Iterator[tuple[str, str, str]]:
    for layer, part in product(range(num_layers), ("weight", "bias")):
        ours = f"blocks.{layer}.attention"
        yield (
            f"{ours}.query.{part}",
            f"{ours}.key_value.{part}",
            f"gpt_neox.layers.{layer}.attention.query_key_value.{part}",
        )


def _fuse(query: Tensor, key_value: Tensor, num_heads: int) -> Tensor:
    """[D, …] and [2, H, K, …] flat, to GPT-NeoX's [H, 3, K, …] flat."""
    rest = query.shape[1:]
    by_head = torch.cat([query.view(1, num_heads, -1, *rest), key_value.view(2, num_heads, -1, *rest)])
    return by_head.transpose(0, 1).reshape(-1, *rest)


def _split(fused: Tensor, num_heads: int) -> tuple[Tensor, Tensor]:
    rest = fused.shape[1:]
    query, key, value = fused.view(num_heads, 3, -1, *rest).transpose(0, 1)
    return query.reshape(-1, *rest), torch.stack([key, value]).reshape(-1, *rest)


def _rope_parameters(encoder: Rope, head_size: int) -> dict[str, object]:
    rotary_size, fraction = rotary_size_of(encoder, head_size), encoder.rotary_fraction
    if int(head_size * fraction) != rotary_size:  # ours is even, GPT-NeoX's need not be
        fraction = (rotary_size + 0.5) / head_size  # the half is safe from rounding: it takes the integer part
    parameters: dict[str, object] = {
        "rope_type": "default",
        "rope_theta": encoder.base,
        "partial_rotary_factor": fraction,
    }
    if encoder.interpolation == "linear":
        parameters |= {"rope_type": "linear", "factor": encoder.factor}
    elif encoder.interpolation == "ntk":  # a larger base is all there is to it
        parameters["rope_theta"] = ntk_base(encoder, rotary_size)
    elif encoder.interpolation == "yarn":
        parameters |= {
            "rope_type": "yarn",
            "factor": encoder.factor,
            "original_max_position_embeddings": encoder.trained_max_id,
        }
    return parameters
