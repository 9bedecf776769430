"""From a sampled batch to the examples that the judges of `solvers.py` read."""

from dataclasses import fields
from typing import Any

from lengen.seeding import rng_for
from lengen.tasks import Examples, Task

from .solvers import SOLVERS, Example


def split(task: Task, batch: Examples) -> list[Example]:
    vocabulary = task.vocabulary  # looked up once: `names_of` builds it anew for every row
    return [
        Example(tuple(vocabulary[token] for token in tokens), tuple(ids), batch.prompt_len, batch.length)
        for tokens, ids in zip(batch.tokens.tolist(), batch.coupled_ids.tolist(), strict=True)
    ]


def judge(task: Task, example: Example) -> Any:
    """What the task's judge read; it raises `Rejected` if the example is wrong."""
    settings = {field.name: getattr(task, field.name) for field in fields(task)}
    return SOLVERS[task.name](example, **settings)


def read_many(task: Task, length: int, num_examples: int, stream: str) -> list[Any]:
    """A batch of its own stream of randomness, judged and read."""
    return [judge(task, example) for example in split(task, task.sample(rng_for(0, stream), num_examples, length))]
