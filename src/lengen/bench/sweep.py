"""A sweep of four runs: two single-thread processes against one."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lengen.bench.row import BenchRow
from lengen.bench.timing import spread_of
from lengen.experiments.presets import preset_config
from lengen.results import RunFolder
from lengen.train.engines import LocalPool
from lengen.train.launch import Job, run_side_by_side, train_job

NUM_RUNS, NUM_STEPS, NUM_REPEATS = 4, 250, 2
TARGET = 1.8


def measure() -> Iterator[BenchRow]:
    ratios = []
    for repeat in range(NUM_REPEATS):
        order = (1, 2) if repeat % 2 else (2, 1)
        seconds = {workers: seconds_with(workers) for workers in order}
        ratios.append(seconds[1] / seconds[2])
    setting = f"{NUM_RUNS} runs of parity with scratchpad, {NUM_STEPS} steps each"
    yield BenchRow.of("sweep", setting, "one core", spread_of(ratios), threads=2, target=TARGET)


def seconds_with(workers: int) -> float:
    config = replace(preset_config("fig2-jump1", "cpu"), steps=NUM_STEPS, eval_lengths=(10, 40, 80))
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            Job(f"seed {seed}", replace(config, seed=seed), RunFolder(Path(folder) / str(seed)))
            for seed in range(NUM_RUNS)
        ]
        start = time.perf_counter()
        for _ in run_side_by_side(jobs, train_job, LocalPool(workers)):
            pass
        return time.perf_counter() - start
