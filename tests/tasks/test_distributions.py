"""What is drawn is drawn as the paper says: uniformly, and as a pure function of the generator.

Seeds are fixed, so a test either always passes or never does. A chi-square test asks whether the counts could come from
the stated distribution; p > 1e-4 is demanded, which a wrong sampler misses by far at these numbers of examples (the
`wrong samplers` below show it).
"""

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from lengen.seeding import rng_for
from lengen.tasks import (
    TASKS,
    Addition,
    Copy,
    KgramRetrieval,
    ParityScratchpad,
    SparseParity,
    StringReversal,
    Task,
    VariableAssignment,
)

from .reading import read_many

SMALLEST_P = 1e-4
NUM_EXAMPLES = 8_000


def check_uniform(outcomes: Iterable[Hashable], support: Iterable[Hashable]) -> None:
    """Every outcome lies in the support, and all of the support is equally likely."""
    counts = Counter(outcomes)
    support = list(support)
    strays = set(counts) - set(support)
    assert not strays, f"outside of the support: {sorted(strays, key=str)[:5]}"
    observed = [counts[outcome] for outcome in support]
    expected = counts.total() / len(support)
    assert expected >= 10, f"{expected} expected counts are too few for a chi-square test; draw more examples"
    if len(support) > 1:
        assert chisquare(observed).pvalue > SMALLEST_P, f"not uniform: {dict(counts.most_common(5))} of {expected} each"


# ------------------------------------------------------------------------------------------------------ sparse parity


@pytest.mark.parametrize(
    ("k_train", "num_bits", "largest"),
    [(4, 10, 4), (8, 25, 8), (12, 5, 4), (12, 13, 12), (12, 12, 11), (1, 10, 1), (10, 2, 1)],
)
def test_number_of_marked_bits_is_uniform(k_train: int, num_bits: int, largest: int):
    """k ~ Unif[min(k_train, ℓ − 1)]: where K_train does not fit, the k that fit stay equally likely."""
    read = read_many(SparseParity(k_train=k_train), 2 * num_bits, 4_000, "k")
    check_uniform((len(example.marked) for example in read), range(1, largest + 1))


@pytest.mark.parametrize(("num_bits", "k_test"), [(5, 2), (5, 4), (6, 3), (8, 1)])
def test_marked_subset_is_uniform(num_bits: int, k_test: int):
    read = read_many(SparseParity(k_test=k_test), 2 * num_bits, NUM_EXAMPLES, "subsets")
    check_uniform((example.marked for example in read), combinations(range(num_bits), k_test))


def test_marked_subset_is_uniform_given_a_drawn_k():
    read = read_many(SparseParity(k_train=3), 10, NUM_EXAMPLES, "subsets")
    for k in (1, 2, 3):
        check_uniform(
            (example.marked for example in read if len(example.marked) == k),
            combinations(range(5), k),
        )


@pytest.mark.parametrize("num_markers", [2, 3, 5, 8, 20])
def test_markers_are_uniform_on_each_half(num_markers: int):
    """The low half is j ≤ N/2; for an odd N, that is the smaller one."""
    read = read_many(SparseParity(num_markers=num_markers), 12, 6_000, "markers")
    low = [example.markers[pair] for example in read for pair in example.marked]
    high = [example.markers[pair] for example in read for pair in set(range(6)) - set(example.marked)]
    half = math.floor(num_markers / 2)
    check_uniform(low, range(1, half + 1))
    check_uniform(high, range(half + 1, num_markers + 1))


def test_markers_of_one_example_are_independent():
    read = read_many(SparseParity(num_markers=8, k_test=2), 8, NUM_EXAMPLES, "marker pairs")
    check_uniform(
        (tuple(example.markers[pair] for pair in example.marked) for example in read),
        product(range(1, 5), repeat=2),
    )


def test_sparse_parity_bits_are_fair_whatever_is_marked():
    read = read_many(SparseParity(k_test=1), 8, NUM_EXAMPLES, "sparse bits")
    check_uniform(((example.marked[0], example.bits) for example in read), product(range(4), product((0, 1), repeat=4)))


# ------------------------------------------------------------------------------------------------------- other tasks


@pytest.mark.parametrize("jump", [1, 2, 5])
def test_parity_bits_are_fair(jump: int):
    num_bits = {1: 5, 2: 4, 5: 5}[jump]
    read = read_many(ParityScratchpad(jump=jump), 2 * num_bits, NUM_EXAMPLES, "bits")
    check_uniform((example.bits for example in read), product((0, 1), repeat=num_bits))


def interleavings(num_chains: int, depth: int) -> set[tuple[int, ...]]:
    return set(permutations([chain for chain in range(num_chains) for _ in range(depth)]))


@pytest.mark.parametrize(("num_chains", "depth"), [(2, 2), (2, 3), (3, 1), (3, 2), (4, 1)])
def test_interleavings_are_uniform(num_chains: int, depth: int):
    task = VariableAssignment(depth=depth, num_variables=num_chains * (depth + 1))
    read = read_many(task, 3 * depth * num_chains, NUM_EXAMPLES, "interleavings")
    support = interleavings(num_chains, depth)
    assert len(support) == math.factorial(num_chains * depth) // math.factorial(depth) ** num_chains
    check_uniform((example.interleaving for example in read), support)


@pytest.mark.parametrize(("num_variables", "depth"), [(4, 1), (5, 2), (6, 2)])
def test_variables_of_the_chain_asked_for_are_uniform(num_variables: int, depth: int):
    """All ordered choices of distinct variables are equally likely, however many other chains there are."""
    task = VariableAssignment(depth=depth, num_variables=num_variables)
    for num_chains in range(1, num_variables // (depth + 1) + 1):
        read = read_many(task, 3 * depth * num_chains, NUM_EXAMPLES, "variables")
        check_uniform((example.chains[0] for example in read), permutations(range(1, num_variables + 1), depth + 1))


def test_all_variables_of_all_chains_are_uniform():
    read = read_many(VariableAssignment(depth=1, num_variables=5), 6, NUM_EXAMPLES, "all variables")
    # The judge lists the other chains by their first variable, but there is only one other here.
    check_uniform(((*example.chains[0], *example.chains[1]) for example in read), permutations(range(1, 6), 4))


@pytest.mark.parametrize(("gram_size", "length"), [(1, 4), (1, 12), (2, 12), (3, 20)])
def test_place_of_the_gram_is_uniform(gram_size: int, length: int):
    """ℓ' ~ Unif[ℓ − 2k − 1], read from the answer's id."""
    read = read_many(KgramRetrieval(gram_size=gram_size), length, 6_000, "places")
    check_uniform((example.before for example in read), range(1, length - 2 * gram_size))


def test_gram_symbols_and_place_are_jointly_uniform():
    """X_1 … X_{ℓ−k} ~ Unif and ℓ' are independent: k = 1, ℓ = 5, two symbols."""
    read = read_many(KgramRetrieval(gram_size=1, num_symbols=2), 5, NUM_EXAMPLES, "grams")
    check_uniform(
        ((example.symbols[:4], example.before) for example in read), product(product((0, 1), repeat=4), (1, 2))
    )


@pytest.mark.parametrize("task", [Copy(num_symbols=4), StringReversal(num_symbols=4)], ids=lambda task: task.name)
def test_symbols_are_uniform(task: Task):
    read = read_many(task, 3, NUM_EXAMPLES, "symbols")
    check_uniform((example.symbols for example in read), product(range(4), repeat=3))


def test_operands_are_uniform():
    read = read_many(Addition(), 1, NUM_EXAMPLES, "digits")
    check_uniform(((example.left, example.right) for example in read), product(range(10), repeat=2))
    read = read_many(Addition(), 2, NUM_EXAMPLES, "digits")
    check_uniform((example.left for example in read), range(100))
    check_uniform((example.right for example in read), range(100))


# ------------------------------------------------------------------------- wrong samplers: the checks above can fail


def clipped_k(rng: random.Random) -> int:
    """Draws k from all of [K_train = 12] and clips it to ℓ − 1 = 4, instead of drawing from [4]."""
    return min(rng.randint(1, 12), 4)


def subset_by_coins(rng: random.Random) -> tuple[int, ...]:
    """Marks each of 5 bits by a coin until 2 are marked: early places are likelier."""
    marked: list[int] = []
    for place in range(5):
        must = 5 - place == 2 - len(marked)
        if len(marked) < 2 and (must or rng.random() < 0.5):
            marked.append(place)
    return tuple(marked)


def greedy_interleaving(rng: random.Random) -> tuple[int, ...]:
    """Goes on with a random unfinished chain: a natural way to interleave, but not a uniform one."""
    left = [2, 2]
    order = []
    while sum(left):
        chain = rng.choice([chain for chain in (0, 1) if left[chain]])
        left[chain] -= 1
        order.append(chain)
    return tuple(order)


def place_from_zero(rng: random.Random) -> int:
    """ℓ' from 0 on: an off-by-one."""
    return rng.randint(0, 8)


def place_one_short(rng: random.Random) -> int:
    """ℓ' below ℓ − 2k − 1 = 9: the other off-by-one."""
    return rng.randint(1, 8)


def unfair_bits(rng: random.Random) -> tuple[int, ...]:
    """Bits of which 47 % are ones."""
    return tuple(int(rng.random() < 0.47) for _ in range(5))


def repeated_variables(rng: random.Random) -> tuple[int, ...]:
    """Variables that need not be distinct."""
    return tuple(rng.randint(1, 4) for _ in range(2))


def cyclic_variables(rng: random.Random) -> tuple[int, ...]:
    """Each variable is uniform on its own, but neighbours go together."""
    first = rng.randint(0, 3)
    return (1 + first, 1 + (first + 1) % 4)


@pytest.mark.parametrize(
    ("wrong_sampler", "support"),
    [
        (clipped_k, range(1, 5)),
        (subset_by_coins, list(combinations(range(5), 2))),
        (greedy_interleaving, interleavings(2, 2)),
        (place_from_zero, range(1, 10)),
        (place_one_short, range(1, 10)),
        (unfair_bits, list(product((0, 1), repeat=5))),
        (repeated_variables, list(permutations(range(1, 5), 2))),
        (cyclic_variables, list(permutations(range(1, 5), 2))),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_uniformity_can_fail(wrong_sampler: Callable[[random.Random], Hashable], support: Iterable[Hashable]):
    rng = random.Random(0)
    outcomes = [wrong_sampler(rng) for _ in range(4_000)]
    with pytest.raises(AssertionError, match=r"not uniform|outside of the support"):
        check_uniform(outcomes, support)


# ------------------------------------------------------------------------------------------- a pure function of the rng

tasks = pytest.mark.parametrize("name", TASKS)


def batches_equal(one: Any, other: Any) -> bool:
    return np.array_equal(one.tokens, other.tokens) and np.array_equal(one.coupled_ids, other.coupled_ids)


@tasks
def test_same_generator_gives_same_batch(name: str):
    task = TASKS[name]()
    assert batches_equal(task.sample(rng_for(5, "train", 7), 16, 20), task.sample(rng_for(5, "train", 7), 16, 20))
    # A fresh instance with equal settings is the same task: nothing is remembered from call to call.
    again = TASKS[name]()
    again.sample(rng_for(0, "elsewhere"), 3, 30)
    assert batches_equal(again.sample(rng_for(5, "train", 7), 16, 20), task.sample(rng_for(5, "train", 7), 16, 20))


@tasks
def test_other_step_seed_or_stream_gives_another_batch(name: str):
    task = TASKS[name]()
    batch = task.sample(rng_for(5, "train", 7), 16, 20)
    for other in (rng_for(5, "train", 8), rng_for(6, "train", 7), rng_for(5, "evaluate", 7), rng_for(7, "train", 5)):
        assert not np.array_equal(task.sample(other, 16, 20).tokens, batch.tokens)


@tasks
def test_one_generator_goes_on_from_batch_to_batch(name: str):
    task, rng = TASKS[name](), rng_for(5, "train", 7)
    assert not batches_equal(task.sample(rng, 16, 20), task.sample(rng, 16, 20))


@tasks
def test_examples_of_a_batch_differ(name: str):
    """A draw shared by the batch (one chain, one subset, one string for all) would pass every judge."""
    tokens = TASKS[name]().sample(rng_for(5, "train", 7), 64, 20).tokens
    assert len(np.unique(tokens, axis=0)) >= 60


@pytest.mark.parametrize(("seed", "step", "named"), [(-1, 0, "seed=-1"), (0, -1, "step=-1")])
def test_negative_seeds_are_refused(seed: int, step: int, named: str):
    with pytest.raises(ValueError, match=f"^{named} is negative; use 0 or more"):
        rng_for(seed, "train", step)


# ---------------------------------------------------------------------------------------------- lengths and settings

# (task, a length that does not fit, the lengths that the message advises)
BAD_LENGTHS: list[tuple[Task, int, list[int]]] = [
    (SparseParity(), 2, [4]),
    (SparseParity(), 0, [4]),
    (SparseParity(), 21, [20, 22]),
    (SparseParity(k_test=10), 20, [22]),
    (ParityScratchpad(), 0, [2]),
    (ParityScratchpad(), 11, [10, 12]),
    (ParityScratchpad(jump=4), 6, [8]),
    (ParityScratchpad(jump=4), 7, [8]),
    (VariableAssignment(depth=3), 8, [9, 458]),
    (VariableAssignment(depth=3), 459, [9, 458]),
    (VariableAssignment(depth=2, num_variables=7), 18, [6, 17]),
    (StringReversal(), 0, [1]),
    (Copy(), -3, [1]),
    (KgramRetrieval(), 5, [6]),
    (KgramRetrieval(gram_size=1), 3, [4]),
    (Addition(), 0, [1]),
]


@pytest.mark.parametrize(("task", "length", "advised"), BAD_LENGTHS, ids=str)
def test_length_that_does_not_fit_is_refused_with_advice(task: Task, length: int, advised: list[int]):
    with pytest.raises(ValueError, match=rf"length={length}\b") as raised:
        task.sample(rng_for(0, "bad"), 2, length)
    advice = str(raised.value).rpartition(";")[2]
    # What is advised is advised in so many words, and is true.
    assert [int(number) for number in re.findall(r"\b\d+\b", advice)] == advised
    for fitting in advised:
        task.sample(rng_for(0, "good"), 2, fitting)
    with pytest.raises(ValueError, match=rf"length={length}\b"):
        task.check_length(length)
    assert not task.fits(length)


BAD_SETTINGS: list[tuple[type[Task], dict[str, int], str]] = [
    (SparseParity, {"num_markers": 1}, "num_markers=1 is too few; use at least 2"),
    (SparseParity, {"k_train": 0}, "k_train=0 is too small; use at least 1"),
    (SparseParity, {"k_test": -1}, "k_test=-1 is negative; use 0"),
    (ParityScratchpad, {"jump": 0}, "jump=0 is too small; use at least 1"),
    (VariableAssignment, {"depth": 0}, "depth=0 is too small; use at least 1"),
    (VariableAssignment, {"depth": 4, "num_variables": 4}, "num_variables=4 cannot fill one chain of depth=4; use at"),
    (StringReversal, {"num_symbols": 0}, "num_symbols=0 is too few; use at least 1"),
    (Copy, {"num_symbols": 0}, "num_symbols=0 is too few; use at least 1"),
    (KgramRetrieval, {"gram_size": 0}, "gram_size=0 is too small; use at least 1"),
    (KgramRetrieval, {"num_symbols": 1}, "num_symbols=1 is too few; use at least 2"),
]


@pytest.mark.parametrize(("task", "settings", "message"), BAD_SETTINGS, ids=str)
def test_setting_out_of_range_is_refused(task: type[Task], settings: dict[str, int], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        task(**settings)


def test_smallest_settings_are_accepted():
    for task, length in (
        (SparseParity(num_markers=2, k_train=1, k_test=0), 4),
        (ParityScratchpad(jump=1), 2),
        (VariableAssignment(depth=1, num_variables=2), 3),
        (Copy(num_symbols=1), 1),
        (KgramRetrieval(gram_size=1, num_symbols=2), 4),
    ):
        task.sample(rng_for(0, "smallest"), 2, length)


def test_lengths_between_are_those_that_fit():
    assert SparseParity().lengths_between(1, 9) == (4, 6, 8)
    assert ParityScratchpad(jump=3).lengths_between(2, 10) == (6, 8, 10)
    assert VariableAssignment(depth=3).lengths_between(7, 11) == (9, 10, 11)
    assert Addition().lengths_between(0, 2) == (1, 2)
    with pytest.raises(ValueError, match="no length from 1 to 3 fits sparse-parity; length is 2ℓ"):
        SparseParity().lengths_between(1, 3)
