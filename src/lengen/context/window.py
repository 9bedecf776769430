"""Which tokens of an example are far, recent, and predicted (Sec. 5.3)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """An example has `long` tokens; the last is predicted from the `long` − 1 before it.

    The `short` most recent of those, X_{L̄−L} … X_{L̄−1}, are always visible. The far ones are X_1 … X_{L̄−L−1}: the
    paper also speaks of "the first L̄ − L tokens", but X_{L̄−L} is already among the recent ones, and its own range for
    j is [L̄ − L − 1].
    """

    short: int
    long: int

    def __post_init__(self) -> None:
        if self.short < 1:
            raise ValueError(f"--short {self.short} is too small; use at least 1")
        if self.num_far < 1:
            raise ValueError(
                f"--long {self.long} leaves no far token beyond the {self.short} recent ones and the predicted one; "
                f"use at least {self.short + 2}"
            )

    @property
    def num_inputs(self) -> int:
        return self.long - 1

    @property
    def num_far(self) -> int:
        return self.long - self.short - 1
