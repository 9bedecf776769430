"""What the training loop asks of whatever it trains on."""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch

from lengen.model.decoder import Decoder
from lengen.results import Row
from lengen.train.curriculum import Curriculum
from lengen.train.distributed import Processes
from lengen.train.settings import Settings
from lengen.train.update import Forward


@dataclass(frozen=True)
class Update:
    """What one update says of itself."""

    loss: float
    accuracy: float
    logged: dict[str, float | int] = field(default_factory=dict)  # besides loss, accuracy and learning rate
    news: str = ""


@dataclass(frozen=True)
class Measured:
    logged: dict[str, float | int]
    words: str
    rows: list[Row]


@runtime_checkable
class Work(Protocol):
    """What is trained and how it is measured. Nothing but `curriculum` may depend on the training so far."""

    curriculum: Curriculum

    @property
    def config(self) -> Settings: ...

    @property
    def milestone(self) -> int | None:
        """A step whose checkpoint is kept, so that other runs can start from it."""

    def describe(self) -> dict[str, Any]:
        """For run.json: config, label and headline_metric."""

    def difference(self, saved: dict[str, Any]) -> str | None:
        """What keeps this run from continuing one with the saved config, in words."""

    def build(self, processes: Processes) -> Decoder: ...

    def update(
        self,
        forward: Forward,
        decoder: Decoder,
        optimizer: torch.optim.Optimizer,
        step: int,
        learning_rate: float,
        processes: Processes,
    ) -> Update: ...

    def measure(self, decoder: Decoder, step: int) -> Measured: ...
