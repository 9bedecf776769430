"""How fast the tasks sample: tokens a second on one thread, against the target of 200,000.

    python benchmarks/tasks.py

A training step waits for its batch, so sampling has to be far faster than a model reads. Batches of 64, drawn once as
training draws them (every length of the training range in turn) and once at the longest test length. Exit code 1 if any
is below the target.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one thread is the claim; numpy reads this when it is imported

import sys
import time

from lengen.experiments.presets import RANGES
from lengen.seeding import rng_for
from lengen.tasks import TASKS, ParityScratchpad, SparseParity, Task, VariableAssignment

TARGET = 200_000  # tokens a second
BATCH_SIZE = 64
SECONDS_A_ROUND = 0.2
NUM_ROUNDS = 3

# Default settings of every task, and the settings of the paper that cost the most.
MEASURED: dict[str, Task] = {
    **{name: task() for name, task in TASKS.items()},
    "sparse-parity, k_train 12": SparseParity(k_train=12),
    "parity-scratchpad, jump 4": ParityScratchpad(jump=4),
    "variable-assignment, depth 5": VariableAssignment(depth=5),
}


def tokens_a_second(task: Task, lengths: tuple[int, ...]) -> float:
    """The best of a few rounds: what the code can do when nothing else wants the core."""
    best, step = 0.0, 0
    task.sample(rng_for(0, "warm-up"), BATCH_SIZE, lengths[0])
    for _ in range(NUM_ROUNDS):
        num_tokens, start = 0, time.perf_counter()
        while time.perf_counter() - start < SECONDS_A_ROUND:
            batch = task.sample(rng_for(0, "benchmark", step), BATCH_SIZE, lengths[step % len(lengths)])
            num_tokens += batch.tokens.size
            step += 1
        best = max(best, num_tokens / (time.perf_counter() - start))
    return best


def main() -> int:
    print(f"batches of {BATCH_SIZE}, one thread, best of {NUM_ROUNDS} rounds of {SECONDS_A_ROUND} s\n")
    print(f"{'task':<30} {'length':>8} {'tokens/s':>12} {'target':>9}  met")
    all_met = True
    for label, task in MEASURED.items():
        ranges = RANGES[task.name]
        training = task.lengths_between(ranges.min_length, ranges.max_length)
        longest = max(ranges.eval_lengths)
        for shown, lengths in ((f"{training[0]}-{training[-1]}", training), (str(longest), (longest,))):
            rate = tokens_a_second(task, lengths)
            all_met &= rate >= TARGET
            print(f"{label:<30} {shown:>8} {rate:>12,.0f} {TARGET:>9,}  {'yes' if rate >= TARGET else 'NO'}")
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
