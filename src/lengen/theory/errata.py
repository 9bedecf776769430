"""Instances on which Theorem 4.3 as printed fails, each through one gap of its proof (docs/theory.md).

All satisfy every hypothesis that the theorem states. They say what the theorem needs besides, whether δ is 0 or not:
planted sets no wider than L_local, finite scores that are not too far apart, and a finite score on every base window
(of length L − 2 L_local).
"""

from dataclasses import dataclass
from math import inf, log

import numpy as np

from lengen.theory.attention import AttentionClass
from lengen.theory.ensembles import Iid, PlantedEnsemble, TokenLaw
from lengen.theory.keys import TableKey, tabulate_key, tabulate_value
from lengen.theory.position_laws import ListedPositions, UniformPlacement
from lengen.theory.theorem import TheoremReport, check_theorem

PLANTED = 4


@dataclass(frozen=True)
class Erratum:
    """An ensemble and a class that satisfy the theorem's hypotheses at (L, L̄) and exceed its bound."""

    ensemble: PlantedEnsemble
    attention_class: AttentionClass
    max_length: int
    test_length: int

    def report(self) -> TheoremReport:
        return check_theorem(self.ensemble, self.attention_class, self.max_length, self.test_length)


def hidden_path(heavy: float = 1e10, rare: float = 0.25) -> Erratum:
    """δ > 0, through Lemma C.1: the loss at L̄ stays put while δ falls like 1/`heavy`.

    Background letters 0 < 1 < 2 < 3, planted pair (4, 4), label 1. The learned key looks at pairs two apart. A pair is
    *light* if it climbs by 0 or 1, or joins the planted token to a 0; any other pair is *heavy* and right. The pair
    (2, 3) is light and wrong. Going from the planted token to (2, 3) by light pairs takes five letters two apart,
    hence length 9 or more: in training (L = 8) a wrong pair always comes with a heavy one, which hides it up to
    1/heavy. At L̄ = 10 the path 4 0 1 2 3 fits, and nothing hides the wrong pair. `rare` is the probability of the
    letter 3, and with it of the wrong pair: δ and the loss are in proportion to it.
    """
    delta = 0.16 * rare / heavy  # just above the training risk of the learned hypothesis, which so is minimal

    def learned_key(shape: tuple[int, ...], tokens: tuple[int, ...]) -> float:
        first, second = tokens
        if shape != (0, 2):
            return -inf
        if _touches_planted(first, second) or tokens == (2, 3):
            return 0.0
        return -inf if _climbs(first, second) else log(heavy)

    keys = {"planted pair": _planted_pair(), "paths": tabulate_key(learned_key, 2, 2, vocab_size=5)}
    values = {
        "nearly right": tabulate_value(lambda x: (1 - delta) * (x == (4, 4)), 2, vocab_size=5),
        "wrong at (2, 3)": tabulate_value(lambda x: float(x not in ((2, 3), (4, 4))), 2, vocab_size=5),
    }
    return Erratum(_letters(rare), AttentionClass(keys, values, 2, locality=2), max_length=8, test_length=10)


def dead_windows() -> Erratum:
    """δ = 0, narrow planted sets and equal finite scores, through footnote 6: where every score is −∞, all sets count.

    `hidden_path` with light pairs that score −∞ and heavy ones that score 0, all right; the value is wrong on (2, 3)
    alone, which scores −∞ itself. So an error takes a sequence without a heavy pair, and a 2 before a 3 in it. In
    training such a sequence is too short for its letters to climb from the planted token to a 3; at L̄ = 10 it is not.
    """

    def learned_key(shape: tuple[int, ...], tokens: tuple[int, ...]) -> float:
        return -inf if shape != (0, 2) or _touches_planted(*tokens) or _climbs(*tokens) else 0.0

    keys = {"planted pair": _planted_pair(), "paths": tabulate_key(learned_key, 2, 2, vocab_size=5)}
    values = {
        "always right": tabulate_value(lambda x: 1.0, 2, vocab_size=5),
        "wrong at (2, 3)": tabulate_value(lambda x: float(x != (2, 3)), 2, vocab_size=5),
    }
    return Erratum(_letters(rare=0.25), AttentionClass(keys, values, 2, locality=2), max_length=8, test_length=10)


def wide_planted_sets(max_length: int = 8, test_length: int = 16) -> Erratum:
    """δ = 0, through eq. (13): coverage says nothing of planted sets too wide for the training lengths.

    Planted (1, 2) on background 0: next to each other up to L, and also L apart beyond it. The key looks at neighbours
    that start with a 1. One value is right on (1, 2) and (1, 0); the other on (1, 2) only, all that training shows.
    """

    def support(length: int) -> tuple[np.ndarray, np.ndarray]:
        near = np.stack([np.arange(1, length), np.arange(2, length + 1)], axis=1)
        firsts = np.arange(1, max(length - max_length, 0) + 1)
        sets = np.concatenate([near, np.stack([firsts, firsts + max_length], axis=1)])
        return sets, np.full(len(sets), 1 / len(sets))

    keys = {"after a 1": tabulate_key(lambda s, x: 0.0 if s == (0, 1) and x[0] == 1 else -inf, 2, 2, vocab_size=3)}
    values = {
        "always right": tabulate_value(lambda x: 1.0, 2, vocab_size=3),
        "right in training": tabulate_value(lambda x: float(x == (1, 2)), 2, vocab_size=3),
    }
    ensemble = PlantedEnsemble(
        mu=Iid(np.array([1.0, 0.0, 0.0])),
        position_law=ListedPositions(support, 2, first_length=2),
        token_law=TokenLaw.uniform([(1, 2)]),
        label=lambda planted: np.ones(len(planted)),
    )
    return Erratum(ensemble, AttentionClass(keys, values, 2, locality=2), max_length, test_length)


def _letters(rare: float) -> PlantedEnsemble:
    """Background letters 0 to 3, the last with probability `rare`, and the planted pair (4, 4) with label 1."""
    return PlantedEnsemble(
        mu=Iid(np.array([0.25, 0.5 - rare, 0.25, rare, 0.0])),
        position_law=UniformPlacement.contiguous(2),
        token_law=TokenLaw.uniform([(PLANTED, PLANTED)]),
        label=lambda planted: np.ones(len(planted)),
    )


def _planted_pair() -> TableKey:
    return tabulate_key(lambda s, x: 0.0 if s == (0, 1) and x == (PLANTED, PLANTED) else -inf, 2, 2, vocab_size=5)


def _touches_planted(first: int, second: int) -> bool:
    return (first, second) in ((PLANTED, 0), (0, PLANTED))


def _climbs(first: int, second: int) -> bool:
    return PLANTED not in (first, second) and second - first in (0, 1)
