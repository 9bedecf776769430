"""Lemmas C.1 and C.2 over random instances, near equality, and the instance that breaks C.1 as printed."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengen.seeding import rng_for
from lengen.theory.instances import random_chain, random_ratio
from lengen.theory.lemmas import BlockChain, lemma_c2, printed_c1_counterexample


@given(st.integers(0, 100_000), st.integers(1, 6), st.integers(1, 3))
@settings(deadline=None, max_examples=200)
def test_lemma_c2_holds(seed, num_terms, dim):
    sides = lemma_c2(*random_ratio(rng_for(seed, "test"), num_terms, dim))
    assert sides.left <= sides.right * (1 + 1e-12)


def test_lemma_c2_is_an_equality_for_one_term_and_tight_for_light_ones():
    a, b = np.array([0.2]), 1.0
    single = lemma_c2(a, b, np.array([[0.5]]), np.array([0.7]))
    assert single.left == pytest.approx(single.right, rel=1e-14)
    # Many light terms that all pull the same way: the sum of movements is nearly the movement of the sum.
    light = lemma_c2(a, b, np.full((4, 1), 1e-6), np.full(4, 1e-6))
    assert light.left == pytest.approx(light.right, rel=1e-5)
    assert light.left < light.right


def test_lemma_c2_reversed_fails():
    opposite = lemma_c2(np.array([0.0]), 1.0, np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]))
    assert opposite.left == 0
    assert opposite.right == pytest.approx(1.0)
    assert not opposite.right <= opposite.left


def test_lemma_c2_needs_positive_weights():
    with pytest.raises(ValueError, match=r"p \(smallest -0.5\) must be positive"):
        lemma_c2(np.array([0.0]), 1.0, np.array([[1.0]]), np.array([-0.5]))
    # Dropped, the statement is false: the two negative weights all but cancel b.
    a, b, q, p = np.array([1.0]), 1.0, np.zeros((2, 1)), np.array([-0.49, -0.49])
    moved = abs(a / b - (q.sum(axis=0) + a) / (p.sum() + b))[0]
    single = sum(abs(a / b - (qi + a) / (pi + b))[0] for qi, pi in zip(q, p, strict=True))
    assert moved > single


@given(st.integers(0, 100_000), st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_repaired_lemma_c1_holds(seed, after):
    assert random_chain(rng_for(seed, "test")).repaired(after).holds


@given(st.integers(0, 100_000), st.integers(1, 2))
@settings(deadline=None, max_examples=60)
def test_printed_lemma_c1_holds_for_two_blocks(seed, after):
    assert random_chain(rng_for(seed, "test")).printed(after).holds


def test_printed_lemma_c1_fails_from_three_blocks_on_and_by_any_factor():
    for heavy, factor in ((1e3, 5), (1e5, 500), (1e7, 50_000)):
        chain = printed_c1_counterexample(heavy)
        sides = chain.printed(3)
        assert sides.left > factor * sides.right
        assert not sides.holds
        assert chain.printed(2).holds
        assert chain.repaired(3).holds
        assert chain.repaired(6).holds
    assert printed_c1_counterexample(1.0).printed(3).holds  # no heavy mass, nothing hidden


def test_counterexample_by_hand():
    """ε = ρF/(1 + M + F); at i = 3 a quiet first and a loud second block give F/(1 + F) with probability (1 − ρ)ρ."""
    rare, heavy, wrong = 0.1, 1e4, 10.0
    chain = printed_c1_counterexample(heavy, rare)
    assert chain.epsilon == pytest.approx(rare * wrong / (1 + heavy + wrong))
    quiet_then_loud = (1 - rare) * rare * wrong / (1 + wrong)
    loud_first = rare * ((1 - rare) * wrong / (1 + heavy + wrong) + rare * 2 * wrong / (1 + heavy + 2 * wrong))
    assert chain.movement(3) == pytest.approx(quiet_then_loud + loud_first)


def test_repaired_lemma_is_nearly_tight_for_one_block():
    chain = random_chain(rng_for(3, "test"))
    one = chain.repaired(1)
    assert one.left <= one.right
    halved = BlockChain(chain.first_law, chain.law, chain.start, chain.first_step, lambda z, y: (0.0, 0.0))
    still = halved.repaired(1)
    assert still.left == pytest.approx(still.right)  # with nothing after it, ε is this very movement


def test_movement_is_an_expectation_over_all_outcomes():
    chain = random_chain(rng_for(4, "test"))
    total = 0.0
    for z0, z1, z2 in product(range(2), range(3), range(3)):
        (a0, b0), (a1, b1), (a2, b2) = chain.start(z0), chain.first_step(z1, z0), chain.step(z2, z1)
        mass = chain.first_law[z0] * chain.law[z1] * chain.law[z2]
        total += mass * abs((a0 + a1) / (b0 + b1) - (a0 + a1 + a2) / (b0 + b1 + b2))
    assert chain.movement(2, before=1) == pytest.approx(total)


def test_too_many_outcomes_are_refused():
    with pytest.raises(ValueError, match=r"i=40 needs \d+ outcomes, above the limit of 1048576"):
        random_chain(rng_for(5, "test")).movement(40)
