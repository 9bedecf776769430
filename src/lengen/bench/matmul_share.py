"""How much of this machine's own matmul speed an update reaches: FLOP/s of the step over FLOP/s of a large product.

Counted in two ways. *Executed*: by torch's own counter, so that work that is skipped (prompt slots of the last layer,
repeated inputs of the first) counts for nothing; nor does fused attention, which that counter does not see. *Model*:
every linear layer at every token of the batch, as model FLOPs utilisation is usually told; here doing less does count.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch.utils.flop_counter import FlopCounterMode

from lengen.bench.row import BenchRow, Spread
from lengen.bench.timing import compare, num_threads
from lengen.bench.training_step import cases, our_steps, steps_of
from lengen.train.loop import build_decoder
from lengen.train.update import build_optimizer

MATRIX_SIZE = 1024
NUM_PRODUCTS = 10
MATMUL_FLOPS = NUM_PRODUCTS * 2 * MATRIX_SIZE**3
SMALLEST_WIDTH = 128  # narrower models spend their time elsewhere: no share was promised for them
TARGET = 0.6


def measure() -> Iterator[BenchRow]:
    matrix = torch.randn(MATRIX_SIZE, MATRIX_SIZE, generator=torch.Generator().manual_seed(0))

    def multiply() -> None:
        for _ in range(NUM_PRODUCTS):
            torch.mm(matrix, matrix)

    for setting, config, _ in cases():
        decoder = build_decoder(config)
        optimizer = build_optimizer(decoder, config.weight_decay)
        steps = steps_of(config, 2 if config.model.width >= 1024 else 8)

        train = partial(our_steps, decoder, optimizer, steps, config)
        with FlopCounterMode(display=False) as counter:
            train()
        linear = sum(module.weight.numel() for module in decoder.modules() if isinstance(module, torch.nn.Linear))
        num_tokens = sum(batch.input_token_ids.numel() for batches in steps for batch in batches)
        flops = {"executed": counter.get_total_flops(), "model": 6 * linear * num_tokens}
        target = TARGET if config.model.width >= SMALLEST_WIDTH else None
        for threads in (1, 2):
            with num_threads(threads):
                times = compare(train, multiply, repeats=3)
            for kind, number in flops.items():
                work = number / MATMUL_FLOPS
                share = Spread(times.median * work, times.low * work, times.high * work)
                yield BenchRow.of(
                    "matmul-share",
                    f"{setting}, {kind} FLOPs",
                    f"a {MATRIX_SIZE}² matrix product",
                    share,
                    threads=threads,
                    target=target,
                )
