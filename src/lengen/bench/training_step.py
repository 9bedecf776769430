"""One update, against `transformers` GPT-NeoX on the same examples, at the `cpu` presets and at the paper's width."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from lengen.batch import Batch
from lengen.bench import peer
from lengen.bench.row import BenchRow
from lengen.bench.timing import compare, num_threads
from lengen.config import RunConfig
from lengen.experiments.presets import preset_config
from lengen.model.config import PAPER_MODEL
from lengen.model.decoder import Decoder
from lengen.train.loop import build_decoder, training_batches
from lengen.train.update import build_optimizer, training_step

NUM_STEPS, NUM_REPEATS = 16, 3  # steps a repeat: enough that their mean length is about that of a run
NUM_WIDE_STEPS, NUM_WIDE_REPEATS = 2, 3


def cases() -> Iterator[tuple[str, RunConfig, float]]:
    """(setting, config, target)"""
    for words, config, target in (
        ("sparse parity", preset_config("fig1-k8", "cpu"), 2.5),
        ("parity with scratchpad", preset_config("fig2-jump1", "cpu"), 2.0),
        ("variable assignment", preset_config("fig3a-depth3", "cpu"), 2.0),
        ("parity with scratchpad", wide_config(), 1.3),
    ):
        yield f"{words}, {config.model.num_layers} layers, d={config.model.width}", config, target


def wide_config() -> RunConfig:
    """The paper's width; two layers of it, so that a step takes seconds."""
    return replace(preset_config("fig2-jump1", "cpu"), model=replace(PAPER_MODEL, num_layers=2))


def is_wide(config: RunConfig) -> bool:
    return config.model.width == PAPER_MODEL.width


def steps_of(config: RunConfig, num_steps: int) -> list[list[Batch]]:
    return [training_batches(config, step, config.task) for step in range(num_steps)]


def measure() -> Iterator[BenchRow]:
    for setting, config, target in cases():
        steps = steps_of(config, NUM_WIDE_STEPS if is_wide(config) else NUM_STEPS)
        decoder = build_decoder(config)
        ours = partial(our_steps, decoder, build_optimizer(decoder, config.weight_decay), steps, config)
        model = peer.build_peer(config.model, len(config.task.vocabulary)).train()
        padded = peer.padded_batches([batch for batches in steps for batch in batches], config.batch_size)
        theirs = partial(_peer_steps, model, peer.build_peer_optimizer(model, config), padded, config)
        for threads in (1, 2):
            with num_threads(threads):
                spread = compare(ours, theirs, NUM_WIDE_REPEATS if is_wide(config) else NUM_REPEATS)
            yield BenchRow.of("training-step", setting, peer.NAME, spread, threads=threads, target=target)


def our_steps(decoder: Decoder, optimizer: torch.optim.Optimizer, steps: list[list[Batch]], config: RunConfig) -> None:
    for batches in steps:
        training_step(decoder, optimizer, batches, config.learning_rate, config)


def _peer_steps(
    model: Any, optimizer: torch.optim.Optimizer, padded: list[peer.PaddedBatch], config: RunConfig
) -> None:
    for batch in padded:
        peer.peer_step(model, optimizer, batch, config.clip_norm)
