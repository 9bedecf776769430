"""Timing two sides in turn, so that whatever else the machine does falls on both."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from lengen.bench.row import Spread


def compare(ours: Callable[[], object], peer: Callable[[], object], repeats: int) -> Spread:
    """How many times longer the peer takes: one ratio a repeat, after one repeat to warm up."""
    ratios = []
    for repeat in range(repeats + 1):
        # Who goes first alternates: a clock that drifts favours neither.
        first, second = (ours, peer) if repeat % 2 else (peer, ours)
        seconds = {first: seconds_of(first), second: seconds_of(second)}
        if repeat:
            ratios.append(seconds[peer] / seconds[ours])
    return spread_of(ratios)


def seconds_of(work: Callable[[], object]) -> float:
    """On one thread the processor's own time, which other processes do not add to; on several the clock on the wall."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    work()
    return clock() - start


def spread_of(values: Sequence[float]) -> Spread:
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


@contextmanager
def num_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
