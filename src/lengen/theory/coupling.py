"""Position coupling (Def. 4.1 and App. D): couplings, their check, and the operator PC[·].

A coupled token joins (rank, token) pairs: which planted tokens it holds (rank 1..k within S*), and what they are.
Three readings of App. D, with reasons in docs/interpretations.md: background ranks are uniform on [k], not on
[ℓ]; PC[·] attends to sets of k' = |ψ(S*)| coupled tokens; and a repeated rank makes a set invalid.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf

import numpy as np
import torch
from jaxtyping import Float, Int

from lengen.theory.assumptions import Finding
from lengen.theory.attention import AttentionClass
from lengen.theory.ensembles import Iid, PlantedEnsemble, TokenLaw
from lengen.theory.keys import Key, TableKey, TableValue, Value, tabulate_key
from lengen.theory.position_laws import ListedPositions, PositionLaw
from lengen.theory.risk import Estimate

CoupledToken = tuple[tuple[int, int], ...]
"""((rank, token), …) in increasing rank."""

Structure = tuple[tuple[int, ...], ...]
"""For each id of ψ(S*), in increasing order, the ranks of the planted positions that share it."""


@dataclass(frozen=True, eq=False)
class CoupledPositions:
    """Q^pos-c at one length: planted sets, each with the ids ψ(1), …, ψ(ℓ), and probabilities."""

    sets: Int[np.ndarray, "c k"]
    ids: Int[np.ndarray, "c L"]
    probabilities: Float[np.ndarray, " c"]

    def structures(self) -> list[Structure]:
        """How each draw distributes the ranks of S* over the ids of ψ(S*)."""
        found = []
        for planted, ids in zip(self.sets, self.ids, strict=True):
            coupled = ids[planted - 1]
            found.append(tuple(tuple((np.flatnonzero(coupled == i) + 1).tolist()) for i in np.unique(coupled)))
        return found


Coupling = Callable[[int], CoupledPositions]


def check_local_coupling(coupling: Coupling, law: PositionLaw, lengths: Iterable[int], locality: int) -> Finding:
    """Def. 4.1 at each of `lengths`: ψ: [ℓ] → [ℓ], the marginal, items 1 to 3, and the smallest L_local that holds."""
    widest = 0
    structure_laws: dict[int, dict[Structure, float]] = {}
    for length in lengths:
        drawn = coupling(length)
        problem = _range_problem(drawn, length) or _marginal_problem(drawn, law, length)
        problem = problem or _lone_background_problem(drawn)
        if problem:
            return Finding("local coupling", False, Estimate.exactly(inf), f"at length {length}, {problem}")
        coupled = np.take_along_axis(drawn.ids, drawn.sets - 1, axis=1)
        widest = max(widest, int((coupled.max(axis=1) - coupled.min(axis=1)).max()))
        structure_law: dict[Structure, float] = {}
        for structure, probability in zip(drawn.structures(), drawn.probabilities, strict=True):
            structure_law[structure] = structure_law.get(structure, 0.0) + float(probability)
        structure_laws[length] = structure_law
    reference_length, reference = next(iter(structure_laws.items()))
    if len({len(structure) for structure in reference}) > 1:
        return Finding("local coupling", False, Estimate.exactly(inf), "|ψ(S*)| is not always the same (item 3)")
    for length, structure_law in structure_laws.items():
        same = structure_law.keys() == reference.keys() and all(
            abs(structure_law[s] - reference[s]) <= 1e-12 for s in reference
        )
        if not same:
            witness = f"the ranks that share an id differ between lengths {reference_length} and {length} (item 3)"
            return Finding("local coupling", False, Estimate.exactly(inf), witness)
    witness = f"the ids of a planted set are up to {widest} apart"
    return Finding("local coupling", widest <= locality, Estimate.exactly(float(widest)), witness)


@dataclass(frozen=True, eq=False)
class PositionCoupler:
    """PC[·] of App. D for one ensemble and coupling: on ensembles, keys, values and classes.

    `structure` (item 3 of Def. 4.1) must be one and the same for every draw, so that the coupled tokens are independent
    of where they are, as Def. 3.2 asks of an ensemble.
    """

    ensemble: PlantedEnsemble
    coupling: Coupling
    structure: Structure
    locality: int

    @property
    def num_ranks(self) -> int:
        """k of the uncoupled ensemble."""
        return self.ensemble.sparsity

    @property
    def sparsity(self) -> int:
        """k' = |ψ(S*)|."""
        return len(self.structure)

    @cached_property
    def vocabulary(self) -> list[CoupledToken]:
        """Every coupled token that can occur: background (one rank, one token), then planted."""
        background: list[CoupledToken] = [
            ((rank, int(token)),) for rank in range(1, self.num_ranks + 1) for token in self.ensemble.mu.support
        ]
        planted = {token for row in self._planted_rows() for token in row}
        return background + sorted(planted - set(background))

    def couple_ensemble(self) -> PlantedEnsemble:
        """PC[P]: the planted set is ψ(S*), the planted tokens are coupled, the background is Unif([k]) × μ."""
        mu = self.ensemble.mu
        if not isinstance(mu, Iid):
            raise ValueError(f"PC[.] reorders the background, so it needs i.i.d. tokens, not {type(mu).__name__}")
        code = {token: index for index, token in enumerate(self.vocabulary)}
        weights = np.zeros(len(code))
        for rank, token in product(range(1, self.num_ranks + 1), mu.support):
            weights[code[((rank, int(token)),)]] = mu.mu[token] / self.num_ranks
        tuples = np.array([[code[token] for token in row] for row in self._planted_rows()])
        return PlantedEnsemble(
            mu=Iid(weights),
            position_law=ListedPositions(self._coupled_sets, self.sparsity, self.ensemble.position_law.shortest),
            token_law=TokenLaw(tuples, self.ensemble.token_law.probabilities),
            label=lambda planted: self.ensemble.label(np.array([self._expand_codes(row) for row in planted.tolist()])),
        )

    def couple_key(self, key: Key) -> TableKey:
        """PC[g_0] of eq. (17), for a position-independent g_0."""

        def rule(_: tuple[int, ...], codes: tuple[int, ...]) -> float:
            expanded = self._expand_codes(codes)
            if expanded is None:
                return -inf
            positions = torch.arange(1, self.num_ranks + 1)[None]
            return float(key(positions, torch.tensor([expanded]))[0])

        return tabulate_key(rule, self.sparsity, self.locality, len(self.vocabulary))

    def couple_value(self, value: Value) -> TableValue:
        """PC[g_1] of eq. (18); the arbitrary y_0 is 0."""
        some_tuple = torch.from_numpy(self.ensemble.token_law.tuples[:1])
        zero = torch.zeros_like(value(some_tuple)[0])
        rows = []
        for codes in product(range(len(self.vocabulary)), repeat=self.sparsity):
            expanded = self._expand_codes(codes)
            rows.append(zero if expanded is None else value(torch.tensor([expanded]))[0])
        return TableValue(torch.stack(rows), self.sparsity, len(self.vocabulary))

    def couple_class(self, attention_class: AttentionClass) -> AttentionClass:
        """PC[H^attn]."""
        keys = {name: self.couple_key(key) for name, key in attention_class.keys.items()}
        values = {name: self.couple_value(value) for name, value in attention_class.values.items()}
        return AttentionClass(keys, values, self.sparsity, self.locality)

    def _planted_rows(self) -> list[tuple[CoupledToken, ...]]:
        return [
            tuple(tuple((rank, int(planted[rank - 1])) for rank in ranks) for ranks in self.structure)
            for planted in self.ensemble.token_law.tuples
        ]

    def _coupled_sets(self, length: int) -> tuple[Int[np.ndarray, "c k"], Float[np.ndarray, " c"]]:
        drawn = self.coupling(length)
        if any(structure != self.structure for structure in drawn.structures()):
            raise ValueError(f"at length {length} the coupling joins other ranks than {self.structure}")
        coupled = np.take_along_axis(drawn.ids, drawn.sets - 1, axis=1)
        return np.array([np.unique(row) for row in coupled]), drawn.probabilities

    def _expand_codes(self, codes: Iterable[int]) -> tuple[int, ...] | None:
        return expand([self.vocabulary[code] for code in codes], self.num_ranks)


def expand(coupled: Iterable[CoupledToken], num_ranks: int) -> tuple[int, ...] | None:
    """expand(·) of App. D: the tokens in the order of their ranks; None unless every rank occurs exactly once."""
    pairs = sorted(pair for token in coupled for pair in token)
    if [rank for rank, _ in pairs] != list(range(1, num_ranks + 1)):
        return None
    return tuple(token for _, token in pairs)


def couple_sequence(
    sequence: Int[np.ndarray, " L"],
    planted: Int[np.ndarray, " k"],
    ids: Int[np.ndarray, " L"],
    mu: Iid,
    rng: np.random.Generator,
) -> list[CoupledToken]:
    """One draw of PC[X, S] by eq. (19)."""
    num_ranks = len(planted)
    rank_of = {int(position): rank for rank, position in enumerate(planted, start=1)}
    coupled: list[CoupledToken] = []
    for position_id in range(1, len(sequence) + 1):
        sources = [int(slot) + 1 for slot in np.flatnonzero(ids == position_id)]
        held = [(rank_of[source], int(sequence[source - 1])) for source in sources if source in rank_of]
        if held:
            coupled.append(tuple(sorted(held)))
            continue
        token = int(sequence[sources[0] - 1]) if sources else int(mu.sample(1, 1, rng)[0, 0])
        coupled.append(((int(rng.integers(1, num_ranks + 1)), token),))
    return coupled


def _range_problem(drawn: CoupledPositions, length: int) -> str:
    if drawn.ids.min() >= 1 and drawn.ids.max() <= length:
        return ""
    return f"ids run from {drawn.ids.min()} to {drawn.ids.max()}, outside 1..{length}"


def _marginal_problem(drawn: CoupledPositions, law: PositionLaw, length: int) -> str:
    marginal = ListedPositions(lambda _: (drawn.sets, drawn.probabilities), law.sparsity, length).table(length)
    wanted = law.table(length)
    if marginal.sets.shape != wanted.sets.shape or (marginal.sets != wanted.sets).any():
        return "the planted sets are not those of the ensemble"
    if np.abs(marginal.probabilities - wanted.probabilities).max() > 1e-12:
        return "the planted sets do not have the ensemble's probabilities"
    return ""


def _lone_background_problem(drawn: CoupledPositions) -> str:
    """Item 2: a position outside S* shares its id with no other."""
    for planted, ids in zip(drawn.sets, drawn.ids, strict=True):
        counts = np.bincount(ids)
        shared = [p for p in range(1, len(ids) + 1) if counts[ids[p - 1]] > 1 and p not in planted]
        if shared:
            return f"position {shared[0]} is outside S*={planted.tolist()} and shares its id (item 2)"
    return ""
