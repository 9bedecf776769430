"""One of the processes that `test_distributed.py` starts: every scenario in turn, each in a folder of its own."""

import sys
from dataclasses import replace
from pathlib import Path

from lengen.config import RunConfig
from lengen.experiments.presets import preset_config
from lengen.results import RunFolder
from lengen.train import loop
from lengen.train.distributed import Processes, join_processes

LOST_AT = 13  # steps; the last checkpoint before it is at 10


def uneven_config() -> RunConfig:
    """Three groups of three examples: two processes cannot share them equally, so a mean of their means is wrong."""
    return replace(preset_config("fig2-jump1", "smoke"), batch_size=9, lengths_per_batch=3, log_every=1)


def train_until_lost(folder: RunFolder, processes: Processes) -> None:
    """Die in the middle of a step, without a chance to save."""
    real, calls = loop.training_step, iter(range(LOST_AT))

    def step(*args):
        if next(calls, None) is None:
            raise MemoryError
        return real(*args)

    loop.training_step = step
    try:
        loop.train(uneven_config(), folder, quiet=True, processes=processes)
    except MemoryError:
        pass
    finally:
        loop.training_step = real


def train_normalised_per_rank(folder: RunFolder, processes: Processes) -> None:
    """The mistake: each process divides by its own number of targets, and the means are averaged."""
    real = loop.training_step

    def step(forward, optimizer, batches, learning_rate, config, processes):
        own = [processes.slice(batch) for batch in batches]
        return real(forward, optimizer, own, learning_rate, config, replace(processes, rank=0, size=1))

    loop.training_step = step
    loop.train(uneven_config(), folder, quiet=True, processes=processes)
    loop.training_step = real


def main(out: Path) -> None:
    with join_processes("cpu") as processes:
        config = uneven_config()
        loop.train(config, RunFolder(out / "copies"), quiet=True, processes=processes)
        loop.train(config, RunFolder(out / "slices"), quiet=True, processes=processes, sharding="full")
        train_normalised_per_rank(RunFolder(out / "per-rank"), processes)
        train_until_lost(RunFolder(out / "two-then-one"), processes)
        for name, sharding in (("one-then-copies", "none"), ("one-then-slices", "full")):
            loop.train(config, RunFolder(out / name), resume=True, quiet=True, processes=processes, sharding=sharding)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
