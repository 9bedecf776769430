"""Leave-one-out influence, against the obvious loop: one pass a masked token, batch 1, same model and examples."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengen.bench.row import BenchRow
from lengen.bench.timing import compare, num_threads
from lengen.context.analysis import EXAMPLES_AT_ONCE
from lengen.context.causal_model import CausalModel, losses_of
from lengen.context.decoder_model import DecoderModel
from lengen.context.hf_model import HuggingFaceModel
from lengen.context.influence import leave_one_out
from lengen.context.window import Window
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.model.hf import to_hf
from lengen.positions.assign import Contiguous
from lengen.positions.scheme import Rope, Scheme
from lengen.seeding import rng_for
from lengen.stopped import Failed

MODEL_VARIABLE = "LENGEN_BENCH_MODEL"  # a pretrained model to measure besides ours
WINDOW = Window(short=64, long=128)
NUM_EXAMPLES, NUM_REPEATS = EXAMPLES_AT_ONCE, 3
NUM_LARGE_EXAMPLES, NUM_LARGE_REPEATS = 1, 2  # a loop over one example takes 40 seconds
TARGET = 4.0
TOLERANCE = 1e-4


@torch.inference_mode()
def masked_loop(
    model: Any, examples: Int[Tensor, "E L"], window: Window, first_position_id: int = 0
) -> Float[Tensor, "E F"]:
    """The obvious loop on a model of transformers: a mask with one zero."""
    losses = torch.empty((len(examples), window.num_far), dtype=torch.float64)
    position_ids = torch.arange(first_position_id, first_position_id + window.num_inputs)[None]
    for row, far in torch.cartesian_prod(torch.arange(len(examples)), torch.arange(window.num_far)).tolist():
        mask = torch.ones((1, window.num_inputs), dtype=torch.int64)
        mask[0, far] = 0
        inputs = examples[row : row + 1, :-1]
        logits = model(input_ids=inputs, attention_mask=mask, position_ids=position_ids).logits[:, -1]
        losses[row, far] = losses_of(logits, examples[row : row + 1, -1])[0]
    return losses


@torch.inference_mode()
def omitting_loop(decoder: Decoder, examples: Int[Tensor, "E L"], window: Window) -> Float[Tensor, "E F"]:
    """The obvious loop on our decoder, which takes no mask: one input without the token."""
    losses = torch.empty((len(examples), window.num_far), dtype=torch.float64)
    slots = torch.arange(window.num_inputs)
    for row, far in torch.cartesian_prod(torch.arange(len(examples)), torch.arange(window.num_far)).tolist():
        kept = slots[slots != far]
        logits = decoder(examples[row, kept][None], kept[None] + 1).token_logits[:, -1]
        losses[row, far] = losses_of(logits, examples[row : row + 1, -1])[0]
    return losses


def measure() -> Iterator[BenchRow]:
    decoder = language_decoder()
    tokens = torch.from_numpy(rng_for(0, "bench/influence").integers(0, 8192, (NUM_EXAMPLES, WINDOW.long)))
    ours, twin = DecoderModel(decoder, "ours"), to_hf(decoder)
    setting = f"our decoder (d=256, 4 layers, vocabulary 8192), {WINDOW.short} → {WINDOW.long}"
    peers = {
        "one pass a token": lambda: omitting_loop(decoder, tokens, WINDOW),
        "transformers, one pass a token": lambda: masked_loop(twin, tokens, WINDOW, first_position_id=1),
    }
    for peer, loop in peers.items():
        yield from _rows(ours, tokens, loop, setting, peer, NUM_REPEATS)
    if path := os.environ.get(MODEL_VARIABLE):
        from lengen.context.loading import load_model

        model = load_model(Path(path)).model
        assert isinstance(model, HuggingFaceModel)
        few = tokens[:NUM_LARGE_EXAMPLES]
        setting = f"{model.name}, {WINDOW.short} → {WINDOW.long}"
        peer = "transformers, one pass a token"
        yield from _rows(model, few, lambda: masked_loop(model.model, few, WINDOW), setting, peer, NUM_LARGE_REPEATS)


def language_decoder() -> Decoder:
    """Twice as wide as the language models of cpu scale."""
    scheme = Scheme(Contiguous(max_position_id=128), Rope())
    return Decoder(ModelConfig(num_layers=4, num_heads=4, width=256), scheme, 8192).initialize(0)


def _rows(
    model: CausalModel, tokens: Int[Tensor, "E L"], loop: Any, setting: str, peer: str, repeats: int
) -> Iterator[BenchRow]:
    def ours() -> Tensor:
        return leave_one_out(model, tokens, WINDOW)

    difference = float((ours() - loop()).abs().max())
    if difference > TOLERANCE:
        raise Failed(f"the influences differ from the obvious loop's by {difference:.1e}, above {TOLERANCE}")
    for threads in (1, 2):
        with num_threads(threads):
            spread = compare(ours, loop, repeats)
        yield BenchRow.of("influence", setting, peer, spread, threads=threads, target=TARGET)
