"""Tiny random models of three architectures, and ours."""

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.positions.assign import Contiguous
from lengen.positions.scheme import Rope, Scheme

VOCAB_SIZE = 61
ARCHITECTURES = ("gpt-neox", "llama", "gpt-2")


def tiny_hf(architecture: str, num_layers: int = 3, max_tokens: int = 64) -> PreTrainedModel:
    torch.manual_seed(0)
    shared = {"vocab_size": VOCAB_SIZE, "initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 0}
    sizes = {"hidden_size": 32, "num_hidden_layers": num_layers, "num_attention_heads": 4, "intermediate_size": 64}
    if architecture == "gpt-neox":
        return GPTNeoXForCausalLM(GPTNeoXConfig(**shared, **sizes, max_position_embeddings=max_tokens)).eval()
    if architecture == "llama":
        config = LlamaConfig(**shared, **sizes, num_key_value_heads=2, max_position_embeddings=max_tokens)
        return LlamaForCausalLM(config).eval()
    return GPT2LMHeadModel(GPT2Config(**shared, n_embd=32, n_layer=num_layers, n_head=4, n_positions=max_tokens)).eval()


def tiny_decoder(num_layers: int = 3, max_position_id: int = 64) -> Decoder:
    config = ModelConfig(num_layers=num_layers, num_heads=4, width=32, init_scale=1.5)
    return Decoder(config, Scheme(Contiguous(max_position_id), Rope(rotary_fraction=1.0)), VOCAB_SIZE).initialize(0)
