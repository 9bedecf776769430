"""Synthetic tasks: numpy only, one family a file, vectorised over the batch."""

from lengen.tasks.addition import Addition
from lengen.tasks.base import Examples, Task
from lengen.tasks.kgram_retrieval import KgramRetrieval
from lengen.tasks.parity_scratchpad import ParityScratchpad
from lengen.tasks.sequence_copy import Copy, StringReversal
from lengen.tasks.sparse_parity import SparseParity
from lengen.tasks.variable_assignment import VariableAssignment

TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (SparseParity, ParityScratchpad, VariableAssignment, StringReversal, Copy, KgramRetrieval, Addition)
}

__all__ = [
    "TASKS",
    "Addition",
    "Copy",
    "Examples",
    "KgramRetrieval",
    "ParityScratchpad",
    "SparseParity",
    "StringReversal",
    "Task",
    "VariableAssignment",
]
