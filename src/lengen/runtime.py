"""How a process of ours uses the machine: its threads, and the memory it keeps."""

import ctypes
import sys

import torch

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # glibc's malloc.h


def prepare_torch(num_threads: int) -> None:
    torch.set_num_threads(num_threads)
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Have glibc keep what is freed instead of giving it back to the kernel; elsewhere, do nothing.

    By default a large tensor is mapped anew each time it is made, and each of its pages faults on first use: a fifth of
    a language model's step (docs/performance.md).
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
