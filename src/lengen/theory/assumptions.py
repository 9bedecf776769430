"""Checkers of the paper's assumptions: each returns the smallest constant that holds, and a witness where it fails.

A `Finding` is exact when it comes from enumeration; otherwise it carries a 95 % interval. What cannot be enumerated is
the paper's "for all ℓ": positions and lengths are checked up to the ones that are asked for. Only a `TableKey`, which
knows nothing but a set's shape, is known at every position.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import comb, inf

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengen.theory.attention import AttentionClass, SparseAttention
from lengen.theory.ensembles import Ensemble, LabelledBatch
from lengen.theory.keys import Key, TableKey, local_shapes
from lengen.theory.position_laws import PositionLaw
from lengen.theory.risk import Estimate, measure_loss

MAX_KEY_EVALUATIONS = 2**26
"""The most (set, token tuple) pairs at which one key may be inspected."""

_CHUNK_EVALUATIONS = 2**20  # pairs held at once: some 50 MB with their positions, tokens and scores


@dataclass(frozen=True)
class Finding:
    """What a checker found: does the assumption hold, with which smallest constant, and if not, where it breaks."""

    assumption: str
    holds: bool
    constant: Estimate
    witness: str


def check_locality(attention_class: AttentionClass, vocab_size: int, max_position: int, locality: int) -> Finding:
    """Assumption 3.3, item 1: the smallest L_local, over sets of positions up to `max_position`."""
    widest, witness = -1, f"no set up to position {max_position} has a finite score"
    for name, key in attention_class.keys.items():
        for sets, tuples in _sets_and_tuples(key, attention_class.sparsity, vocab_size, max_position):
            finite = torch.isfinite(_score_everywhere(key, sets, tuples))  # [sets, tuples]
            widths = torch.where(finite.any(dim=1), sets[:, -1] - sets[:, 0], -1)
            at = int(widths.argmax())
            if int(widths[at]) > widest:
                widest = int(widths[at])
                tokens = tuples[int(finite[at].nonzero()[0, 0])].tolist()
                witness = f"key {name!r} is finite on the set {sets[at].tolist()} with tokens {tokens}"
    return Finding("locality", widest <= locality, Estimate.exactly(float(max(widest, 0))), witness)


def check_relativity(attention_class: AttentionClass, vocab_size: int, max_position: int) -> Finding:
    """Assumption 3.3, item 2: the largest |g_0(S, x) − g_0(S + 1, x)|, which is 0 exactly when keys are relative."""
    largest, witness = 0.0, f"no shift up to position {max_position} changes a score"
    for name, key in attention_class.keys.items():
        for sets, tuples in _sets_and_tuples(key, attention_class.sparsity, vocab_size, max_position - 1):
            here, there = _score_everywhere(key, sets, tuples), _score_everywhere(key, sets + 1, tuples)
            change = torch.where(here == there, 0.0, (here - there).abs())  # −∞ − (−∞) is not a change
            at = int(change.argmax())
            if float(change.flatten()[at]) > largest:
                largest = float(change.flatten()[at])
                which_set, which_tuple = divmod(at, len(tuples))
                witness = (
                    f"key {name!r} with tokens {tuples[which_tuple].tolist()} scores {float(here.flatten()[at])} on "
                    f"{sets[which_set].tolist()} and {float(there.flatten()[at])} one position later"
                )
    return Finding("relativity", largest == 0, Estimate.exactly(largest), witness)


def check_realizability(
    attention_class: AttentionClass,
    ensemble: Ensemble,
    lengths: Iterable[int],
    delta: float = 0.0,
    samples: int = 0,
    seed: int = 0,
) -> Finding:
    """Assumption 4.1: the smallest δ = min over h of the largest expected loss over `lengths`.

    Exact where P_ℓ can be enumerated, else estimated from `samples` draws.
    """
    lengths = list(lengths)
    best: tuple[Estimate, str] | None = None
    for name, hypothesis in attention_class.hypotheses().items():
        worst, worst_length = Estimate.exactly(0.0), lengths[0]
        for length in lengths:
            loss = measure_loss(hypothesis, ensemble, length, samples, seed)
            if loss.value >= worst.value:
                worst, worst_length = loss, length
            if best is not None and worst.value >= best[0].value:
                break  # no better than the best so far, whatever its other lengths bring
        else:
            best = worst, f"the best hypothesis, {name}, loses most at length {worst_length}"
    assert best is not None  # a class is never empty
    return Finding("realizability", best[0].low <= delta, best[0], best[1])


def check_strong_realizability(
    attention_class: AttentionClass, ensemble: Ensemble, lengths: Iterable[int], delta: float = 0.0
) -> Finding:
    """Assumption D.1: the smallest δ such that some (g_0, g_1) single out S* and label it, but for probability δ."""
    lengths = list(lengths)
    failures = {
        name: max(_strong_failure(hypothesis, ensemble, length) for length in lengths)
        for name, hypothesis in attention_class.hypotheses().items()
    }
    best = min(failures, key=lambda name: failures[name])
    witness = f"the best hypothesis, {best}, fails to single out the planted set with this probability"
    return Finding("strong realizability", failures[best] <= delta, Estimate.exactly(failures[best]), witness)


def check_coverage(law: PositionLaw, length: int, locality: int, largest: float = inf) -> Finding:
    """Assumption 4.2: the smallest η_ℓ at ℓ = `length`; infinite where the law has no coverage.

    Shorter lengths ℓ' run from L_local, or from where the law exists. A 0/0 is no constraint: the inequalities are
    read as Q_ℓ(S) ≤ η Q_ℓ'(S − Δ) and Q_ℓ'(S) ≤ η Q_ℓ(S).
    """
    if length < locality:
        raise ValueError(f"coverage is asked of lengths from L_local={locality} up, not of length={length}")
    here = law.mass_by_shape(length)
    eta, witness = 1.0, "every ratio is at most 1"
    for shorter in range(max(locality, law.shortest), length + 1):
        there = law.mass_by_shape(shorter)
        for shape in here.keys() | there.keys():
            long_mass = here.get(shape, np.zeros(length - shape[-1]))
            short_mass = there.get(shape, np.zeros(max(0, shorter - shape[-1])))
            if not len(short_mass):
                continue
            # S* starts at p and S* − Δ at any p' <= p where the shape fits in the shorter length.
            last_start = np.minimum(np.arange(len(long_mass)), len(short_mass) - 1)
            first = _ratio(long_mass, np.minimum.accumulate(short_mass)[last_start])
            second = _ratio(short_mass, long_mass[: len(short_mass)])
            for ratios, statement in ((first, "Q_ℓ(S)/Q_ℓ'(S−Δ)"), (second, "Q_ℓ'(S)/Q_ℓ(S)")):
                at = int(ratios.argmax())
                if ratios[at] > eta:
                    eta = float(ratios[at])
                    planted = [at + 1 + offset for offset in shape]
                    witness = f"{statement} = {eta:g} at ℓ={length}, ℓ'={shorter}, S={planted}"
    return Finding("coverage", eta <= largest and eta < inf, Estimate.exactly(eta), witness)


def planted_mass_beyond(law: PositionLaw, length: int, locality: int) -> float:
    """Q_ℓ^pos(max S* − min S* > L_local): what Theorem 4.3's proof leaves out in its eq. (13)."""
    table = law.table(length)
    return float(table.probabilities[table.sets[:, -1] - table.sets[:, 0] > locality].sum())


def dead_mass(hypothesis: SparseAttention, ensemble: Ensemble, length: int) -> float:
    """The probability that every score is −∞ (footnote 6's case), where the proof of Theorem 4.3 divides by zero."""
    sets = torch.combinations(torch.arange(length), hypothesis.sparsity)
    return sum(
        float((~_finite_sets(hypothesis, batch, sets).any(axis=1)) @ batch.weights)
        for batch in ensemble.enumerate(length)
    )


def _strong_failure(hypothesis: SparseAttention, ensemble: Ensemble, length: int) -> float:
    sets = torch.combinations(torch.arange(length), hypothesis.sparsity)
    failure = 0.0
    for batch in ensemble.enumerate(length):
        finite = _finite_sets(hypothesis, batch, sets)
        is_planted = (batch.planted[:, None] == sets.numpy()[None] + 1).all(axis=2)
        singled_out = (finite == is_planted).all(axis=1)
        planted_tokens = np.take_along_axis(batch.sequences, batch.planted - 1, axis=1)
        right = (hypothesis.value(torch.from_numpy(planted_tokens)).numpy() == batch.labels).all(axis=1)
        failure += float((~(singled_out & right)) @ batch.weights)
    return failure


def _finite_sets(
    hypothesis: SparseAttention, batch: LabelledBatch, sets: Int[Tensor, "s k"]
) -> Bool[np.ndarray, "n s"]:
    tokens = torch.from_numpy(batch.sequences)[:, sets]
    finite: Bool[np.ndarray, "n s"] = torch.isfinite(hypothesis.key((sets + 1).expand_as(tokens), tokens)).numpy()
    return finite


def _sets_and_tuples(
    key: Key, sparsity: int, vocab_size: int, max_position: int
) -> Iterator[tuple[Int[Tensor, "s k"], Int[Tensor, "t k"]]]:
    """The sets at which a key is inspected, in chunks, and all token tuples.

    A table knows shapes, not positions, and is −∞ on wider ones: each local shape once, at the start, is all there is.
    """
    shapes = local_shapes(sparsity, key.locality) if isinstance(key, TableKey) else None
    num_sets = comb(max_position, sparsity) if shapes is None else len(shapes)
    if num_sets * vocab_size**sparsity > MAX_KEY_EVALUATIONS:
        raise ValueError(
            f"inspecting a key on {num_sets} sets up to position {max_position} with {vocab_size} tokens needs "
            f"{num_sets * vocab_size**sparsity} scores, above the limit of {MAX_KEY_EVALUATIONS}; use shorter lengths, "
            "fewer tokens, or a TableKey, which is inspected once a shape"
        )
    if shapes is None:
        sets = torch.combinations(torch.arange(1, max_position + 1), sparsity)
    else:
        sets = shapes[shapes[:, -1] < max_position] + 1
    tuples = torch.cartesian_prod(*[torch.arange(vocab_size)] * sparsity).reshape(-1, sparsity)
    sets_at_once = max(1, _CHUNK_EVALUATIONS // len(tuples))
    for start in range(0, len(sets), sets_at_once):
        yield sets[start : start + sets_at_once], tuples


def _score_everywhere(key: Key, sets: Int[Tensor, "s k"], tuples: Int[Tensor, "t k"]) -> Float[Tensor, "s t"]:
    shape = (len(sets), len(tuples), sets.shape[1])
    with torch.no_grad():
        return key(sets[:, None].expand(shape), tuples[None].expand(shape))


def _ratio(top: Float[np.ndarray, " n"], bottom: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    safe = np.where(bottom > 0, bottom, 1.0)
    return np.where(top == 0, 0.0, np.where(bottom > 0, top / safe, inf))
