"""Commands that need no torch answer at once."""

import resource
import subprocess
import sys
from collections.abc import Iterator

from lengen.bench.row import BenchRow
from lengen.bench.timing import spread_of

COMMANDS = (["--help"], ["sample", "parity-scratchpad", "--length", "8"])
NUM_REPEATS = 9
MOST_SECONDS = 1.0


def measure() -> Iterator[BenchRow]:
    seconds: dict[str, list[float]] = {" ".join(arguments): [] for arguments in COMMANDS}
    for _ in range(NUM_REPEATS):
        for arguments in COMMANDS:
            before = _child_seconds()
            subprocess.run([sys.executable, "-m", "lengen", *arguments], check=True, capture_output=True)
            seconds[" ".join(arguments)].append(_child_seconds() - before)
    for command, times in seconds.items():
        spread = spread_of([taken / MOST_SECONDS for taken in times])
        yield BenchRow.of("startup", f"lengen {command}", f"{MOST_SECONDS:g} s", spread, target=1.0, bound="at most")


def _child_seconds() -> float:
    """Processor time of all child processes so far: other jobs on the machine do not add to it."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
