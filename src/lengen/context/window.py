"""Which tokens of a window of text are far, recent, and predicted (Sec. 5.3)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """An example has `long` tokens; the last is predicted from the `long` − 1 before it.

    The `short` most recent of those, X_{L̄−L} … X_{L̄−1}, are always visible. The far ones are X_1 … X_{L̄−L−1}: the
    paper also speaks of "the first L̄ − L tokens", but X_{L̄−L} is already among the recent ones, and its own range for
    j is [L̄ − L − 1].

    With more than one target, a window of text serves as many examples: the tokens that follow X_L̄ are predicted as
    well, each from all before it. Their far tokens are the same, so a pass without one of these serves them all; the
    i-th has i more recent ones.
    """

    short: int
    long: int
    num_targets: int = 1

    def __post_init__(self) -> None:
        if self.short < 1:
            raise ValueError(f"--short {self.short} is too small; use at least 1")
        if self.num_far < 1:
            raise ValueError(
                f"--long {self.long} leaves no far token beyond the {self.short} recent ones and the predicted one; "
                f"use at least {self.short + 2}"
            )

    def num_windows(self, flag: str, num_examples: int) -> int:
        """How many windows of text have so many examples."""
        num_windows, rest = divmod(num_examples, self.num_targets)
        if rest:
            raise ValueError(
                f"{flag} {num_examples} is no multiple of --num-targets {self.num_targets}; "
                f"use {num_examples - rest + self.num_targets}"
            )
        return num_windows

    @property
    def num_tokens(self) -> int:
        return self.long + self.num_targets - 1

    @property
    def num_inputs(self) -> int:
        return self.num_tokens - 1

    @property
    def num_far(self) -> int:
        return self.long - self.short - 1
