"""Sampling examples: its share of an update, and the slowest task in tokens a second. An update waits for its batch."""

import time
from collections.abc import Iterator
from functools import partial

from lengen.bench.row import BenchRow
from lengen.bench.timing import compare, num_threads, spread_of
from lengen.bench.training_step import cases, is_wide, our_steps, steps_of
from lengen.config import RunConfig
from lengen.experiments.presets import RANGES
from lengen.seeding import rng_for
from lengen.tasks import TASKS, ParityScratchpad, SparseParity, Task, VariableAssignment
from lengen.train.loop import build_decoder
from lengen.train.update import build_optimizer

NUM_STEPS, NUM_REPEATS = 8, 7
LARGEST_SHARE = 0.02
TOKENS_A_SECOND = 200_000
BATCH_SIZE = 64
SECONDS_A_ROUND, NUM_ROUNDS = 0.1, 3

# Default settings of every task, and the settings of the paper that cost the most.
SAMPLED: tuple[Task, ...] = (
    *(task() for task in TASKS.values()),
    SparseParity(k_train=12),
    ParityScratchpad(jump=4),
    VariableAssignment(depth=5),
)


def measure() -> Iterator[BenchRow]:
    with num_threads(1):
        for setting, config, _ in cases():
            if not is_wide(config):  # the promise is for the `cpu` presets
                yield _share_of_step(setting, config)
        yield _slowest_task()


def _share_of_step(setting: str, config: RunConfig) -> BenchRow:
    decoder = build_decoder(config)
    optimizer = build_optimizer(decoder, config.weight_decay)
    update = partial(our_steps, decoder, optimizer, steps_of(config, NUM_STEPS), config)
    spread = compare(update, partial(steps_of, config, NUM_STEPS), NUM_REPEATS)
    return BenchRow.of("data", setting, "the update it feeds", spread, target=LARGEST_SHARE, bound="at most")


def _slowest_task() -> BenchRow:
    """As training draws them (every length of the training range in turn), and at the longest test length."""
    spreads = []
    for task in SAMPLED:
        ranges = RANGES[task.name]
        for lengths in (task.lengths_between(ranges.min_length, ranges.max_length), (max(ranges.eval_lengths),)):
            spreads.append(spread_of([tokens_a_second(task, lengths) / TOKENS_A_SECOND for _ in range(NUM_ROUNDS)]))
    slowest = min(spreads, key=lambda spread: spread.median)
    # Which task it is stays out of the setting: the next measurement of this row has to find it.
    return BenchRow.of("data", "slowest of all tasks", f"{TOKENS_A_SECOND:,} tokens a second", slowest, target=1.0)


def tokens_a_second(task: Task, lengths: tuple[int, ...]) -> float:
    num_tokens, step, start = 0, 0, time.process_time()
    while (seconds := time.process_time() - start) < SECONDS_A_ROUND:
        batch = task.sample(rng_for(0, "benchmark", step), BATCH_SIZE, lengths[step % len(lengths)])
        num_tokens += batch.tokens.size
        step += 1
    return num_tokens / seconds
