"""Speed of the linear evaluation of sparse functional attention, on one thread.

    python benchmarks/sparse_attention.py

Prints the time and peak memory at the two sizes of the claim (length 1,000,000 at k = 2 and 100,000 at k = 3, both with
L_local = 16: at most 3 s and 1 GB), the exponent of time against length, and the ratio to the definition's own sum.
"""

import math
import resource
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lengen.seeding import rng_for
from lengen.theory.attention import attend_all_sets
from lengen.theory.instances import random_attention, random_tokens

VOCAB_SIZE, LOCALITY = 8, 16


def seconds(evaluate: Callable[[Tensor], Tensor], length: int) -> float:
    """The best of three evaluations of one sequence."""
    tokens = random_tokens(rng_for(0, "benchmark/tokens", length), VOCAB_SIZE, 1, length)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        evaluate(tokens)
        best = min(best, time.perf_counter() - start)
    return best


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    torch.set_num_threads(1)
    print(f"before any evaluation: {peak_megabytes():.0f} MB peak (torch itself)")
    for sparsity, longest in ((2, 1_000_000), (3, 100_000)):
        hypothesis = random_attention(rng_for(0, "benchmark/tables", sparsity), sparsity, LOCALITY, VOCAB_SIZE, 0.3)
        lengths = [longest // 64, longest // 16, longest // 4, longest]
        times = [seconds(hypothesis, length) for length in lengths]
        for length, took in zip(lengths, times, strict=True):
            print(f"k={sparsity} L_local={LOCALITY} length={length:>9,}: {took:.3f} s, {peak_megabytes():.0f} MB peak")
        exponent = math.log(times[-1] / times[0]) / math.log(lengths[-1] / lengths[0])
        print(f"k={sparsity}: time grows like length^{exponent:.2f}")

        short = {2: 1000, 3: 120}[sparsity]
        brute_force = partial(attend_all_sets, hypothesis.key, hypothesis.value, sparsity)
        ratio = seconds(brute_force, short) / seconds(hypothesis, short)
        print(f"k={sparsity} length={short}: {ratio:.1f} times faster than the sum over all {sparsity}-sets")


if __name__ == "__main__":
    main()
