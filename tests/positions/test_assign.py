"""Which ids a token gets: bounds, order, sharing and distribution of every assigner.

Distributions are compared with a literal plain-Python reading of the paper's scheme, enumerated on a tiny case, by a
chi-square test on sampled frequencies (fixed seeds; p > 1e-4). Every check is a function of its own, and a test beside
it shows which wrong ids it refuses.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from lengen.positions import Scheme
from lengen.positions.assign import (
    ASSIGNERS,
    Assigner,
    Contiguous,
    Coupled,
    Pose,
    Predicted,
    Randomized,
    Shifted,
)
from lengen.positions.scheme import ENCODERS
from lengen.seeding import rng_for
from lengen.tasks import TASKS, Addition, Copy, Examples, ParityScratchpad, SparseParity, Task, VariableAssignment

SMALLEST_P = 1e-4
NUM_EXAMPLES = 8_000
Ids = tuple[int, ...]
reproducible = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def examples_with(coupled_ids: np.ndarray) -> Examples:
    """Examples of which only the ids matter."""
    return Examples(np.zeros_like(coupled_ids), coupled_ids, 1, coupled_ids.shape[1])


def plain_examples(batch_size: int, num_tokens: int) -> Examples:
    """Examples for the assigners that look at the number of tokens alone: reading these coupled ids would show."""
    return examples_with(np.full((batch_size, num_tokens), -1))


def rows_of(ids: np.ndarray) -> list[Ids]:
    return [tuple(row) for row in ids.tolist()]


def check_bounds(ids: np.ndarray, max_position_id: int) -> None:
    assert ids.min() >= 1, f"id {ids.min()} is below 1"
    assert ids.max() <= max_position_id, f"id {ids.max()} is above {max_position_id}"


def check_increasing(ids: np.ndarray) -> None:
    assert (np.diff(ids, axis=1) > 0).all(), "ids do not increase strictly"


def check_consecutive(ids: np.ndarray) -> None:
    assert (np.diff(ids, axis=1) == 1).all(), "ids are not consecutive"


def check_plain(ids: np.ndarray) -> None:
    """The ids of test time: 1, 2, …, T (Sec. 2.2)."""
    for row in rows_of(ids):
        assert row == tuple(range(1, len(row) + 1)), f"{row} is not 1 … {len(row)}"


def check_chunks(ids: np.ndarray, num_chunks: int) -> None:
    """At most c − 1 jumps, the rest consecutive: c contiguous chunks, of which neighbours may touch."""
    num_gaps = (np.diff(ids, axis=1) != 1).sum(axis=1)
    assert num_gaps.max() <= num_chunks - 1, f"{num_gaps.max()} gaps in {num_chunks} chunks"


def check_distribution(outcomes: list[Ids], probabilities: dict[Ids, Fraction]) -> None:
    """The outcomes come from exactly this distribution: none outside of its support, none too often or too rarely."""
    assert sum(probabilities.values()) == 1
    counts = Counter(outcomes)
    strays = set(counts) - set(probabilities)
    assert not strays, f"outside of the support: {sorted(strays)[:5]}"
    expected = [float(probability * len(outcomes)) for probability in probabilities.values()]
    assert min(expected) >= 5, "too few examples for a chi-square test"
    if len(expected) == 1:
        return  # nothing to choose: the support says it all
    p = chisquare([counts[outcome] for outcome in probabilities], expected).pvalue
    assert p > SMALLEST_P, f"p = {p:.2g}: not the stated distribution"


def distribution_of(outcomes: Iterator[Ids]) -> dict[Ids, Fraction]:
    """The distribution of equally likely outcomes, equal ones taken together."""
    counts = Counter(outcomes)
    return {outcome: Fraction(count, counts.total()) for outcome, count in counts.items()}


CORRUPTIONS: list[tuple[Callable[[np.ndarray], None], list[list[int]], str]] = [
    (lambda ids: check_bounds(ids, 9), [[1, 2, 3], [0, 1, 2]], "below 1"),
    (lambda ids: check_bounds(ids, 9), [[1, 2, 3], [8, 9, 10]], "above 9"),
    (check_increasing, [[1, 2, 3], [4, 4, 5]], "increase strictly"),
    (check_increasing, [[1, 2, 3], [4, 3, 5]], "increase strictly"),
    (check_consecutive, [[1, 2, 3], [4, 5, 7]], "not consecutive"),
    (check_plain, [[1, 2, 3], [2, 3, 4]], "is not 1"),
    (check_plain, [[0, 1, 2]], "is not 1"),
    (lambda ids: check_chunks(ids, 2), [[1, 2, 3, 4], [1, 3, 4, 6]], "2 gaps in 2 chunks"),
]


@pytest.mark.parametrize(("check", "wrong_ids", "message"), CORRUPTIONS)
def test_checks_can_fail(check: Callable[[np.ndarray], None], wrong_ids: list[list[int]], message: str):
    with pytest.raises(AssertionError, match=re.escape(message)):
        check(np.array(wrong_ids))


def test_all_assigners_are_known_here():
    assert set(ASSIGNERS) == {"contiguous", "shifted", "pose", "randomized", "coupled", "predicted"}
    assert {name for name, assigner in ASSIGNERS.items() if assigner.predicts_ids} == {"predicted"}


# ------------------------------------------------------------------------------------------- what all have in common


@st.composite
def assigner_cases(draw: st.DrawFn) -> tuple[Assigner, int]:
    """Any assigner of any settings, with a number of tokens that it can train on."""
    num_tokens = draw(st.integers(4, 40))
    room = draw(st.integers(1, 60))
    name = draw(st.sampled_from(sorted(ASSIGNERS)))
    assigner = replace(ASSIGNERS[name](), max_position_id=num_tokens + room)
    if isinstance(assigner, Pose):
        assigner = replace(
            assigner,
            num_chunks=draw(st.integers(1, 4)),
            pose_variant=draw(st.sampled_from(["paper", "original"])),
        )
    if isinstance(assigner, Coupled):
        assigner = replace(
            assigner, shift_reserved=draw(st.booleans()), offset_per=draw(st.sampled_from(["example", "batch"]))
        )
    return assigner, num_tokens


@reproducible
@given(case=assigner_cases(), seed=st.integers(0, 2**32), training=st.booleans())
def test_ids_are_integers_in_bounds_and_a_pure_function_of_the_rng(
    case: tuple[Assigner, int], seed: int, training: bool
):
    assigner, num_tokens = case
    coupled_ids = np.tile(1 + np.arange(num_tokens) % 7, (8, 1))  # no separators: every id is to be within 1 … L_max
    examples = examples_with(coupled_ids)
    ids = assigner(examples, rng_for(seed, "assign"), training)
    assert ids.shape == coupled_ids.shape
    assert ids.dtype == np.int64
    check_bounds(ids, assigner.max_position_id)
    assert np.array_equal(ids, assigner(examples, rng_for(seed, "assign"), training))
    assert np.array_equal(examples.coupled_ids, np.tile(1 + np.arange(num_tokens) % 7, (8, 1))), "the input was changed"


@pytest.mark.parametrize("name", sorted(set(ASSIGNERS) - {"contiguous"}))
def test_training_ids_differ_between_steps(name: str):
    examples = Copy().sample(rng_for(0, "steps"), 16, 5)
    one, other = (ASSIGNERS[name]()(examples, rng_for(0, "train", step), True) for step in (1, 2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", sorted(set(ASSIGNERS) - {"contiguous"}))
def test_every_draw_is_per_example(name: str):
    """A batch of 64 equal examples gets many different offsets, chunks or subsets."""
    examples = examples_with(np.tile(np.arange(1, 11), (64, 1)))
    ids = ASSIGNERS[name]()(examples, rng_for(0, "train"), True)
    assert len(np.unique(ids, axis=0)) > 40


@pytest.mark.parametrize("assigner", [Contiguous(), Shifted(), Pose(), Pose(pose_variant="original")])
@pytest.mark.parametrize("num_tokens", [1, 2, 33])
def test_ids_at_test_time_are_plain(assigner: Assigner, num_tokens: int):
    check_plain(assigner(plain_examples(8, num_tokens), rng_for(0, "test"), False))


@pytest.mark.parametrize("assigner", [Contiguous(), Shifted(), Pose()])
def test_test_time_ids_may_pass_the_largest_training_id(assigner: Assigner):
    """Rotary and other encoders without a table go on beyond L_max; whether a model can is the scheme's question."""
    check_plain(replace(assigner, max_position_id=10)(plain_examples(2, 50), rng_for(0, "test"), False))


@pytest.mark.parametrize("assigner", [Shifted(), Pose()])
def test_plain_ids_can_fail(assigner: Assigner):
    with pytest.raises(AssertionError, match="is not 1"):
        check_plain(assigner(plain_examples(8, 10), rng_for(0, "test"), True))


@pytest.mark.parametrize("name", ASSIGNERS)
def test_max_position_id_out_of_range_is_refused(name: str):
    with pytest.raises(ValueError, match="max_position_id=0 is too small; use at least 1"):
        ASSIGNERS[name](max_position_id=0)


# --------------------------------------------------------------------------------------------- contiguous and shifted


@pytest.mark.parametrize("training", [True, False])
def test_contiguous(training: bool):
    check_plain(Contiguous()(plain_examples(8, 20), rng_for(0, "contiguous"), training))


def shifted_distribution(num_tokens: int, max_position_id: int) -> dict[Ids, Fraction]:
    """Ids 1 … T plus an offset ~ Unif{0, …, L_max − T}."""
    offsets = range(max_position_id - num_tokens + 1)
    return distribution_of(tuple(range(1 + offset, num_tokens + offset + 1)) for offset in offsets)


@pytest.mark.parametrize(("test_offset", "training"), [("none", True), ("random", True), ("random", False)])
def test_shifted_distribution(test_offset: str, training: bool):
    assigner = Shifted(max_position_id=11, test_offset=test_offset)
    ids = assigner(plain_examples(NUM_EXAMPLES, 4), rng_for(0, "shifted"), training)
    check_consecutive(ids)
    check_distribution(rows_of(ids), shifted_distribution(4, 11))


def test_shifted_distribution_can_fail():
    ids = rows_of(Shifted(max_position_id=11)(plain_examples(NUM_EXAMPLES, 4), rng_for(0, "shifted"), True))
    for wrong_max in (10, 12):  # the off-by-ones of the largest offset
        with pytest.raises(AssertionError, match=r"outside of the support|not the stated distribution"):
            check_distribution(ids, shifted_distribution(4, wrong_max))


def test_shifted_without_room_has_one_choice():
    check_plain(Shifted(max_position_id=6)(plain_examples(20, 6), rng_for(0, "no room"), True))


# --------------------------------------------------------------------------------------------------------------- PoSE


def pose_outcomes(num_tokens: int, max_position_id: int) -> Iterator[Ids]:
    """Sec. 2.2, word by word, for c = 2. Each outcome is as likely as any other.

    Split into two parts at a uniformly random position. J_0, J_1 ~ Unif([L̄ − ℓ]). The ids of the first chunk begin at
    min{J_0, J_1} and those of the second at max{J_0, J_1} + ℓ_1, where ℓ_1 is the length of the first chunk.
    """
    choices = range(1, max_position_id - num_tokens + 1)  # [n] = {1, …, n}
    for first_len in range(1, num_tokens):  # both parts hold a token
        for j0, j1 in product(choices, choices):
            first_start, second_start = min(j0, j1), max(j0, j1) + first_len
            first = [first_start + i for i in range(first_len)]
            second = [second_start + i for i in range(num_tokens - first_len)]
            yield (*first, *second)


def pose_outcomes_for_chunks(num_chunks: int, num_tokens: int, max_position_id: int) -> Iterator[Ids]:
    """The same for c chunks: c sorted draws, and chunk i starts at the i-th of them plus the tokens before it."""
    choices = range(1, max_position_id - num_tokens + 1)
    for cuts in combinations(range(1, num_tokens), num_chunks - 1):
        bounds = [0, *cuts, num_tokens]
        for draws in product(choices, repeat=num_chunks):
            ids: list[int] = []
            for chunk, start in enumerate(sorted(draws)):
                ids += [start + slot for slot in range(bounds[chunk], bounds[chunk + 1])]
            yield tuple(ids)


def test_both_readings_of_pose_agree_on_two_chunks():
    assert distribution_of(pose_outcomes(4, 8)) == distribution_of(pose_outcomes_for_chunks(2, 4, 8))


@pytest.mark.parametrize(("num_tokens", "max_position_id"), [(2, 4), (3, 6), (4, 7), (5, 6)])
def test_pose_distribution_is_the_paper_s(num_tokens: int, max_position_id: int):
    ids = Pose(max_position_id=max_position_id)(plain_examples(NUM_EXAMPLES, num_tokens), rng_for(0, "pose"), True)
    check_distribution(rows_of(ids), distribution_of(pose_outcomes(num_tokens, max_position_id)))


@pytest.mark.parametrize(("num_chunks", "num_tokens", "max_position_id"), [(1, 3, 8), (3, 4, 7), (3, 3, 6), (4, 5, 7)])
def test_pose_distribution_of_other_chunk_numbers(num_chunks: int, num_tokens: int, max_position_id: int):
    assigner = Pose(max_position_id=max_position_id, num_chunks=num_chunks)
    ids = assigner(plain_examples(NUM_EXAMPLES, num_tokens), rng_for(0, "pose"), True)
    check_distribution(rows_of(ids), distribution_of(pose_outcomes_for_chunks(num_chunks, num_tokens, max_position_id)))


def pose_with_empty_chunks(num_tokens: int, max_position_id: int) -> Iterator[Ids]:
    """A misreading: the split may leave a chunk empty."""
    choices = range(1, max_position_id - num_tokens + 1)
    for first_len in range(num_tokens + 1):
        for j0, j1 in product(choices, choices):
            starts = [min(j0, j1)] * first_len + [max(j0, j1)] * (num_tokens - first_len)
            yield tuple(start + slot for slot, start in enumerate(starts))


def pose_with_distinct_draws(num_tokens: int, max_position_id: int) -> Iterator[Ids]:
    """A misreading: J_0 and J_1 differ, so that there is always a gap."""
    for first_len in range(1, num_tokens):
        for low, high in combinations(range(1, max_position_id - num_tokens + 1), 2):
            yield tuple((low if slot < first_len else high) + slot for slot in range(num_tokens))


def pose_with_a_higher_bound(num_tokens: int, max_position_id: int) -> Iterator[Ids]:
    """A misreading: the draws reach up to L̄ − ℓ + 1."""
    return pose_outcomes(num_tokens, max_position_id + 1)


def pose_with_second_start_after_first(num_tokens: int, max_position_id: int) -> Iterator[Ids]:
    """A misreading: J_1 is uniform from J_0 on, which is not how the maximum of two draws is distributed."""
    top = max_position_id - num_tokens
    for first_len, first in product(range(1, num_tokens), range(1, top + 1)):
        for second, _ in product(
            range(first, top + 1), range(6 // (top + 1 - first))
        ):  # weights 1/3, 1/2, 1 at top = 3
            yield tuple((first if slot < first_len else second) + slot for slot in range(num_tokens))


@pytest.mark.parametrize(
    "misreading",
    [
        pose_with_empty_chunks,
        pose_with_distinct_draws,
        pose_with_a_higher_bound,
        pose_with_second_start_after_first,
    ],
)
def test_pose_distribution_can_fail(misreading: Callable[[int, int], Iterator[Ids]]):
    ids = Pose(max_position_id=6)(plain_examples(NUM_EXAMPLES, 3), rng_for(0, "pose"), True)
    with pytest.raises(AssertionError, match=r"outside of the support|not the stated distribution"):
        check_distribution(rows_of(ids), distribution_of(misreading(3, 6)))


@st.composite
def pose_cases(draw: st.DrawFn) -> tuple[Pose, int]:
    num_chunks = draw(st.integers(1, 6))
    num_tokens = draw(st.integers(num_chunks, 60))
    variant = draw(st.sampled_from(["paper", "original"]))
    max_position_id = num_tokens + draw(st.integers(1, 500))
    return Pose(max_position_id=max_position_id, num_chunks=num_chunks, pose_variant=variant), num_tokens


@reproducible
@given(case=pose_cases(), seed=st.integers(0, 2**32))
def test_pose_is_increasing_bounded_and_in_chunks(case: tuple[Pose, int], seed: int):
    assigner, num_tokens = case
    ids = assigner(plain_examples(32, num_tokens), rng_for(seed, "pose"), True)
    check_bounds(ids, assigner.max_position_id)
    check_increasing(ids)
    check_chunks(ids, assigner.num_chunks)
    if assigner.pose_variant == "original":
        assert (ids[:, 0] == 1).all()


@pytest.mark.parametrize("num_chunks", [1, 2, 3, 5])
@pytest.mark.parametrize("variant", ["paper", "original"])
def test_pose_has_every_number_of_gaps_up_to_its_chunks(num_chunks: int, variant: str):
    """With much room, c chunks show c − 1 gaps; with little room, neighbouring chunks often touch."""
    roomy = Pose(max_position_id=10_000, num_chunks=num_chunks, pose_variant=variant)
    ids = roomy(plain_examples(300, 20), rng_for(0, "pose"), True)
    assert ((np.diff(ids, axis=1) > 1).sum(axis=1) == num_chunks - 1).mean() > 0.9
    tight = replace(roomy, max_position_id=22 if variant == "paper" else 21)  # the original uses the last id, too
    ids = tight(plain_examples(3_000, 20), rng_for(0, "pose"), True)
    # Two values for c sorted starts: at most one gap, and none where all of them are equal.
    assert set((np.diff(ids, axis=1) > 1).sum(axis=1)) == ({0, 1} if num_chunks > 1 else {0})


def test_pose_cuts_anywhere():
    """The cut is uniform on the T − 1 places between neighbours (many ids, so that hardly any chunks touch)."""
    num_tokens = 8
    ids = Pose(max_position_id=10**9)(plain_examples(NUM_EXAMPLES, num_tokens), rng_for(0, "cuts"), True)
    cuts = [(int(cut),) for cut in (np.diff(ids, axis=1) > 1).argmax(axis=1)]
    check_distribution(cuts, distribution_of((cut,) for cut in range(num_tokens - 1)))


def test_original_pose_pins_the_first_chunk():
    """Zhu et al. (2023): the first chunk keeps its ids, the second is moved up by a uniform step.

    Unlike the paper's bound, which leaves L̄ itself unused, the original's reaches the last id.
    """
    num_tokens, max_position_id = 3, 9
    assigner = Pose(max_position_id=max_position_id, pose_variant="original")
    ids = assigner(plain_examples(NUM_EXAMPLES, num_tokens), rng_for(0, "original"), True)
    check_distribution(
        rows_of(ids),
        distribution_of(
            tuple(slot + 1 + (step if slot >= first_len else 0) for slot in range(num_tokens))
            for first_len in range(1, num_tokens)
            for step in range(max_position_id - num_tokens + 1)
        ),
    )


def test_first_chunk_of_the_paper_s_pose_is_not_pinned():
    ids = Pose(max_position_id=20)(plain_examples(500, 5), rng_for(0, "free"), True)
    assert set(ids[:, 0]) == set(range(1, 16))  # every start of [L̄ − ℓ]


@pytest.mark.parametrize("num_chunks", [0, -1])
def test_number_of_chunks_out_of_range_is_refused(num_chunks: int):
    with pytest.raises(ValueError, match=f"num_chunks={num_chunks} is too small; use at least 1"):
        Pose(num_chunks=num_chunks)


# --------------------------------------------------------------------------------------------------------- randomized


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("num_tokens", "max_position_id"), [(1, 5), (2, 5), (3, 6), (6, 6)])
def test_randomized_is_a_uniform_sorted_subset(num_tokens: int, max_position_id: int, training: bool):
    assigner = Randomized(max_position_id=max_position_id)
    ids = assigner(plain_examples(NUM_EXAMPLES, num_tokens), rng_for(0, "randomized"), training)
    check_increasing(ids)
    check_distribution(rows_of(ids), distribution_of(combinations(range(1, max_position_id + 1), num_tokens)))


def test_randomized_can_fail():
    """Pose's ids increase within the same bounds, and are told apart."""
    ids = Pose(max_position_id=6)(plain_examples(NUM_EXAMPLES, 3), rng_for(0, "pose"), True)
    check_increasing(ids)
    with pytest.raises(AssertionError, match="not the stated distribution"):
        check_distribution(rows_of(ids), distribution_of(combinations(range(1, 7), 3)))


# ---------------------------------------------------------------------------------------------- coupled and predicted


def check_sharing(coupled_ids: np.ndarray, ids: np.ndarray) -> None:
    """Within an example: equal coupled ids ⇔ equal position ids, and the order of different ones is kept."""
    assert coupled_ids.shape == ids.shape
    for coupled_row, row in zip(rows_of(coupled_ids), rows_of(ids), strict=True):
        for coupled_one, one in zip(coupled_row, row, strict=True):
            for coupled_other, other in zip(coupled_row, row, strict=True):
                assert (coupled_one == coupled_other) == (one == other), "ids are not shared as the task says"
                assert (coupled_one < coupled_other) == (one < other), "the order of ids is not kept"


def check_one_offset(coupled_ids: np.ndarray, ids: np.ndarray, shift_reserved: bool) -> list[int]:
    """All ids of an example shift by one offset, id 0 only if it is to; returns the offsets."""
    offsets = []
    for coupled_row, row in zip(rows_of(coupled_ids), rows_of(ids), strict=True):
        shifts = {new - old for old, new in zip(coupled_row, row, strict=True) if old > 0 or shift_reserved}
        assert len(shifts) == 1, f"one example shifts by {sorted(shifts)}"
        offsets += shifts
        if not shift_reserved:
            assert all(new == 0 for old, new in zip(coupled_row, row, strict=True) if old == 0), "id 0 does not stay 0"
    return offsets


COUPLED_TASKS: list[tuple[Task, int]] = [
    (ParityScratchpad(), 10),
    (ParityScratchpad(jump=3), 20),
    (VariableAssignment(depth=2), 20),
    (VariableAssignment(depth=3, scratchpad=False), 20),
    (Addition(), 4),
    *((TASKS[name](), 8) for name in ("string-reversal", "copy", "kgram-retrieval", "sparse-parity")),
]
coupled_tasks = pytest.mark.parametrize(("task", "length"), COUPLED_TASKS, ids=str)
coupled_assigners = pytest.mark.parametrize("assigner", [Coupled(), Predicted()], ids=lambda assigner: assigner.name)


@coupled_tasks
@coupled_assigners
def test_coupled_ids_at_test_time_are_the_task_s(assigner: Assigner, task: Task, length: int):
    examples = task.sample(rng_for(0, "coupled"), 16, length)
    assert np.array_equal(assigner(examples, rng_for(0, "test"), False), examples.coupled_ids)


@coupled_tasks
@pytest.mark.parametrize("offset_per", ["example", "batch"])
@pytest.mark.parametrize("shift_reserved", [False, True])
@coupled_assigners
def test_coupled_ids_are_shared_as_the_task_says(
    assigner: Coupled, task: Task, length: int, shift_reserved: bool, offset_per: str
):
    examples = task.sample(rng_for(0, "coupled"), 16, length)
    assigner = replace(assigner, max_position_id=60, shift_reserved=shift_reserved, offset_per=offset_per)
    ids = assigner(examples, rng_for(0, "train"), True)
    check_sharing(examples.coupled_ids, ids)
    offsets = check_one_offset(examples.coupled_ids, ids, shift_reserved)
    assert ids.max() <= 60
    assert min(offsets) >= 0
    assert (len(set(offsets)) == 1) == (offset_per == "batch")


def test_sharing_can_fail():
    coupled_ids = np.array([[0, 1, 2, 3, 0, 1, 2, 3]])
    check_sharing(coupled_ids, np.array([[0, 5, 6, 7, 0, 5, 6, 7]]))
    for wrong, message in (
        ([0, 5, 6, 7, 0, 5, 6, 8], "not shared"),  # a pair torn apart
        ([0, 5, 6, 6, 0, 5, 6, 6], "not shared"),  # two pairs thrown together
        ([0, 7, 6, 5, 0, 7, 6, 5], "order"),  # turned around
        ([9, 5, 6, 7, 9, 5, 6, 7], "order"),  # the separators above all
    ):
        with pytest.raises(AssertionError, match=message):
            check_sharing(coupled_ids, np.array([wrong]))


def test_one_offset_can_fail():
    coupled_ids = np.array([[0, 1, 2, 0, 1, 2]])
    check_one_offset(coupled_ids, np.array([[0, 5, 6, 0, 5, 6]]), shift_reserved=False)
    check_one_offset(coupled_ids, np.array([[4, 5, 6, 4, 5, 6]]), shift_reserved=True)
    for wrong, shift_reserved, message in (
        ([0, 5, 7, 0, 5, 7], False, "shifts by"),
        ([4, 5, 6, 4, 5, 6], False, "id 0 does not stay 0"),
        ([0, 5, 6, 0, 5, 6], True, "shifts by"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_one_offset(coupled_ids, np.array([wrong]), shift_reserved)


def offset_distribution(largest_coupled_id: int, max_position_id: int) -> dict[Ids, Fraction]:
    """Sec. 5.2: a uniform element of {0, 1, …, L_max − ℓ}, where coupled ids range from 1 to ℓ."""
    return distribution_of((offset,) for offset in range(max_position_id - largest_coupled_id + 1))


@coupled_assigners
@pytest.mark.parametrize("shift_reserved", [False, True])
@pytest.mark.parametrize(("test_offset", "training"), [("none", True), ("random", True), ("random", False)])
def test_offset_is_uniform(assigner: Coupled, shift_reserved: bool, test_offset: str, training: bool):
    coupled_ids = np.tile([0, 1, 2, 3, 4, 0, 3, 1], (NUM_EXAMPLES, 1))
    assigner = replace(assigner, max_position_id=11, shift_reserved=shift_reserved, test_offset=test_offset)
    ids = assigner(examples_with(coupled_ids), rng_for(0, "offsets"), training)
    offsets = check_one_offset(coupled_ids, ids, shift_reserved)
    check_distribution([(offset,) for offset in offsets], offset_distribution(4, 11))


def test_offset_of_a_batch_is_uniform_and_fits_its_largest_example():
    """One offset for all: examples of different largest ids must all stay within L_max."""
    coupled_ids = np.array([[0, 1, 2, 0, 1], [0, 1, 2, 3, 4]])
    assigner = Coupled(max_position_id=7, offset_per="batch")
    offsets = []
    for step in range(2_000):
        ids = assigner(examples_with(coupled_ids), rng_for(0, "batches", step), True)
        both = check_one_offset(coupled_ids, ids, shift_reserved=False)
        assert both[0] == both[1]
        offsets.append((both[0],))
    check_distribution(offsets, offset_distribution(4, 7))


def test_offset_of_an_example_fits_that_example_alone():
    """Per example, a small largest id leaves room for larger offsets than its neighbour's."""
    coupled_ids = np.array([[0, 1, 2, 0, 1], [0, 1, 2, 3, 4]] * 3_000)
    ids = Coupled(max_position_id=7)(examples_with(coupled_ids), rng_for(0, "examples"), True)
    offsets = check_one_offset(coupled_ids, ids, shift_reserved=False)
    check_distribution([(offset,) for offset in offsets[0::2]], offset_distribution(2, 7))
    check_distribution([(offset,) for offset in offsets[1::2]], offset_distribution(4, 7))


def test_offset_distribution_can_fail():
    coupled_ids = np.tile([0, 1, 2, 3, 4], (NUM_EXAMPLES, 1))
    ids = Coupled(max_position_id=11)(examples_with(coupled_ids), rng_for(0, "offsets"), True)
    offsets = [(offset,) for offset in check_one_offset(coupled_ids, ids, shift_reserved=False)]
    for wrong_largest in (3, 5):  # the off-by-ones
        with pytest.raises(AssertionError, match=r"outside of the support|not the stated distribution"):
            check_distribution(offsets, offset_distribution(wrong_largest, 11))


def test_coupled_without_room_has_one_choice():
    coupled_ids = np.tile([0, 1, 2, 3, 0, 3], (50, 1))
    ids = Coupled(max_position_id=3)(examples_with(coupled_ids), rng_for(0, "no room"), True)
    assert np.array_equal(ids, coupled_ids)


def test_predicted_draws_as_coupled_does():
    """The two differ in who supplies the ids in decoding, not in training data: curves can be compared."""
    examples = VariableAssignment().sample(rng_for(0, "same"), 32, 20)
    one, other = (assigner(examples, rng_for(0, "train"), True) for assigner in (Coupled(), Predicted()))
    assert np.array_equal(one, other)
    assert Predicted.predicts_ids
    assert not Coupled.predicts_ids


# ---------------------------------------------------------------------------------------------- lengths that do not fit


@dataclass(frozen=True)
class Fit:
    """The smallest L_max under which a task of this length can be trained with an assigner."""

    assigner: Assigner
    task: Task
    length: int
    smallest: int

    def __str__(self) -> str:
        return f"{self.assigner.name}-{self.task.name}"


FITS = [
    Fit(Contiguous(), Copy(), 5, 11),  # 5 symbols, a separator, 5 symbols
    Fit(Shifted(), Copy(), 5, 11),
    Fit(Randomized(), Copy(), 5, 11),
    Fit(Pose(), Copy(), 5, 12),  # [L̄ − ℓ] must not be empty
    Fit(Pose(pose_variant="original"), SparseParity(), 20, 23),
    Fit(Coupled(), Copy(), 5, 5),  # shared ids need less room
    Fit(Predicted(), ParityScratchpad(jump=2), 20, 5),
    Fit(Predicted(), VariableAssignment(depth=2), 20, 20),  # 3 + 18 tokens before ⟨SEP2⟩, from id 0 on
    Fit(Coupled(), SparseParity(), 20, 22),
]
fits = pytest.mark.parametrize("fit", FITS, ids=str)


@fits
def test_training_length_that_does_not_fit_is_refused(fit: Fit):
    tight = replace(fit.assigner, max_position_id=fit.smallest - 1)
    with pytest.raises(ValueError, match=rf"max_position_id={fit.smallest - 1}\b.*at least {fit.smallest}\b"):
        tight.check_training_length(fit.task, fit.length)


@fits
def test_training_length_that_just_fits_is_accepted_and_drawn(fit: Fit):
    """The sibling: with one id more, nothing is refused, and the ids that are drawn stay within it."""
    just = replace(fit.assigner, max_position_id=fit.smallest)
    just.check_training_length(fit.task, fit.length)
    examples = fit.task.sample(rng_for(0, "fits"), 64, fit.length)
    ids = just(examples, rng_for(0, "just"), True)
    assert ids.shape == examples.tokens.shape
    assert ids.min() >= 0
    assert ids.max() <= fit.smallest


def test_more_chunks_than_tokens_are_refused():
    assigner = Pose(max_position_id=50, num_chunks=8)
    assigner.check_training_length(Copy(), 4)  # 9 tokens
    assigner.check_training_length(SparseParity(), 6)  # 9 tokens
    with pytest.raises(ValueError, match="num_chunks=8 exceeds the 7 tokens of an example; use fewer chunks"):
        assigner.check_training_length(Copy(), 3)


# Encoders with a table and assigners that predict ids or draw them from 1 … L_max cannot go beyond L_max at test.
@pytest.mark.parametrize("encoder", sorted(ENCODERS))
@pytest.mark.parametrize("name", sorted(ASSIGNERS))
def test_test_length_beyond_the_table_is_refused_where_there_is_one(name: str, encoder: str):
    scheme = Scheme(ASSIGNERS[name](max_position_id=20), ENCODERS[encoder]())
    longest = {"coupled": 20, "predicted": 20}.get(name, 9)  # symbols of a copy: T = 2 · length + 1
    scheme.check_test_length(Copy(), longest)
    if encoder == "ape" or name in ("predicted", "randomized"):
        with pytest.raises(
            ValueError, match=rf"length={longest + 1} of copy needs .*max_position_id=20.*shorter length"
        ):
            scheme.check_test_length(Copy(), longest + 1)
    else:
        scheme.check_test_length(Copy(), 10 * longest)
