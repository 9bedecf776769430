"""Greedy decoding that feeds predicted ids back: against `transformers` generate at equal size, and without a cache."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import torch

from lengen.batch import Batch, sample_batch
from lengen.bench import peer
from lengen.bench.row import BenchRow
from lengen.bench.timing import compare, num_threads
from lengen.config import RunConfig
from lengen.decode import Decoded, Prompts, greedy_decode
from lengen.experiments.presets import preset_config
from lengen.model.decoder import Decoder
from lengen.seeding import rng_for
from lengen.train.loop import build_decoder

PROMPT_LENGTH = 20  # the paper's: 12 tokens of prompt
BATCH_SIZES = (1, 16)
NUM_NEW = (200, 1_000)
NUM_REPEATS, NUM_UNCACHED_REPEATS = 3, 2  # without a cache, 1,000 tokens take half a minute
TARGET = 2.0


def examples_of(config: RunConfig, batch_size: int) -> Batch:
    return sample_batch(config.task, config.scheme, rng_for(0, "bench/decode"), batch_size, PROMPT_LENGTH, False)


def decode(decoder: Decoder, batch: Batch, num_new: int, use_cache: bool = True) -> Decoded:
    placeholder = torch.zeros((len(batch.token_ids), num_new), dtype=torch.int64)  # its ids are predicted
    return greedy_decode(decoder, Prompts.of(batch), placeholder, use_cache)


def measure() -> Iterator[BenchRow]:
    base = preset_config("fig2-jump1", "cpu")
    assigner = replace(base.scheme.assigner, max_position_id=max(NUM_NEW))
    config = replace(base, scheme=replace(base.scheme, assigner=assigner))
    decoder = build_decoder(config).eval()
    model = peer.build_peer(config.model, len(config.task.vocabulary)).eval()
    for batch_size in BATCH_SIZES:
        batch = examples_of(config, batch_size)
        prompts = batch.token_ids[:, : batch.prompt_len]
        for num_new, threads in product(NUM_NEW, (1, 2)):
            ours, theirs = partial(decode, decoder, batch, num_new), partial(peer.generate, model, prompts, num_new)
            with num_threads(threads):
                spread = compare(ours, theirs, NUM_REPEATS)
            setting = f"{num_new:,} new tokens with predicted ids, batch {batch_size}"
            yield BenchRow.of("decoding", setting, "transformers generate", spread, threads=threads, target=TARGET)
    alone = examples_of(config, batch_size=1)
    for num_new in NUM_NEW:
        with num_threads(1):
            spread = compare(
                partial(decode, decoder, alone, num_new),
                partial(decode, decoder, alone, num_new, False),
                NUM_UNCACHED_REPEATS,
            )
        yield BenchRow.of("decoding", f"{num_new:,} new tokens with predicted ids, batch 1", "no cache", spread)
