"""Sparse functional attention with a local key: how its time grows with length, and its ratio to the definition."""

import math
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from lengen.bench.row import BenchRow, Spread
from lengen.bench.timing import compare, num_threads, seconds_of, spread_of
from lengen.seeding import rng_for
from lengen.theory.attention import SparseAttention, attend_all_sets
from lengen.theory.instances import random_attention, random_tokens

VOCAB_SIZE, LOCALITY = 8, 16
LONGEST = {2: 1_000_000, 3: 100_000}  # length by sparsity
MOST_SETS = 2**23  # the definition holds every set at once: these take a gigabyte
NUM_REPEATS = 3
LARGEST_EXPONENT = 1.1
MOST_SECONDS, MOST_MEGABYTES = 3.0, 1_024


def hypothesis_of(sparsity: int) -> SparseAttention:
    return random_attention(rng_for(0, "benchmark/tables", sparsity), sparsity, LOCALITY, VOCAB_SIZE, 0.3)


def evaluate(hypothesis: SparseAttention, length: int) -> None:
    hypothesis(random_tokens(rng_for(0, "benchmark/tokens", length), VOCAB_SIZE, 1, length))


def define(hypothesis: SparseAttention, length: int) -> None:
    tokens = random_tokens(rng_for(0, "benchmark/tokens", length), VOCAB_SIZE, 1, length)
    attend_all_sets(hypothesis.key, hypothesis.value, hypothesis.sparsity, tokens)


def largest_length(sparsity: int) -> int:
    """The longest sequence whose sets the definition may still visit here."""
    length = sparsity
    while math.comb(length + 1, sparsity) <= MOST_SETS:
        length += 1
    return length


def measure() -> Iterator[BenchRow]:
    with num_threads(1):
        for sparsity, longest in LONGEST.items():
            hypothesis = hypothesis_of(sparsity)
            lengths = [longest // 64, longest // 16, longest // 4, longest]
            rounds = [
                [seconds_of(partial(evaluate, hypothesis, length)) for length in lengths] for _ in range(NUM_REPEATS)
            ]
            yield BenchRow.of(
                "sparse-attention",
                f"k={sparsity}: exponent of time against length, up to {longest:,}",
                "linear growth",
                spread_of([log_log_slope(lengths, seconds) for seconds in rounds]),
                target=LARGEST_EXPONENT,
                bound="at most",
            )
            yield BenchRow.of(
                "sparse-attention",
                f"k={sparsity}: length {longest:,}",
                f"{MOST_SECONDS:g} s",
                spread_of([seconds[-1] / MOST_SECONDS for seconds in rounds]),
                target=1.0,
                bound="at most",
            )
            yield BenchRow.of(
                "sparse-attention",
                f"k={sparsity}: peak memory at length {longest:,}, torch included",
                f"{MOST_MEGABYTES:,} MB",
                _exactly(peak_megabytes(sparsity, longest) / MOST_MEGABYTES),
                target=1.0,
                bound="at most",
            )
            short = largest_length(sparsity)
            spread = compare(partial(evaluate, hypothesis, short), partial(define, hypothesis, short), NUM_REPEATS)
            yield BenchRow.of("sparse-attention", f"k={sparsity}: length {short:,}", "the definition", spread)


def log_log_slope(lengths: list[int], seconds: list[float]) -> float:
    slope, _ = statistics.linear_regression([math.log(x) for x in lengths], [math.log(y) for y in seconds])
    return slope


def peak_megabytes(sparsity: int, length: int) -> float:
    """In a process of its own: this one has seen larger things, and `getrusage` of a child would still count them."""
    code = (
        "from lengen.bench.sparse_attention import evaluate, hypothesis_of; "
        f"evaluate(hypothesis_of({sparsity}), {length}); "
        "print(open('/proc/self/status').read())"
    )
    status = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


def _exactly(value: float) -> Spread:
    return Spread(value, value, value)
