"""Variable assignment: follow a chain of assignments hidden among others (Sec. 5.2.2, E.3.1, eq. 22)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lengen.checks import require
from lengen.tasks.base import Task, column, rows

BOS, SEP1, SEP2, ARROW = 0, 1, 2, 3
FIRST_VARIABLE = 4
PROMPT_HEAD = 3  # <BOS> v <SEP1> stand before the first assignment, with ids 0, 1, 2


@dataclass(frozen=True)
class VariableAssignment(Task):
    """Chains v1 <- v2, v2 <- v3, … of `depth` assignments, interleaved; the scratchpad writes out the one asked for.

    depth=2, length=12 (2 chains):
      <BOS> v1 <SEP1> v4 <- v5 v1 <- v2 v2 <- v3 v5 <- v6 <SEP2> v1 <- v2 v2 <- v3
    ids:  0  1      2  3  4  5  6  7  8  9 10 11 12 13 14      0  6  7  8  9 10 11

    The ids of the scratchpad say where in the input each of its assignments stands: they depend on the input, so a
    decoder has to predict them. Without the scratchpad the only target is the last variable of the chain.
    """

    name: ClassVar[str] = "variable-assignment"
    length_rule: ClassVar[str] = "length bounds the tokens between <SEP1> and <SEP2>: as many chains of 3·depth as fit"

    depth: int = 2
    num_variables: int = 200  # Table 4
    scratchpad: bool = True

    def __post_init__(self) -> None:
        require(self.depth >= 1, f"depth={self.depth} is too small", "use at least 1")
        require(
            self.num_variables > self.depth,
            f"num_variables={self.num_variables} cannot fill one chain of depth={self.depth}",
            f"use at least {self.depth + 1}",
        )

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return ("<BOS>", "<SEP1>", "<SEP2>", "<-", *(f"v{number}" for number in range(1, self.num_variables + 1)))

    def check_length(self, length: int) -> None:
        shortest, longest = 3 * self.depth, 3 * self.depth * (self.num_variables // (self.depth + 1) + 1) - 1
        require(
            shortest <= length <= longest,
            f"length={length} does not fit depth={self.depth} with num_variables={self.num_variables}",
            f"use a length from {shortest} to {longest}",
        )

    def num_chains(self, length: int) -> int:
        return length // (3 * self.depth)

    def num_tokens(self, length: int) -> int:
        return PROMPT_HEAD + 3 * self.depth * self.num_chains(length) + 1 + self.num_targets(length)

    def num_targets(self, length: int) -> int:
        return 3 * self.depth if self.scratchpad else 1

    def max_coupled_id(self, length: int) -> int:
        return PROMPT_HEAD + 3 * self.depth * self.num_chains(length) - 1

    def _draw(self, rng: np.random.Generator, batch_size: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        depth, num_chains = self.depth, self.num_chains(length)
        num_used = num_chains * (depth + 1)
        # Distinct variables: the first of a random permutation. Chain 0 is the one asked for.
        variables = FIRST_VARIABLE + rng.random((batch_size, self.num_variables)).argsort(axis=1)[:, :num_used]
        chains = variables.reshape(batch_size, num_chains, depth + 1)

        # Place p holds step σ(p) of chain π(p): a uniform interleaving that keeps each chain's own order.
        chain_of_place = rng.permuted(np.tile(np.arange(num_chains).repeat(depth), (batch_size, 1)), axis=1)
        places_by_chain = chain_of_place.argsort(axis=1, kind="stable")  # chain 0's places in order, then chain 1's, …
        step_of_place = np.empty_like(chain_of_place)
        np.put_along_axis(step_of_place, places_by_chain, np.tile(np.arange(depth), num_chains)[None], axis=1)

        example = np.arange(batch_size)[:, None]
        left = chains[example, chain_of_place, step_of_place]
        right = chains[example, chain_of_place, step_of_place + 1]
        prompt = np.concatenate(
            [
                column(batch_size, BOS),
                chains[:, 0, :1],
                column(batch_size, SEP1),
                _assignments(left, right),
                column(batch_size, SEP2),
            ],
            axis=1,
        )
        prompt_ids = rows(batch_size, range(prompt.shape[1] - 1), [0])

        answer = _assignments(chains[:, 0, :-1], chains[:, 0, 1:])
        first_ids = PROMPT_HEAD + 3 * places_by_chain[:, :depth]  # I_1 … I_d: where chain 0 stands in the input
        answer_ids = (first_ids[:, :, None] + np.arange(3)).reshape(batch_size, 3 * depth)
        keep = self.num_targets(length)
        return (
            np.concatenate([prompt, answer[:, -keep:]], axis=1),
            np.concatenate([prompt_ids, answer_ids[:, -keep:]], axis=1),
        )


def _assignments(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left <- right, flattened: [B, n] and [B, n] to [B, 3n]."""
    return np.stack([left, np.full_like(left, ARROW), right], axis=2).reshape(left.shape[0], -1)
