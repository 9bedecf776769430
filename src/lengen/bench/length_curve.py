"""A length curve in one pass a length, against greedy decoding by `transformers` generate: same model, same results."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from lengen.batch import sample_batch
from lengen.bench import peer
from lengen.bench.row import BenchRow
from lengen.bench.timing import compare, num_threads
from lengen.config import RunConfig
from lengen.evaluate.length_curve import length_curve
from lengen.experiments.presets import RANGES, arm
from lengen.model.decoder import Decoder
from lengen.model.hf import to_hf
from lengen.positions import scheme_named
from lengen.seeding import rng_for
from lengen.stopped import Failed
from lengen.tasks import ParityScratchpad
from lengen.train.loop import build_decoder, training_batches
from lengen.train.update import build_optimizer, training_step

NUM_TRAINING_STEPS = 150  # short lengths become right, long ones do not: a curve of zeros would agree by itself
NUM_REPEATS = 3
SETTING = "parity with scratchpad, lengths 10–200, 192 examples each"


def rope_config() -> RunConfig:
    """Contiguous ids, since `generate` cannot feed coupled ones."""
    config = arm(ParityScratchpad(), scheme_named("rope"), "cpu")
    return replace(config, min_length=6, max_length=14, eval_lengths=RANGES["parity-scratchpad"].eval_lengths)


def briefly_trained(config: RunConfig) -> Decoder:
    decoder = build_decoder(config)
    optimizer = build_optimizer(decoder, config.weight_decay)
    for step in range(NUM_TRAINING_STEPS):
        training_step(decoder, optimizer, training_batches(config, step, config.task), config.learning_rate, config)
    return decoder.eval()


def one_pass_curve(decoder: Decoder, config: RunConfig) -> list[int]:
    curve = length_curve(
        decoder, config.task, config.eval_lengths, config.eval_examples, config.eval_seed, only="exact-tokens"
    )
    return [measurement.correct for measurement in curve]


def generated_curve(model: Any, config: RunConfig) -> list[int]:
    """How many examples of each length `generate` reproduces exactly."""
    counts = []
    for length in config.eval_lengths:
        rng = rng_for(config.eval_seed, "evaluate", length)
        batch = sample_batch(config.task, config.scheme, rng, config.eval_examples, length, False)
        generated = peer.generate(model, batch.token_ids[:, : batch.prompt_len], batch.target_tokens.shape[1])
        counts.append(int((generated == batch.target_tokens).all(1).sum()))
    return counts


def measure() -> Iterator[BenchRow]:
    config = rope_config()
    with num_threads(1):
        decoder = briefly_trained(config)
    model = to_hf(decoder)
    ours, theirs = one_pass_curve(decoder, config), generated_curve(model, config)
    if ours != theirs:
        raise Failed(f"one pass found {ours} examples right at each length, and generate {theirs}")
    for threads in (1, 2):
        with num_threads(threads), torch.no_grad():
            spread = compare(
                lambda: one_pass_curve(decoder, config), lambda: generated_curve(model, config), NUM_REPEATS
            )
        yield BenchRow.of("length-curve", SETTING, "transformers generate", spread, threads=threads, target=8.0)
