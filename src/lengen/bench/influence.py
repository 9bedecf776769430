"""Leave-one-out influence, against the obvious loop: one pass an example and masked token, same model and examples."""

import os
from collections.abc import Callable, Iterator
from functools import partial
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
SEVERAL = Window(short=64, long=128, num_targets=4)  # examples that share their far tokens; the loop reads each anew
NUM_TEXTS, NUM_REPEATS = EXAMPLES_AT_ONCE, 3
NUM_LARGE_TEXTS, NUM_LARGE_REPEATS = 1, 2  # a loop over one example takes half a minute
OURS, THEIRS = "our decoder (d=256, 4 layers, vocabulary 8192)", "transformers, one pass a token"
TARGET = 4.0
TOLERANCE = 1e-4


@torch.inference_mode()
def masked_loop(
    model: Any, texts: Int[Tensor, "W L"], window: Window, first_position_id: int = 0
) -> Float[Tensor, "E F"]:
    """The obvious loop on a model of transformers: a mask with one zero."""
    losses = torch.empty((len(texts) * window.num_targets, window.num_far), dtype=torch.float64)
    for row, example in enumerate(examples_of(texts, window)):
        inputs = example[None, :-1]
        position_ids = torch.arange(first_position_id, first_position_id + inputs.shape[1])[None]
        for far in range(window.num_far):
            mask = torch.ones_like(inputs)
            mask[0, far] = 0
            logits = model(input_ids=inputs, attention_mask=mask, position_ids=position_ids).logits[0, -1]
            losses[row, far] = losses_of(logits, example[-1])
    return losses


@torch.inference_mode()
def omitting_loop(decoder: Decoder, texts: Int[Tensor, "W L"], window: Window) -> Float[Tensor, "E F"]:
    """The obvious loop on our decoder, which takes no mask: one input without the token."""
    losses = torch.empty((len(texts) * window.num_targets, window.num_far), dtype=torch.float64)
    for row, example in enumerate(examples_of(texts, window)):
        slots = torch.arange(len(example) - 1)
        for far in range(window.num_far):
            kept = slots[slots != far]
            logits = decoder(example[kept][None], kept[None] + 1).token_logits[0, -1]
            losses[row, far] = losses_of(logits, example[-1])
    return losses


def examples_of(texts: Int[Tensor, "W L"], window: Window) -> list[Int[Tensor, " l"]]:
    """By window of text, then by target: the tokens up to the one to be predicted."""
    return [text[: window.long + target] for text in texts for target in range(window.num_targets)]


def measure() -> Iterator[BenchRow]:
    decoder = language_decoder()
    tokens = torch.from_numpy(rng_for(0, "bench/influence").integers(0, 8192, (NUM_TEXTS, SEVERAL.num_tokens)))
    ours, twin = DecoderModel(decoder, "ours"), to_hf(decoder)
    for window in (WINDOW, SEVERAL):
        texts = tokens[:, : window.num_tokens]
        peers = {
            "one pass a token": partial(omitting_loop, decoder, texts, window),
            THEIRS: partial(masked_loop, twin, texts, window, first_position_id=1),
        }
        for peer, loop in peers.items():
            yield from _rows(ours, texts, window, loop, f"{OURS}, {_words(window)}", peer, NUM_REPEATS)
    if path := os.environ.get(MODEL_VARIABLE):
        from lengen.context.loading import load_model

        model = load_model(Path(path)).model
        assert isinstance(model, HuggingFaceModel)
        for window in (WINDOW, SEVERAL):
            texts = tokens[:NUM_LARGE_TEXTS, : window.num_tokens]
            loop = partial(masked_loop, model.model, texts, window)
            yield from _rows(model, texts, window, loop, f"{model.name}, {_words(window)}", THEIRS, NUM_LARGE_REPEATS)


def _words(window: Window) -> str:
    targets = "" if window.num_targets == 1 else f", {window.num_targets} targets a window"
    return f"{window.short} → {window.long}{targets}"


def language_decoder() -> Decoder:
    """Twice as wide as the language models of cpu scale."""
    scheme = Scheme(Contiguous(max_position_id=128), Rope())
    return Decoder(ModelConfig(num_layers=4, num_heads=4, width=256), scheme, 8192).initialize(0)


def _rows(
    model: CausalModel,
    texts: Int[Tensor, "W L"],
    window: Window,
    loop: Callable[[], Tensor],
    setting: str,
    peer: str,
    repeats: int,
) -> Iterator[BenchRow]:
    def ours() -> Tensor:
        return leave_one_out(model, texts, window)

    difference = float((ours() - loop()).abs().max())
    if difference > TOLERANCE:
        raise Failed(f"the influences differ from the obvious loop's by {difference:.1e}, above {TOLERANCE}")
    for threads in (1, 2):
        with num_threads(threads):
            spread = compare(ours, loop, repeats)
        yield BenchRow.of("influence", setting, peer, spread, threads=threads, target=TARGET)
