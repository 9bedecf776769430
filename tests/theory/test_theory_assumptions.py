"""The checkers of Assumptions 3.3, 4.1, 4.2 and D.1: the smallest constants against brute force, and witnesses."""

from itertools import combinations
from math import inf

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengen.seeding import rng_for
from lengen.theory import assumptions
from lengen.theory.assumptions import (
    check_coverage,
    check_locality,
    check_realizability,
    check_relativity,
    check_strong_realizability,
    dead_mass,
    planted_mass_beyond,
)
from lengen.theory.attention import AttentionClass, SparseAttention
from lengen.theory.counterexamples import ZeroWhere
from lengen.theory.examples import k_gram_retrieval, marker_class, noisy_marker
from lengen.theory.keys import tabulate_key, tabulate_value
from lengen.theory.position_laws import KGramPositions, ListedPositions, PositionLaw, RandomShift, UniformPlacement


def coverage_by_brute_force(law: PositionLaw, length: int, locality: int) -> float:
    """Assumption 4.2 with its quantifiers written as loops."""

    def probabilities(n: int) -> dict[tuple[int, ...], float]:
        table = law.table(n)
        return {tuple(s): float(p) for s, p in zip(table.sets.tolist(), table.probabilities, strict=True)}

    def ratio(top: float, bottom: float) -> float:
        return 0.0 if top == 0 else (top / bottom if bottom > 0 else inf)

    here, eta = probabilities(length), 1.0
    for shorter in range(max(locality, law.shortest), length + 1):
        there = probabilities(shorter)
        for planted in combinations(range(1, length + 1), law.sparsity):
            for delta in range(length):
                shifted = tuple(p - delta for p in planted)
                if shifted[0] >= 1 and shifted[-1] <= shorter:
                    eta = max(eta, ratio(here.get(planted, 0.0), there.get(shifted, 0.0)))
            if planted[-1] <= shorter:
                eta = max(eta, ratio(there.get(planted, 0.0), here.get(planted, 0.0)))
    return eta


def random_law(seed: int, positive: bool) -> ListedPositions:
    def listing(length: int) -> tuple[np.ndarray, np.ndarray]:
        rng = rng_for(seed, "test", length)
        sets = np.array(list(combinations(range(1, length + 1), 2)))
        weights = rng.random(len(sets)) + 0.05
        if not positive:
            weights[rng.random(len(sets)) < 0.3] = 0
            weights[0] = 1.0
        return sets, weights / weights.sum()

    return ListedPositions(listing, 2, first_length=2)


@given(st.integers(0, 10_000), st.booleans())
@settings(deadline=None, max_examples=30)
def test_coverage_is_the_smallest_eta(seed, positive):
    law = random_law(seed, positive)
    found = check_coverage(law, 6, 2)
    assert found.constant.value == pytest.approx(coverage_by_brute_force(law, 6, 2), rel=1e-12)
    assert found.holds == (found.constant.value < inf)


@pytest.mark.parametrize(
    "law",
    [
        UniformPlacement.contiguous(2),
        UniformPlacement(np.array([[0, 1], [0, 2]]), np.array([0.3, 0.7])),
        RandomShift.of_neighbours(2, 3),
        RandomShift(np.array([[1, 2]]), np.ones(1), 3),
        KGramPositions(1),
    ],
)
def test_coverage_of_the_ready_made_laws(law):
    assert check_coverage(law, 8, 3).constant.value == pytest.approx(coverage_by_brute_force(law, 8, 3))


def test_natural_choice_covers_when_each_place_is_alike_and_not_otherwise():
    for length in (4, 9, 32):
        assert check_coverage(RandomShift.of_neighbours(2, 4), length, 4, largest=float(length)).holds
    missing_place = check_coverage(RandomShift(np.array([[1, 2]]), np.ones(1), 4), 9, 4)
    assert not missing_place.holds
    assert missing_place.witness == "Q_ℓ(S)/Q_ℓ'(S−Δ) = inf at ℓ=9, ℓ'=4, S=[2, 3]"


def test_k_gram_retrieval_has_no_coverage_and_is_not_local():
    law = k_gram_retrieval(1, 2).position_law
    assert check_coverage(law, 10, 4).constant.value == inf
    assert planted_mass_beyond(law, 10, 4) == pytest.approx(4 / 7)  # S* starts at 2..5 of 2..8, and ends at 10


def test_coverage_asks_for_lengths_from_the_locality_up():
    with pytest.raises(ValueError, match="L_local=4 up, not of length=3"):
        check_coverage(UniformPlacement.contiguous(2), 3, 4)


def test_coverage_asks_for_lengths_at_which_the_law_exists():
    with pytest.raises(ValueError, match=r"^length=2 is too short for a planted set; use 3 or more$"):
        check_coverage(UniformPlacement.contiguous(3), 2, 2)
    assert check_coverage(UniformPlacement.contiguous(3), 3, 2).holds


def make_class(rule, locality=None) -> AttentionClass:
    value = tabulate_value(lambda x: 0.0, 2, vocab_size=2)
    return AttentionClass({"key": ZeroWhere(rule)}, {"value": value}, 2, locality)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_locality_is_the_widest_finite_set(width):
    found = check_locality(make_class(lambda s, x: s[..., 1] - s[..., 0] <= width), 2, 9, locality=2)
    assert found.constant.value == width
    assert found.holds == (width <= 2)
    assert found.witness == f"key 'key' is finite on the set [1, {1 + width}] with tokens [0, 0]"


def test_locality_depends_on_tokens_too():
    only_ones = make_class(lambda s, x: (x == 1).all(dim=-1))
    assert check_locality(only_ones, 2, 7, 2).witness == "key 'key' is finite on the set [1, 7] with tokens [1, 1]"
    assert check_locality(make_class(lambda s, x: (x == 5).all(dim=-1)), 2, 7, 0).holds


def test_relativity_sees_absolute_positions():
    assert check_relativity(make_class(lambda s, x: s[..., 1] - s[..., 0] == 3), 2, 9).holds
    absolute = check_relativity(make_class(lambda s, x: s[..., 1] > 6), 2, 9)
    assert not absolute.holds
    assert absolute.constant.value == inf
    assert "one position later" in absolute.witness
    assert check_relativity(make_class(lambda s, x: s[..., 1] > 6), 2, 6).holds  # positions past 6 are not asked for


def test_relativity_measures_how_much_scores_change():
    def drift(positions: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return 0.25 * positions[..., 0].double()

    drifting = AttentionClass({"drift": drift}, {"value": tabulate_value(lambda x: 0.0, 2, vocab_size=2)}, 2)
    assert check_relativity(drifting, 2, 9).constant.value == 0.25


def test_inspecting_too_many_sets_is_refused():
    with pytest.raises(ValueError, match="needs 2000280000 scores, above the limit of 67108864"):
        check_locality(make_class(lambda s, x: s[..., 0] > 0), 100, 633, 2)


def test_a_table_is_inspected_once_a_shape():
    """A table knows no positions, so that any number of them is inspected at once."""
    found = check_locality(marker_class(3, 3), 3, 10**6, 3)
    assert found.holds
    assert found.constant.value == 3
    assert not check_locality(marker_class(3, 3), 3, 10**6, 2).holds
    assert check_relativity(marker_class(3, 3), 3, 10**6).witness == "no shift up to position 1000000 changes a score"


def test_inspection_in_chunks_finds_the_same(monkeypatch):
    def score(positions: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        local = positions[..., 1] - positions[..., 0] <= 4
        return torch.where(local & (tokens[..., 0] == 1), torch.sqrt(positions[..., 0].double()), -inf)

    drifting = AttentionClass({"key": score}, {"value": tabulate_value(lambda x: 0.0, 2, vocab_size=2)}, 2)
    whole = check_locality(drifting, 2, 9, 2), check_relativity(drifting, 2, 9)
    assert whole[0].constant.value == 4
    assert whole[1].constant.value == pytest.approx(np.sqrt(2) - 1)
    monkeypatch.setattr(assumptions, "_CHUNK_EVALUATIONS", 7)
    assert (check_locality(drifting, 2, 9, 2), check_relativity(drifting, 2, 9)) == whole


def test_realizability_finds_the_smallest_delta():
    found = check_realizability(marker_class(2, 2), noisy_marker(2, 0.0), range(4, 9))
    assert found.holds
    assert found.constant.value == 0
    noisy = check_realizability(marker_class(2, 2), noisy_marker(2, 0.2), [4, 8], delta=0.1)
    assert not noisy.holds
    assert noisy.witness == "the best hypothesis, ('sharp', 'parity'), loses most at length 8"
    # At length 4: a false marker anywhere before the end wins half of the weight when its bit, 0, is wrong.
    at_4 = check_realizability(marker_class(2, 2), noisy_marker(2, 0.2), [4]).constant.value
    assert 0 < at_4 < noisy.constant.value


def test_realizability_by_hand():
    """Length 3, noise ν: S* = {1, 2} has one background token after it, which marks nothing (it is last).
    S* = {2, 3}: the background token before it is a marker with probability ν, and its bit is then the marker 2, read
    as a 0: wrong for label 1, with half of the weight."""
    nu = 0.3
    value = check_realizability(marker_class(2, 2), noisy_marker(2, nu), [3]).constant.value
    assert value == pytest.approx(0.5 * (nu * 0.5 * 0.5), abs=1e-15)


def test_monte_carlo_findings_say_so_and_cover_the_exact_value():
    ensemble, attention_class = noisy_marker(2, 0.1), marker_class(2, 2)
    long = check_realizability(attention_class, ensemble, [30], samples=3000)
    assert not long.constant.exact
    assert long.constant.low < long.constant.value < long.constant.high
    short = check_realizability(attention_class, ensemble, [8], samples=3000)
    assert short.constant.exact  # enumerable lengths stay exact


def test_strong_realizability_needs_the_planted_set_alone():
    clean = check_strong_realizability(marker_class(2, 2), noisy_marker(2, 0.0), range(3, 8))
    assert clean.holds
    assert clean.constant.value == 0
    nu = 0.3
    noisy = check_strong_realizability(marker_class(2, 2), noisy_marker(2, nu), [3])
    assert noisy.constant.value == pytest.approx(nu / 2)  # a false marker before S* = {2, 3}
    assert not noisy.holds


@pytest.mark.parametrize("nu", [0.0, 0.05, 0.5])
def test_strong_realizability_implies_realizability(nu):
    weak = check_realizability(marker_class(2, 2), noisy_marker(2, nu), range(3, 8)).constant.value
    strong = check_strong_realizability(marker_class(2, 2), noisy_marker(2, nu), range(3, 8)).constant.value
    assert weak <= strong
    if nu:
        assert weak < strong  # and not the other way round


def test_dead_mass_is_the_probability_of_footnote_6():
    only_ones = tabulate_key(lambda shape, x: 0.0 if x == (2, 1) and shape == (0, 1) else -inf, 2, 2, vocab_size=3)
    hypothesis = SparseAttention(only_ones, tabulate_value(lambda x: 0.0, 2, vocab_size=3), 2, 2)
    assert dead_mass(hypothesis, noisy_marker(2, 0.0), 6) == pytest.approx(0.5)  # the planted bit is 0
    assert dead_mass(marker_class(2, 2).hypotheses()["sharp", "parity"], noisy_marker(2, 0.1), 6) == 0
