"""Position coupling (Def. 4.1, App. D): the operator PC[·] against eq. (19), and Proposition D.2 at work."""

from collections import Counter
from dataclasses import replace
from math import inf

import numpy as np
import pytest
import torch

from lengen.seeding import rng_for
from lengen.theory.assumptions import check_realizability, check_strong_realizability
from lengen.theory.coupling import (
    CoupledPositions,
    PositionCoupler,
    check_local_coupling,
    couple_sequence,
    expand,
)
from lengen.theory.coupling_examples import (
    KEY_TOKEN,
    ONE_QUERY,
    ONE_TOKEN,
    far_retrieval,
    far_retrieval_class,
    far_retrieval_coupler,
    gather_query,
    reordering_coupler,
)
from lengen.theory.ensembles import Iid
from lengen.theory.examples import sticky_marker
from lengen.theory.risk import length_generalization
from lengen.theory.theorem import check_theorem


def check(coupling, locality=2, lengths=(4, 6, 9)):
    return check_local_coupling(coupling, far_retrieval().position_law, lengths, locality)


def test_gathering_the_query_is_a_local_coupling():
    found = check(gather_query)
    assert found.holds
    assert found.constant.value == 1
    assert not check(gather_query, locality=0).holds


def test_no_coupling_is_not_local():
    def identity(length: int) -> CoupledPositions:
        table = far_retrieval().position_law.table(length)
        ids = np.tile(np.arange(1, length + 1), (len(table.sets), 1))
        return CoupledPositions(table.sets, ids, table.probabilities)

    found = check(identity)
    assert not found.holds
    assert found.constant.value == 8  # S* = {1, 2, 9}: the whole sequence


def test_each_item_of_the_definition_is_checked():
    def wrong_marginal(length: int) -> CoupledPositions:
        drawn = gather_query(length)
        weights = np.arange(1, len(drawn.sets) + 1, dtype=float)
        return replace(drawn, probabilities=weights / weights.sum())

    def shared_background(length: int) -> CoupledPositions:
        drawn = gather_query(length)
        ids = drawn.ids.copy()
        background = next(p for p in range(1, length + 1) if p not in drawn.sets[0])
        ids[0, background - 1] = ids[0, drawn.sets[0, 0] - 1]
        return replace(drawn, ids=ids)

    def other_ranks_when_long(length: int) -> CoupledPositions:
        drawn = gather_query(length)
        if length < 9:
            return drawn
        ids = drawn.ids.copy()  # the query joins the bit instead of the key token
        np.put_along_axis(ids, drawn.sets[:, 2:] - 1, np.take_along_axis(ids, drawn.sets[:, 1:2] - 1, axis=1), axis=1)
        return replace(drawn, ids=ids)

    def ids_elsewhere(length: int) -> CoupledPositions:
        return replace(gather_query(length), ids=gather_query(length).ids + 100)

    assert check(ids_elsewhere).witness == "at length 4, ids run from 101 to 104, outside 1..4"
    assert not check(ids_elsewhere).holds
    assert "probabilities" in check(wrong_marginal).witness
    assert "item 2" in check(shared_background).witness
    assert "between lengths 4 and 9 (item 3)" in check(other_ranks_when_long).witness
    assert check(other_ranks_when_long, lengths=(4, 6)).holds


def test_a_varying_number_of_ids_is_refused():
    def sometimes_apart(length: int) -> CoupledPositions:
        drawn = gather_query(length)
        ids = drawn.ids.copy()
        unused = next(i for i in range(1, length + 1) if i not in ids[0])
        ids[0, drawn.sets[0, 2] - 1] = unused
        return replace(drawn, ids=ids)

    assert "not always the same" in check(sometimes_apart, locality=9).witness


def test_expand_orders_by_rank_and_wants_each_rank_once():
    query, bit = ((1, KEY_TOKEN), (3, ONE_QUERY)), ((2, ONE_TOKEN),)
    assert expand([bit, query], 3) == expand([query, bit], 3) == (KEY_TOKEN, ONE_TOKEN, ONE_QUERY)
    assert expand([query], 3) is None
    assert expand([query, bit, bit], 3) is None
    assert expand([query, ((3, 0),)], 3) is None


def test_coupled_ensemble_has_the_law_of_eq_19():
    """Sampled by eq. (19) from (X, S*, ψ), and enumerated as a planted ensemble: the same distribution."""
    length, draws = 4, 30_000
    coupler = far_retrieval_coupler(noise=0.3)
    exact: Counter[tuple[object, ...]] = Counter()
    for batch in coupler.couple_ensemble().enumerate(length):
        for codes, label, weight in zip(batch.sequences, batch.labels[:, 0], batch.weights, strict=True):
            exact[(*(coupler.vocabulary[code] for code in codes), float(label))] += float(weight)
    rng = rng_for(0, "test")
    plain = coupler.ensemble.sample(length, draws, rng)
    drawn = gather_query(length)
    counts: Counter[tuple[object, ...]] = Counter()
    for x, planted, label in zip(plain.sequences, plain.planted, plain.labels[:, 0], strict=True):
        matching = np.flatnonzero((drawn.sets == planted).all(axis=1))
        ids = drawn.ids[rng.choice(matching)]
        mu = coupler.ensemble.mu
        assert isinstance(mu, Iid)
        counts[(*couple_sequence(x, planted, ids, mu, rng), float(label))] += 1
    assert counts.keys() <= exact.keys()
    distance = sum(abs(counts[k] / draws - p) for k, p in exact.items()) / 2
    assert distance <= 1.5 * np.sqrt(len(exact) / (2 * np.pi * draws))
    shuffled = dict(zip(exact, list(exact.values())[::-1], strict=True))
    assert sum(abs(counts[k] / draws - p) for k, p in shuffled.items()) / 2 > 0.02  # another law is told apart


def test_coupled_key_is_local_and_unpacks():
    coupler = far_retrieval_coupler()
    key = coupler.couple_key(far_retrieval_class().keys["key, bit, query"])
    code = {token: index for index, token in enumerate(coupler.vocabulary)}
    pair = torch.tensor([[code[((1, KEY_TOKEN), (3, ONE_QUERY))], code[((2, ONE_TOKEN),)]]])
    assert float(key(torch.tensor([[3, 4]]), pair)) == 0
    assert float(key(torch.tensor([[3, 5]]), pair.flip(1))) == 0  # the order of ids does not matter, ranks do
    assert float(key(torch.tensor([[3, 6]]), pair)) == -inf  # wider than L_local
    background = torch.tensor([[code[((1, 0),)], code[((2, 0),)]]])
    assert float(key(torch.tensor([[3, 4]]), background)) == -inf


def test_coupling_removes_the_need_for_locality():
    """Prop. D.2: strongly realizable, coupled, and covered: the coupled class generalizes with δ = 0."""
    coupler, plain = far_retrieval_coupler(), far_retrieval_class()
    assert check_strong_realizability(plain, coupler.ensemble, range(4, 11)).holds
    coupled, coupled_class = coupler.couple_ensemble(), coupler.couple_class(plain)
    report = check_theorem(coupled, coupled_class, 8, 10)
    assert report.hypotheses_hold
    assert report.measured.value == report.bound == 0


def test_without_coupling_the_local_class_fails():
    outcome = length_generalization(far_retrieval_class(locality=2), far_retrieval(), 8, 10)
    assert min(loss.value for loss in outcome.minimisers.values()) > 0.25
    longer = length_generalization(far_retrieval_class(locality=2), far_retrieval(), 8, 40)
    assert longer.worst.value == pytest.approx(0.5, abs=0.02)  # footnote 6's average knows nothing


def test_noise_costs_the_coupled_class_what_it_costs():
    coupler = far_retrieval_coupler(noise=0.02)
    coupled, coupled_class = coupler.couple_ensemble(), coupler.couple_class(far_retrieval_class())
    strong = check_strong_realizability(far_retrieval_class(), coupler.ensemble, [6]).constant.value
    weak = check_realizability(coupled_class, coupled, [6]).constant.value
    assert 0 < weak < strong  # δ-strong realizability of P bounds the δ of PC[P] here


def test_prop_d2_needs_more_than_strong_realizability():
    """As printed, PC[·] may read background in an order that no sequence has, and the conclusion fails with δ = 0."""
    coupler, plain = reordering_coupler()
    assert check_strong_realizability(plain, coupler.ensemble, range(2, 11)).constant.value == 0
    assert check_local_coupling(coupler.coupling, coupler.ensemble.position_law, range(2, 11), 2).holds
    coupled, coupled_class = coupler.couple_ensemble(), coupler.couple_class(plain)
    assert length_generalization(coupled_class, coupled, 8, 10).worst.value > 0.4
    assert not check_realizability(coupled_class, coupled, [8]).holds


def test_couplers_refuse_what_they_cannot_couple():
    base = far_retrieval_coupler()
    with pytest.raises(ValueError, match=r"other ranks than \(\(1,\), \(2, 3\)\)"):
        replace(base, structure=((1,), (2, 3))).couple_ensemble().position_law.table(5)
    markov = PositionCoupler(sticky_marker(2, 0.1, 0.5), gather_query, ((1,), (2,)), 2)
    with pytest.raises(ValueError, match=r"needs i\.i\.d\. tokens, not MarkovChain"):
        markov.couple_ensemble()
