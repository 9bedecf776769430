"""What every task is: a sampler of sequences that knows its tokens, its coupled ids, and how length sets its size."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, SupportsIndex

import numpy as np
from jaxtyping import Int

from lengen.checks import require


class Examples(NamedTuple):
    """A batch of one length: no padding. Slots below `prompt_len` are given; the rest is to be predicted."""

    tokens: Int[np.ndarray, "B T"]
    coupled_ids: Int[np.ndarray, "B T"]  # the truth that position coupling is built on; 0 is reserved for separators
    prompt_len: int
    length: int  # the paper's x-axis, as asked for


@dataclass(frozen=True)
class Task(ABC):
    """A synthetic task. Fields are its settings; `length` always means the paper's x-axis."""

    name: ClassVar[str]
    length_rule: ClassVar[str]  # how the size follows from the length, in one line

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """Token names; a token's id is its index here."""

    @abstractmethod
    def check_length(self, length: int) -> None:
        """Raise a ValueError that names the nearest fitting length if `length` does not fit."""

    @abstractmethod
    def num_tokens(self, length: int) -> int:
        """Tokens in one example, prompt and target together."""

    @abstractmethod
    def num_targets(self, length: int) -> int:
        """Tokens to predict in one example: always the last ones."""

    @abstractmethod
    def max_coupled_id(self, length: int) -> int:
        """The largest coupled id an example of this length can have."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """(tokens, coupled_ids), each [B, T], for a length that was checked."""

    def sample(self, rng: np.random.Generator, batch_size: int, length: int) -> Examples:
        self.check_length(length)
        tokens, coupled_ids = self._draw(rng, batch_size, length)
        assert tokens.shape == coupled_ids.shape == (batch_size, self.num_tokens(length))
        return Examples(tokens, coupled_ids, self.num_tokens(length) - self.num_targets(length), length)

    @property
    def num_stages(self) -> int:
        """How many steps a curriculum from easy to hard has; most tasks have no easier version of themselves."""
        return 1

    def at_stage(self, stage: int) -> "Task":
        """What training draws from at stage 1 … num_stages; at the last one, the task without settings of tests."""
        assert stage == self.num_stages
        return self

    def fits(self, length: int) -> bool:
        try:
            self.check_length(length)
        except ValueError:
            return False
        return True

    def lengths_between(self, low: int, high: int) -> tuple[int, ...]:
        """Every length of the closed interval that fits."""
        lengths = tuple(length for length in range(low, high + 1) if self.fits(length))
        if not lengths:
            raise ValueError(f"no length from {low} to {high} fits {self.name}; {self.length_rule}")
        return lengths

    def names_of(self, token_ids: Iterable[SupportsIndex]) -> list[str]:
        vocabulary = self.vocabulary
        return [vocabulary[token_id] for token_id in token_ids]


def require_even_length(task: Task, length: int, minimum: int) -> None:
    """For the tasks whose x-axis counts two tokens for each step."""
    require(length >= minimum, f"length={length} is too short for {task.name}", f"use at least {minimum}")
    require(length % 2 == 0, f"length={length} is odd, but {task.length_rule}", f"try {length - 1} or {length + 1}")


def column(batch_size: int, value: int) -> np.ndarray:
    """The same token or id for every example of a batch: shape [B, 1]."""
    return np.full((batch_size, 1), value, dtype=np.int64)


def rows(batch_size: int, *ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """Ids that do not depend on the input, repeated for every example of a batch: shape [B, T]."""
    row = np.concatenate([np.asarray(part, dtype=np.int64) for part in ids])
    return np.tile(row, (batch_size, 1))
