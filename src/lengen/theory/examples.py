"""Ready-made ensembles and classes: k-gram retrieval, planted parity, noisy markers, settings of Theorem 4.3."""

from itertools import product
from math import inf

import numpy as np
from jaxtyping import Int

from lengen.theory.attention import AttentionClass, SparseAttention
from lengen.theory.ensembles import Iid, MarkovChain, PlantedEnsemble, TokenLaw
from lengen.theory.keys import TableKey, tabulate_key, tabulate_value
from lengen.theory.position_laws import KGramPositions, ListedPositions, UniformPlacement
from lengen.theory.risk import training_risk


def k_gram_retrieval(gram: int, vocab_size: int) -> PlantedEnsemble:
    """Sec. 3.1: the last `gram` tokens repeat an earlier k-gram; the label is φ of the token that followed it.

    gram=1, vocabulary {0, 1, 2}:  2 0 [1 2] 0 1 [1]  asks for φ(2). Here φ(v) = v / (vocab_size − 1).
    """
    tuples = [(*z, *z[:-1]) for z in product(range(vocab_size), repeat=gram + 1)]
    return PlantedEnsemble(
        mu=Iid(np.full(vocab_size, 1 / vocab_size)),
        position_law=KGramPositions(gram),
        token_law=TokenLaw.uniform(tuples),
        label=lambda planted: planted[:, gram] / (vocab_size - 1),
    )


def planted_parity(sparsity: int, locality: int) -> PlantedEnsemble:
    """Sparse parity (E.1.1) with its marked bits within `locality` of each other, as App. E.1.1 suggests.

    A token joins a marker and the bit after it, so that one μ serves every position, as Def. 3.2 asks:
    0, 1 are unmarked bits, 2, 3 marked ones. sparsity=2:  0 1 [3] 0 [2] 1 1  has parity 1 xor 0 = 1.
    """
    shapes = np.array([(0, *rest) for rest in product(range(1, locality + 1), repeat=sparsity - 1)])
    shapes = shapes[(np.diff(shapes, axis=1) > 0).all(axis=1)]
    return PlantedEnsemble(
        mu=Iid(np.array([0.5, 0.5, 0.0, 0.0])),
        position_law=UniformPlacement(shapes, np.full(len(shapes), 1 / len(shapes))),
        token_law=TokenLaw.uniform(list(product((2, 3), repeat=sparsity))),
        label=lambda planted: (planted - 2).sum(axis=1) % 2,
    )


def noisy_marker(sparsity: int, noise: float) -> PlantedEnsemble:
    """The marker 2 and then `sparsity` − 1 bits with their parity as label, among background that holds markers too.

    The background is 2 with probability `noise` and 0 otherwise, so that no hypothesis can tell the planted marker
    from the others: the smallest δ of Assumption 4.1 is positive, and grows with `noise` and the length.
    sparsity=3:  0 0 [2 1 1] 0 2 0  has parity 1 xor 1 = 0, and a false marker near its end.
    """
    return PlantedEnsemble(
        mu=Iid(np.array([1 - noise, 0.0, noise])),
        position_law=UniformPlacement.contiguous(sparsity),
        token_law=TokenLaw.uniform([(2, *bits) for bits in product((0, 1), repeat=sparsity - 1)]),
        label=_parity_after_marker,
    )


def sticky_marker(sparsity: int, noise: float, persistence: float) -> PlantedEnsemble:
    """`noisy_marker` with a Markov chain as background: a token repeats the one before with a given probability.

    Beyond the paper: its theorem speaks of i.i.d. backgrounds. The share of false markers stays `noise`.
    """
    base = noisy_marker(sparsity, noise)
    stationary = np.array([1 - noise, 0.0, noise])
    transition = persistence * np.eye(3) + (1 - persistence) * stationary
    return PlantedEnsemble(MarkovChain(stationary, transition), base.position_law, base.token_law, base.label)


def marker_class(sparsity: int, locality: int) -> AttentionClass:
    """Keys that look for a marker, sharply or softly, in the right shape or the wrong one; values right and wrong."""
    contiguous = tuple(range(sparsity))

    def looks_for(shape_matters: bool, softness: float) -> TableKey:
        def rule(shape: tuple[int, ...], tokens: tuple[int, ...]) -> float:
            right = tokens[0] == 2 and (shape == contiguous or not shape_matters)
            return 0.0 if right else softness

        return tabulate_key(rule, sparsity, locality, vocab_size=3)

    keys = {
        "sharp": looks_for(True, -inf),
        "soft": looks_for(True, -3.0),
        "any shape": looks_for(False, -inf),
    }
    values = {
        "parity": tabulate_value(lambda x: x[1:].count(1) % 2, sparsity, vocab_size=3),
        "hedge": tabulate_value(lambda x: 0.5, sparsity, vocab_size=3),
        "flipped": tabulate_value(lambda x: 1 - x[1:].count(1) % 2, sparsity, vocab_size=3),
    }
    return AttentionClass(keys, values, sparsity, locality)


def dilution(sparsity: int, locality: int, softness: float, max_length: int) -> tuple[PlantedEnsemble, AttentionClass]:
    """A setting of Theorem 4.3 with δ > 0 whose minimiser is not the realizing hypothesis, and loses with length.

    Planted: `sparsity` neighbours, all 1 (label 0) or all 2 (label 1), on background 0. One key looks at these
    neighbours, where the value is a little off: δ at every length. The other looks at sets of a marker and a 0, where
    the value is right, but leaves the weight exp(−`softness`) to each set of zeros: the longer the sequence, the more
    of them. δ is set just above the latter's training risk, so that it is the minimiser.
    """
    together = tuple(range(sparsity))
    with_gap = {(*range(sparsity - 1), sparsity), (0, *range(2, sparsity + 1))}

    def sees_neighbours(shape: tuple[int, ...], tokens: tuple[int, ...]) -> float:
        return 0.0 if shape == together and 0 not in tokens else -inf

    def sees_edges(shape: tuple[int, ...], tokens: tuple[int, ...]) -> float:
        if shape not in with_gap or 0 not in tokens:
            return -inf
        return 0.0 if any(tokens) else -softness

    def right_on_edges(tokens: tuple[int, ...]) -> float:
        return float(max(tokens) == 2) if 0 in tokens and any(tokens) else 0.5

    ensemble = PlantedEnsemble(
        mu=Iid(np.array([1.0, 0.0, 0.0])),
        position_law=UniformPlacement.contiguous(sparsity),
        token_law=TokenLaw.uniform([(1,) * sparsity, (2,) * sparsity]),
        label=lambda planted: planted[:, 0] - 1,
    )
    edges = tabulate_key(sees_edges, sparsity, locality, vocab_size=3)
    edge_value = tabulate_value(right_on_edges, sparsity, vocab_size=3)
    learned = SparseAttention(edges, edge_value, sparsity, locality)
    delta = 1.05 * training_risk(learned, ensemble, max_length, sparsity)

    def nearly_right_on_neighbours(tokens: tuple[int, ...]) -> float:
        return 0.5 if 0 in tokens else (1 - delta if tokens[0] == 2 else delta)

    keys = {"neighbours": tabulate_key(sees_neighbours, sparsity, locality, vocab_size=3), "edges": edges}
    values = {"nearly right": tabulate_value(nearly_right_on_neighbours, sparsity, vocab_size=3), "right": edge_value}
    return ensemble, AttentionClass(keys, values, sparsity, locality)


def stray_marks(noise: float, max_length: int) -> tuple[PlantedEnsemble, AttentionClass]:
    """`dilution` with equal finite scores (ρ = 2) and η = 1, so that only T makes the repaired bound grow with L̄.

    Planted: (1, 2), always at the start, with label 1; background 0, and a stray mark 3 with probability `noise`. One
    key looks at the planted pair, where the value is a little off. The other looks two positions past a mark, where
    the value is right for the planted mark and wrong for stray ones: the longer the sequence, the more of them.
    """

    def sees_marks(shape: tuple[int, ...], tokens: tuple[int, ...]) -> float:
        return 0.0 if shape == (0, 2) and tokens[0] in (1, 3) else -inf

    ensemble = PlantedEnsemble(
        mu=Iid(np.array([1 - noise, 0.0, 0.0, noise])),
        position_law=ListedPositions(lambda _: (np.array([[1, 2]]), np.ones(1)), 2, first_length=2),
        token_law=TokenLaw.uniform([(1, 2)]),
        label=lambda planted: np.ones(len(planted)),
    )
    marks = tabulate_key(sees_marks, 2, 2, vocab_size=4)
    mark_value = tabulate_value(lambda x: float(x[0] == 1 and x[1] != 2), 2, vocab_size=4)
    delta = 1.05 * training_risk(SparseAttention(marks, mark_value, 2, 2), ensemble, max_length, 2)
    keys = {
        "planted pair": tabulate_key(lambda s, x: 0.0 if s == (0, 1) and x == (1, 2) else -inf, 2, 2, vocab_size=4),
        "marks": marks,
    }
    values = {
        "nearly right": tabulate_value(lambda x: (1 - delta) * (x == (1, 2)), 2, vocab_size=4),
        "right": mark_value,
    }
    return ensemble, AttentionClass(keys, values, 2, locality=2)


def _parity_after_marker(planted: Int[np.ndarray, "n k"]) -> np.ndarray:
    parity: np.ndarray = planted[:, 1:].sum(axis=1) % 2
    return parity
