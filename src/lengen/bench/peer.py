"""The peer: `transformers` GPT-NeoX with fused attention, used the way its users train and decode."""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from lengen.batch import Batch
from lengen.config import RunConfig
from lengen.extras import extra_module
from lengen.model.config import ModelConfig

NAME = "transformers GPT-NeoX"
IGNORED = -100  # the label that transformers leaves out of the loss


class PaddedBatch(NamedTuple):
    token_ids: Int[Tensor, "B T"]
    mask: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]


def build_peer(model: ModelConfig, vocab_size: int) -> Any:
    """A model of the same depth, width, heads and MLP, with rotary positions."""
    transformers = extra_module("transformers", "hf")
    config = transformers.GPTNeoXConfig(
        vocab_size=vocab_size,
        hidden_size=model.width,
        num_hidden_layers=model.num_layers,
        num_attention_heads=model.num_heads,
        intermediate_size=model.mlp_ratio * model.width,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)
    return transformers.GPTNeoXForCausalLM(config)


def padded_batches(batches: list[Batch], batch_size: int) -> list[PaddedBatch]:
    """The same examples as a shuffled data set gives them: of mixed lengths, padded on the right to the longest."""
    examples = [(tokens, batch.prompt_len) for batch in batches for tokens in batch.token_ids]
    order = np.random.default_rng(0).permutation(len(examples))
    padded = []
    for start in range(0, len(order), batch_size):
        group = [examples[index] for index in order[start : start + batch_size]]
        widest = max(len(tokens) for tokens, _ in group)
        token_ids = torch.zeros((len(group), widest), dtype=torch.int64)
        mask, labels = torch.zeros_like(token_ids), torch.full_like(token_ids, IGNORED)
        for row, (tokens, prompt_len) in enumerate(group):
            token_ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
            labels[row, prompt_len : len(tokens)] = tokens[prompt_len:]
        padded.append(PaddedBatch(token_ids, mask, labels))
    return padded


def peer_step(model: Any, optimizer: torch.optim.Optimizer, batch: PaddedBatch, clip_norm: float) -> float:
    optimizer.zero_grad(set_to_none=True)
    loss: Tensor = model(input_ids=batch.token_ids, attention_mask=batch.mask, labels=batch.labels).loss
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    optimizer.step()
    return loss.item()


def build_peer_optimizer(model: Any, config: RunConfig) -> torch.optim.AdamW:
    """Fused, as the transformers trainer's default is."""
    return torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


@torch.no_grad()
def generate(model: Any, prompts: Int[Tensor, "B P"], num_new: int) -> Int[Tensor, "B N"]:
    """Greedy decoding with a KV cache by `generate`."""
    generated: Tensor = model.generate(
        input_ids=prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=num_new,
        do_sample=False,
        use_cache=True,
        pad_token_id=0,
    )
    return generated[:, prompts.shape[1] :]
