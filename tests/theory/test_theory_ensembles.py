"""Planted ensembles (Def. 3.2): the law that is enumerated, the law that is sampled, and the law on paper."""

from itertools import product
from math import fsum

import numpy as np
import pytest

from lengen.seeding import rng_for
from lengen.theory.ensembles import Iid, MarkovChain, PlantedEnsemble, TokenLaw
from lengen.theory.examples import k_gram_retrieval, noisy_marker, planted_parity, sticky_marker
from lengen.theory.position_laws import KGramPositions, ListedPositions, RandomShift, UniformPlacement

ENSEMBLES = {
    "retrieval": (k_gram_retrieval(1, 2), 6),
    "parity": (planted_parity(2, 2), 5),
    "marker": (noisy_marker(3, 0.2), 6),
    "markov": (sticky_marker(2, 0.3, 0.6), 6),
}


def joint_law(ensemble: PlantedEnsemble, length: int) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    law: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    for batch in ensemble.enumerate(length):
        for x, s, w in zip(batch.sequences.tolist(), batch.planted.tolist(), batch.weights, strict=True):
            law[tuple(x), tuple(s)] = law.get((tuple(x), tuple(s)), 0.0) + float(w)
    return law


def probability_of(ensemble: PlantedEnsemble, sequence: tuple[int, ...], planted: tuple[int, ...]) -> float:
    """P_ℓ(X, S*) by Def. 3.2: the laws of the set, of the planted tokens, and of the background, multiplied."""
    table = ensemble.position_law.table(len(sequence))
    tokens = [sequence[place - 1] for place in planted]
    background = [token for place, token in enumerate(sequence, start=1) if place not in planted]
    of_set = table.probabilities[(table.sets == planted).all(axis=1)].sum()
    of_tokens = ensemble.token_law.probabilities[(ensemble.token_law.tuples == tokens).all(axis=1)].sum()
    return float(of_set * of_tokens * ensemble.mu.probabilities(np.array([background]))[0])


@pytest.mark.parametrize("name", ENSEMBLES)
def test_enumeration_is_a_distribution_and_agrees_with_the_probability_of_each_outcome(name):
    ensemble, length = ENSEMBLES[name]
    law = joint_law(ensemble, length)
    assert fsum(law.values()) == pytest.approx(1, abs=1e-12)
    for (sequence, planted), mass in law.items():
        assert probability_of(ensemble, sequence, planted) == pytest.approx(mass, abs=1e-14)


@pytest.mark.parametrize("name", ENSEMBLES)
def test_samples_follow_the_enumerated_law(name):
    ensemble, length = ENSEMBLES[name]
    law, n = joint_law(ensemble, length), 20_000
    batch = ensemble.sample(length, n, rng_for(0, "test"))
    counts: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for x, s in zip(batch.sequences.tolist(), batch.planted.tolist(), strict=True):
        counts[tuple(x), tuple(s)] = counts.get((tuple(x), tuple(s)), 0) + 1
    assert counts.keys() <= {outcome for outcome, mass in law.items() if mass > 0}
    distance = sum(abs(counts.get(outcome, 0) / n - mass) for outcome, mass in law.items()) / 2
    # Total variation of n draws from m outcomes is about sqrt(m / (2 pi n)) at most.
    assert distance <= 1.5 * np.sqrt(len(law) / (2 * np.pi * n))


def test_the_sampling_comparison_can_fail():
    law = joint_law(noisy_marker(3, 0.2), 6)
    other = joint_law(noisy_marker(3, 0.4), 6)
    distance = sum(abs(other.get(outcome, 0) - mass) for outcome, mass in law.items()) / 2
    assert distance > 1.5 * np.sqrt(len(law) / (2 * np.pi * 20_000))


def test_k_gram_retrieval_is_the_papers_process():
    """Sec. 3.1: ℓ' uniform, the last k tokens repeat a k-gram, and the label is what followed it."""
    batch = k_gram_retrieval(2, 5).sample(12, 200, rng_for(1, "test"))
    first = batch.planted[:, 0] - 1  # ℓ'
    assert set(first.tolist()) == set(range(1, 12 - 5 + 1))
    for x, ell, label in zip(batch.sequences, first, batch.labels[:, 0], strict=True):
        assert x[-2:].tolist() == x[ell : ell + 2].tolist()
        assert label == x[ell + 2] / 4


def test_planted_parity_labels_the_marked_bits():
    batch = planted_parity(3, 4).sample(20, 200, rng_for(2, "test"))
    marked = batch.sequences >= 2
    assert (marked.sum(axis=1) == 3).all()
    positions = np.array([np.flatnonzero(row) + 1 for row in marked])
    assert (positions == batch.planted).all()
    assert (positions[:, -1] - positions[:, 0] <= 4).all()
    parity = (np.where(marked, batch.sequences - 2, 0).sum(axis=1)) % 2
    assert (parity == batch.labels[:, 0]).all()
    assert 0 < parity.mean() < 1


def test_markov_background_is_a_chain_across_the_planted_set():
    chain = MarkovChain(np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]]))  # 0 1 0 1 …
    ensemble = PlantedEnsemble(chain, UniformPlacement.contiguous(2), TokenLaw.uniform([(2, 2)]), lambda z: z[:, 0] / 2)
    batch = ensemble.sample(7, 20, rng_for(3, "test"))
    assert all([t for t in row if t != 2] == [0, 1, 0, 1, 0] for row in batch.sequences.tolist())
    assert sticky_marker(2, 0.3, 0.0).mu.support.tolist() == [0, 2]


def test_markov_chain_without_memory_is_iid():
    assert joint_law(sticky_marker(2, 0.3, 0.0), 5) == pytest.approx(joint_law(noisy_marker(2, 0.3), 5))
    assert joint_law(sticky_marker(2, 0.3, 0.5), 5) != pytest.approx(joint_law(noisy_marker(2, 0.3), 5))


def test_random_shift_is_a_sum_over_shifts():
    law = RandomShift(np.array([[1, 2], [1, 3]]), np.array([0.25, 0.75]), locality=3)
    table = law.table(5)
    expected = {(1, 2): 1 / 12, (2, 3): 1 / 12, (3, 4): 1 / 12, (1, 3): 1 / 4, (2, 4): 1 / 4, (3, 5): 1 / 4}
    found = {tuple(s): p for s, p in zip(table.sets.tolist(), table.probabilities, strict=True)}
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    "law", [UniformPlacement(np.array([[0, 1], [0, 3]]), np.array([0.4, 0.6])), RandomShift.of_neighbours(2, 3)]
)
def test_mass_by_shape_is_the_table(law):
    for length in (3, 4, 7):
        table, mass = law.table(length), law.mass_by_shape(length)
        rebuilt = {
            tuple(start + 1 + offset for offset in shape): p
            for shape, array in mass.items()
            for start, p in enumerate(array)
            if p > 0
        }
        found = {tuple(s): p for s, p in zip(table.sets.tolist(), table.probabilities, strict=True)}
        assert found == pytest.approx(rebuilt)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Iid(np.array([0.5, 0.4])), "mu sums to 0.9"),
        (lambda: Iid(np.array([1.5, -0.5])), "mu has the entry -0.5"),
        (lambda: Iid(np.array([np.nan, 1.0])), "finite and not negative"),
        (lambda: MarkovChain(np.ones(1), np.array([[0.5]])), r"transition\[0\] sums to 0.5"),
        (lambda: TokenLaw(np.array([[0, 1]]), np.array([0.5])), "the token law sums to 0.5"),
        (lambda: TokenLaw(np.array([[0, 1]]), np.array([0.5, 0.5])), "1 token tuples have 2 probabilities"),
        (lambda: UniformPlacement(np.array([[1, 2]]), np.ones(1)), "start at 0"),
        (lambda: RandomShift(np.array([[1, 4]]), np.ones(1), 3), r"outside 1\.\.3"),
        (lambda: UniformPlacement.contiguous(3).table(2), "length=2 is too short for a planted set; use 3"),
        (lambda: KGramPositions(1).table(3), "use 4 or more"),
        (lambda: ListedPositions(lambda n: (np.array([[2, 1]]), np.ones(1)), 2, 2).table(3), "not increasing"),
        (lambda: ListedPositions(lambda n: (np.array([[1, 2]]), np.array([0.9])), 2, 2).table(3), "sums to 0.9"),
    ],
)
def test_bad_laws_are_refused_with_their_value(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_bad_ensembles_are_refused():
    law, tokens = UniformPlacement.contiguous(2), TokenLaw.uniform([(0, 1)])
    with pytest.raises(ValueError, match="planted tuples have 2 tokens and planted sets 3"):
        PlantedEnsemble(Iid(np.ones(1)), UniformPlacement.contiguous(3), tokens, lambda z: z[:, 0])
    wrong_label = PlantedEnsemble(Iid(np.ones(1)), law, tokens, lambda z: 2.0 * z[:, 1])
    with pytest.raises(ValueError, match=r"labels range over \[2.0, 2.0\]"):
        wrong_label.sample(4, 1, rng_for(0, "test"))


def test_an_enumeration_too_large_is_refused_with_its_size():
    with pytest.raises(ValueError, match=f"needs {39 * 2 * 2**38} sequences, above the limit of 4194304"):
        next(iter(noisy_marker(2, 0.1).enumerate(40)))
    assert noisy_marker(2, 0.0).num_sequences(40) == 39 * 2


def test_every_sequence_is_enumerated_once():
    ensemble = noisy_marker(2, 0.5)
    seen = [tuple(x) for batch in ensemble.enumerate(4) for x in batch.sequences.tolist()]
    by_hand = [
        (*background[:first], 2, bit, *background[first:])
        for first, bit, background in product(range(3), (0, 1), product((0, 2), repeat=2))
    ]
    assert sorted(seen) == sorted(by_hand)
