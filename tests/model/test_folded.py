"""The folded decoder computes what the decoder does, in fewer operations."""

from collections.abc import Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lengen.model.cache import KVCache
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder, DecoderOutput
from lengen.model.folded import FoldedDecoder
from lengen.positions import ASSIGNERS, ENCODERS, scheme_named

PAIRS = [f"{assigner}+{encoder}" for assigner in ASSIGNERS for encoder in ENCODERS]
BATCH_SIZE, NUM_TOKENS, VOCAB_SIZE = 3, 6, 11


def make_decoder(name: str, **settings: float) -> Decoder:
    config = ModelConfig(num_layers=2, num_heads=2, width=32, init_scale=2.0, **settings)
    decoder = Decoder(config, scheme_named(name), VOCAB_SIZE).initialize(0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # gains of 1 and shifts of 0 would be folded rightly by a wrong formula
        for parameter in decoder.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator))
    return decoder


@torch.no_grad()
def logits_of(decoder: Decoder, read: Callable[..., DecoderOutput], are_slots_shared: bool) -> torch.Tensor:
    """Of six tokens, read one at a time, with each example at its own slots or all at the same."""
    generator = torch.Generator().manual_seed(2)
    token_ids = torch.randint(VOCAB_SIZE, (BATCH_SIZE, NUM_TOKENS), generator=generator)
    position_ids = torch.randint(50, (BATCH_SIZE, NUM_TOKENS), generator=generator)
    offset = torch.zeros((BATCH_SIZE, 1), dtype=torch.int64) if are_slots_shared else torch.tensor([[0], [2], [5]])
    cache = KVCache(decoder.config, BATCH_SIZE, NUM_TOKENS + 5, like=decoder.token_head.weight)
    parts = []
    for index in range(NUM_TOKENS):
        token = slice(index, index + 1)
        output = read(token_ids[:, token], position_ids[:, token], slots=offset + index, cache=cache)
        parts += [logits for logits in output if logits is not None]
    return torch.cat(parts, dim=-1)


@pytest.mark.parametrize("are_slots_shared", [True, False])
@pytest.mark.parametrize("name", PAIRS)
def test_equals_the_decoder(name, are_slots_shared):
    decoder = make_decoder(name)
    folded = logits_of(decoder, FoldedDecoder(decoder), are_slots_shared)
    assert (folded - logits_of(decoder, decoder, are_slots_shared)).abs().max() < 1e-4


@pytest.mark.parametrize("settings", [{"sharpness": 2.0}, {"sharpen_from": 3}])
def test_equals_a_sharpened_decoder(settings):
    decoder, plain = make_decoder("predicted+rope", **settings), make_decoder("predicted+rope")
    folded = logits_of(decoder, FoldedDecoder(decoder), True)
    assert (folded - logits_of(decoder, decoder, True)).abs().max() < 1e-4
    assert (folded - logits_of(plain, plain, True)).abs().max() > 1e-2


@pytest.mark.parametrize(
    "parameter",
    ["blocks.0.attention_norm.bias", "blocks.1.mlp_norm.weight", "blocks.0.mlp_out.bias", "final_norm.bias"],
)
def test_the_comparison_can_fail(parameter):
    decoder = make_decoder("predicted+rope")
    folded = FoldedDecoder(decoder)
    with torch.no_grad():
        decoder.get_parameter(parameter)[0] += 1.0  # after folding: one number too many
    assert (logits_of(decoder, folded, True) - logits_of(decoder, decoder, True)).abs().max() > 1e-2


class CountProducts(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += operation in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return operation(*args, **(kwargs or {}))


def test_two_products_a_layer_and_one_for_both_heads():
    decoder = make_decoder("predicted+ape")
    counts = []
    for read in (FoldedDecoder(decoder), decoder):
        with CountProducts() as products:
            logits_of(decoder, read, True)
        counts.append(products.count / NUM_TOKENS)
    assert counts == [2 * 2 + 1, 5 * 2 + 2]
