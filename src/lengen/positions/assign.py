"""Which position id each token gets. One assigner a class; every draw is per example unless it says otherwise.

Ids run from 1 to `max_position_id` (the paper's L_max); 0 is reserved for separators of coupled tasks. At test time the
ids are the plain ones: 1, 2, … for the uncoupled assigners (Sec. 2.2), the task's own ids for the coupled ones.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Int

from lengen.checks import check_choices, require
from lengen.tasks.base import Examples, Task

PositionIds = Int[np.ndarray, "B T"]


@dataclass(frozen=True)
class Assigner(ABC):
    name: ClassVar[str]
    about: ClassVar[str]
    predicts_ids: ClassVar[bool] = False  # True: the model predicts the next id, and decoding feeds it back

    max_position_id: int = 256

    def __post_init__(self) -> None:
        require(self.max_position_id >= 1, f"max_position_id={self.max_position_id} is too small", "use at least 1")
        check_choices(self)

    @property
    def is_bounded_at_test(self) -> bool:
        """Whether test ids, too, are drawn up to `max_position_id`; plain ids can go beyond it."""
        return False

    @abstractmethod
    def __call__(self, examples: Examples, rng: np.random.Generator, training: bool) -> PositionIds:
        """The ids of every slot, prompt and target."""

    def largest_id(self, task: Task, length: int) -> int:
        """The largest id that an unshifted example of this length has."""
        return task.num_tokens(length)

    def check_training_length(self, task: Task, length: int) -> None:
        """Raise if the ids of a training example of this length cannot be drawn below `max_position_id`."""
        needed = self.largest_id(task, length)
        require(
            needed <= self.max_position_id,
            f"training length={length} of {task.name} needs ids up to {needed}, above "
            f"max_position_id={self.max_position_id}",
            f"set --assigner.max_position_id to at least {needed} or train on shorter lengths",
        )

    def check_num_tokens(self, num_tokens: int) -> None:
        """The same for text, whose windows all have the same number of tokens."""
        require(
            num_tokens <= self.max_position_id,
            f"{num_tokens} tokens do not fit max_position_id={self.max_position_id}",
            f"set --assigner.max_position_id to at least {num_tokens}",
        )


@dataclass(frozen=True)
class Contiguous(Assigner):
    name: ClassVar[str] = "contiguous"
    about: ClassVar[str] = "1, 2, 3, …"

    def __call__(self, examples: Examples, rng: np.random.Generator, training: bool) -> PositionIds:
        return _contiguous(examples)


@dataclass(frozen=True)
class Shifted(Assigner):
    name: ClassVar[str] = "shifted"
    about: ClassVar[str] = "1, 2, 3, … plus one random offset an example while training"

    test_offset: Literal["none", "random"] = "none"

    @property
    def is_bounded_at_test(self) -> bool:
        return self.test_offset == "random"

    def __call__(self, examples: Examples, rng: np.random.Generator, training: bool) -> PositionIds:
        ids = _contiguous(examples)
        if training or self.test_offset == "random":
            ids = ids + rng.integers(0, self.max_position_id - ids.shape[1], size=(len(ids), 1), endpoint=True)
        return ids


@dataclass(frozen=True)
class Pose(Assigner):
    """Positional skip-wise training (Sec. 2.2): contiguous chunks with random gaps between them.

    With c sorted draws J_(1) ≤ … ≤ J_(c) from Unif[L̄ − ℓ], chunk i starts at J_(i) + (tokens before it), so the ids
    increase strictly and stay below L̄. The original PoSE (Zhu et al., 2023) pins the first chunk to the lowest id and
    draws each further gap above the one before; its skipping of *content* needs text longer than the window, which a
    synthetic example is not.
    """

    name: ClassVar[str] = "pose"
    about: ClassVar[str] = "chunks of contiguous ids with random gaps while training; 1, 2, 3, … at test"

    num_chunks: int = 2
    pose_variant: Literal["paper", "original"] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.num_chunks >= 1, f"num_chunks={self.num_chunks} is too small", "use at least 1")

    def check_training_length(self, task: Task, length: int) -> None:
        super().check_training_length(task, length)
        self._check_room(task.num_tokens(length))

    def check_num_tokens(self, num_tokens: int) -> None:
        self._check_room(num_tokens)

    def _highest_start(self, num_tokens: int) -> int:
        # Unif[L̄ − ℓ] as the paper writes it leaves the last id unused; the original uses it.
        return self.max_position_id - num_tokens + (self.pose_variant == "original")

    def _check_room(self, num_tokens: int) -> None:
        require(
            self._highest_start(num_tokens) >= 1,
            f"PoSE has no room to shift {num_tokens} tokens below max_position_id={self.max_position_id}",
            f"set --assigner.max_position_id to at least {num_tokens + 1}",
        )
        require(
            num_tokens >= self.num_chunks,
            f"num_chunks={self.num_chunks} exceeds the {num_tokens} tokens of an example",
            "use fewer chunks or longer training lengths",
        )

    def __call__(self, examples: Examples, rng: np.random.Generator, training: bool) -> PositionIds:
        ids = _contiguous(examples)
        if not training:
            return ids
        batch_size, num_tokens = ids.shape
        self._check_room(num_tokens)
        starts = self._chunk_starts(rng, batch_size, self._highest_start(num_tokens))  # [B, c], non-decreasing
        return ids - 1 + np.take_along_axis(starts, self._chunk_of_slot(rng, batch_size, num_tokens), axis=1)

    def _chunk_starts(self, rng: np.random.Generator, batch_size: int, highest: int) -> np.ndarray:
        if self.pose_variant == "paper":
            return np.sort(rng.integers(1, highest, size=(batch_size, self.num_chunks), endpoint=True), axis=1)
        starts = np.ones((batch_size, self.num_chunks), dtype=np.int64)
        for chunk in range(1, self.num_chunks):
            starts[:, chunk] = rng.integers(starts[:, chunk - 1], highest, endpoint=True)
        return starts

    def _chunk_of_slot(self, rng: np.random.Generator, batch_size: int, num_tokens: int) -> np.ndarray:
        # c − 1 distinct cuts among the num_tokens − 1 gaps between neighbours: every chunk holds a token.
        gap_ranks = rng.random((batch_size, num_tokens - 1)).argsort(axis=1).argsort(axis=1)
        is_cut = gap_ranks < self.num_chunks - 1
        return np.concatenate([np.zeros((batch_size, 1), dtype=np.int64), is_cut.cumsum(axis=1)], axis=1)


@dataclass(frozen=True)
class Randomized(Assigner):
    """A sorted random subset of all ids, in training and at test alike (Ruoss et al., 2023)."""

    name: ClassVar[str] = "randomized"
    about: ClassVar[str] = "a sorted random subset of 1 … max_position_id, at test too"

    @property
    def is_bounded_at_test(self) -> bool:
        return True

    def __call__(self, examples: Examples, rng: np.random.Generator, training: bool) -> PositionIds:
        batch_size, num_tokens = examples.tokens.shape
        require(
            num_tokens <= self.max_position_id,
            f"{num_tokens} tokens cannot have different ids up to max_position_id={self.max_position_id}",
            "use shorter examples or a larger --assigner.max_position_id",
        )
        order = rng.random((batch_size, self.max_position_id)).argsort(axis=1)
        return 1 + np.sort(order[:, :num_tokens], axis=1)


@dataclass(frozen=True)
class Coupled(Assigner):
    """The task's coupled ids, shifted by a random offset while training so that all stay ≤ L_max (Sec. 5.2)."""

    name: ClassVar[str] = "coupled"
    about: ClassVar[str] = "the task's coupled ids plus a random offset while training; true ids are fed in decoding"

    shift_reserved: bool = False  # id 0 (separators) shifts with the rest
    test_offset: Literal["none", "random"] = "none"
    offset_per: Literal["example", "batch"] = "example"  # "batch": as Abacus does (McLeish et al., 2024)

    @property
    def is_bounded_at_test(self) -> bool:
        return self.test_offset == "random"

    def largest_id(self, task: Task, length: int) -> int:
        return task.max_coupled_id(length)

    def __call__(self, examples: Examples, rng: np.random.Generator, training: bool) -> PositionIds:
        ids = examples.coupled_ids
        if not training and self.test_offset == "none":
            return ids.copy()
        largest = ids.max(axis=1, keepdims=True)
        if self.offset_per == "batch":
            largest = largest.max(axis=0, keepdims=True)
        offset = rng.integers(0, self.max_position_id - largest, endpoint=True)
        return ids + offset if self.shift_reserved else np.where(ids > 0, ids + offset, 0)


@dataclass(frozen=True)
class Predicted(Coupled):
    """Predictive position coupling: coupled ids that the model predicts with each token (Sec. 5.2)."""

    name: ClassVar[str] = "predicted"
    about: ClassVar[str] = "coupled ids that the model itself predicts and feeds back in decoding (PPC)"
    predicts_ids: ClassVar[bool] = True


def _contiguous(examples: Examples) -> PositionIds:
    batch_size, num_tokens = examples.tokens.shape
    return np.tile(np.arange(1, num_tokens + 1), (batch_size, 1))


ASSIGNERS: dict[str, type[Assigner]] = {
    assigner.name: assigner for assigner in (Contiguous, Shifted, Pose, Randomized, Coupled, Predicted)
}
