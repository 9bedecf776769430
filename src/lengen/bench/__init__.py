"""Every claim about speed as a ratio to a named peer, measured in one process with the two sides taking turns.

One file a benchmark, each with a `measure()` that yields rows as they come. Nothing here is imported by the library.
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from lengen.bench.row import BenchRow
from lengen.checks import unknown_name


@dataclass(frozen=True)
class Benchmark:
    about: str
    module: str

    def measure(self) -> Iterator[BenchRow]:
        rows: Iterator[BenchRow] = importlib.import_module(self.module).measure()
        return rows


BENCHMARKS: dict[str, Benchmark] = {
    "training-step": Benchmark("one update, against transformers GPT-NeoX", "lengen.bench.training_step"),
    "matmul-share": Benchmark("FLOP/s of an update, against this machine's matmul", "lengen.bench.matmul_share"),
    "length-curve": Benchmark("accuracy by length, against transformers generate", "lengen.bench.length_curve"),
    "decoding": Benchmark("greedy decoding, against transformers generate and without cache", "lengen.bench.decoding"),
    "data": Benchmark("sampling examples, against the update that waits for them", "lengen.bench.data"),
    "sparse-attention": Benchmark(
        "local evaluation, against length and the definition", "lengen.bench.sparse_attention"
    ),
    "influence": Benchmark("leave-one-out influence, against one pass a token", "lengen.bench.influence"),
    "startup": Benchmark("commands that need no torch, against one second", "lengen.bench.startup"),
    "sweep": Benchmark("four runs on two cores, against one core", "lengen.bench.sweep"),
}


def benchmark_named(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]
