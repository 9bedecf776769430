"""Freed memory is kept: making a large tensor again does not fault its pages again."""

import subprocess
import sys

import pytest

NUM_ELEMENTS = 64 * 2**20 // 4
MAKE_TEN_TENSORS = """
import resource, torch
{prepare}
def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20): torch.zeros({elements})  # the heap grows to what is needed
before = faults()
for _ in range(10): torch.zeros({elements})
print(faults() - before)
"""


def faults_of_ten_tensors(prepare: str) -> int:
    script = MAKE_TEN_TENSORS.format(prepare=prepare, elements=NUM_ELEMENTS)
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator is glibc's")
def test_memory_is_kept() -> None:
    prepare = "from lengen.runtime import prepare_torch; prepare_torch(num_threads=1)"
    # Against the default on this machine: how many faults a mapping costs depends on whether its pages are huge.
    assert faults_of_ten_tensors(prepare) < faults_of_ten_tensors("") / 10
