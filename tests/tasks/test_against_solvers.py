"""Every sampled example is one that the paper defines, by the judgement of independent brute force (`solvers.py`)."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengen.seeding import rng_for
from lengen.tasks import (
    TASKS,
    Addition,
    Copy,
    Examples,
    KgramRetrieval,
    ParityScratchpad,
    SparseParity,
    StringReversal,
    Task,
    VariableAssignment,
)

from .reading import judge, split
from .solvers import SOLVERS, Example, Rejected

EXAMPLES_A_CASE = 10


def check_batch(task: Task, batch: Examples, batch_size: int, length: int) -> None:
    """Each example by its judge, and what the task says about sizes against what the batch is."""
    assert batch.length == length
    assert batch.tokens.shape == batch.coupled_ids.shape == (batch_size, task.num_tokens(length))
    assert batch.tokens.dtype == batch.coupled_ids.dtype == np.int64  # what torch's embeddings take without a copy
    assert batch.tokens.shape[1] - batch.prompt_len == task.num_targets(length)
    assert batch.tokens.min() >= 0
    assert batch.tokens.max() < len(task.vocabulary)
    assert set(batch.coupled_ids.max(axis=1)) == {task.max_coupled_id(length)}
    examples = split(task, batch)
    assert list(examples[0].names) == task.names_of(batch.tokens[0])
    for example in examples:
        judge(task, example)


@st.composite
def sparse_parity_cases(draw: st.DrawFn) -> tuple[Task, int]:
    k_test = draw(st.integers(0, 12))
    task = SparseParity(num_markers=draw(st.integers(2, 30)), k_train=draw(st.integers(1, 16)), k_test=k_test)
    return task, 2 * draw(st.integers(max(2, k_test + 1), 60))


@st.composite
def parity_cases(draw: st.DrawFn) -> tuple[Task, int]:
    jump = draw(st.integers(1, 9))
    return ParityScratchpad(jump=jump), 2 * draw(st.integers(jump, 70))


@st.composite
def variable_assignment_cases(draw: st.DrawFn) -> tuple[Task, int]:
    depth = draw(st.integers(1, 6))
    num_variables = draw(st.integers(depth + 1, 60))
    most_chains = num_variables // (depth + 1)
    task = VariableAssignment(depth=depth, num_variables=num_variables, scratchpad=draw(st.booleans()))
    return task, draw(st.integers(3 * depth, 3 * depth * (most_chains + 1) - 1))


@st.composite
def kgram_cases(draw: st.DrawFn) -> tuple[Task, int]:
    gram_size = draw(st.integers(1, 5))
    # Few symbols make a k-gram stand in many places, which is where the judge has to tell them apart.
    task = KgramRetrieval(gram_size=gram_size, num_symbols=draw(st.integers(2, 64)))
    return task, draw(st.integers(2 * gram_size + 2, 120))


def rewriting_cases(task: type[Copy]) -> st.SearchStrategy[tuple[Task, int]]:
    return st.tuples(st.builds(task, num_symbols=st.integers(1, 40)), st.integers(1, 80))


CASES: dict[str, st.SearchStrategy[tuple[Task, int]]] = {
    "sparse-parity": sparse_parity_cases(),
    "parity-scratchpad": parity_cases(),
    "variable-assignment": variable_assignment_cases(),
    "string-reversal": rewriting_cases(StringReversal),
    "copy": rewriting_cases(Copy),
    "kgram-retrieval": kgram_cases(),
    "addition": st.tuples(st.just(Addition()), st.integers(1, 60)),
}

# (task, smallest length, the length of the paper's longest tests or the largest that fits)
EXTREMES: list[tuple[Task, int, int]] = [
    (SparseParity(), 4, 500),
    (SparseParity(k_train=12), 4, 500),
    (SparseParity(num_markers=2, k_train=1), 4, 500),
    (SparseParity(num_markers=3), 4, 500),
    (SparseParity(k_test=16), 34, 500),
    (ParityScratchpad(), 2, 200),
    (ParityScratchpad(jump=3), 6, 200),
    (ParityScratchpad(jump=4), 8, 200),
    (VariableAssignment(depth=1), 3, 302),  # 100 chains use up all 200 variables
    (VariableAssignment(depth=2), 6, 401),
    (VariableAssignment(depth=5), 15, 509),
    (VariableAssignment(depth=3, num_variables=4), 9, 17),  # one chain is all there can be
    (VariableAssignment(depth=2, scratchpad=False), 6, 401),
    (StringReversal(), 1, 200),
    (StringReversal(num_symbols=1), 1, 200),
    (Copy(), 1, 200),
    (Copy(num_symbols=500), 1, 200),
    (KgramRetrieval(), 6, 500),
    (KgramRetrieval(gram_size=1, num_symbols=2), 4, 500),
    (KgramRetrieval(gram_size=4), 10, 500),
    (Addition(), 1, 100),
]


def show(value: object) -> str:
    return re.sub(r"\s", "", str(value))


def test_every_task_has_a_judge_and_cases():
    assert set(TASKS) == set(SOLVERS) == set(CASES) == {task.name for task, _, _ in EXTREMES}


@pytest.mark.parametrize("name", CASES)
def test_samples_satisfy_the_paper(name: str):
    # Derandomized: the suite says the same on every machine and every day.
    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(case=CASES[name], seed=st.integers(0, 2**32))
    def check(case: tuple[Task, int], seed: int) -> None:
        task, length = case
        check_batch(task, task.sample(rng_for(seed, "solvers"), EXAMPLES_A_CASE, length), EXAMPLES_A_CASE, length)

    check()


@pytest.mark.parametrize(("task", "shortest", "longest"), EXTREMES, ids=show)
def test_shortest_and_longest_lengths(task: Task, shortest: int, longest: int):
    for length, batch_size in ((shortest, 500), (longest, 25)):
        check_batch(task, task.sample(rng_for(1, "extremes"), batch_size, length), batch_size, length)
    assert not task.fits(shortest - 1)
    if isinstance(task, VariableAssignment):  # the only task with a longest length: variables run out
        assert not task.fits(longest + 1)


@pytest.mark.parametrize("name", TASKS)
def test_big_batches_at_every_training_length(name: str):
    """Default settings, as one trains: the examples of a batch are all judged, not only those that a case shows."""
    task = TASKS[name]()
    for length in task.lengths_between(2, 40):
        check_batch(task, task.sample(rng_for(2, "big batches", length), 64, length), 64, length)


@pytest.mark.parametrize("name", TASKS)
def test_batch_of_one(name: str):
    task = TASKS[name]()
    check_batch(task, task.sample(rng_for(3, "one"), 1, 20), 1, 20)


def test_pinned_sequences_satisfy_the_paper():
    """A golden file can pin a mistake; the judges look at it, too."""
    pins = json.loads((Path(__file__).parents[1] / "golden" / "tasks.json").read_text(encoding="utf-8"))
    for pin in pins:
        for example in pin["examples"]:
            ids = tuple(int(text) for text in example["ids"].split())
            read = Example(tuple(example["tokens"].split()), ids, pin["prompt_len"], pin["length"])
            judge(TASKS[pin["task"]](**pin["settings"]), read)


# ------------------------------------------------------------------------------------------------------- documentation


def documented_examples(task_type: type[Task]) -> list[tuple[Task, Example]]:
    """The literal sequences of a task's docstring: settings and tokens on one or two lines, ids on the next."""
    lines = [line.strip() for line in (task_type.__doc__ or "").splitlines()]
    found = []
    for number, line in enumerate(lines):
        if not re.match(r"ids.*:", line):
            continue
        ids = tuple(int(text) for text in line.partition(":")[2].split())
        head, _, tokens = lines[number - 1].rpartition(": ")
        head = head or lines[number - 2]
        stated = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", head)}
        length = stated.pop("length")
        names_of_settings = {"N": "num_markers", "k": "k_test"}
        task = task_type(**{names_of_settings.get(key, key): value for key, value in stated.items()})
        names = tuple(tokens.split())
        found.append((task, Example(names, ids, len(names) - task.num_targets(length), length)))
    return found


@pytest.mark.parametrize("name", TASKS)
def test_docstring_shows_a_true_example(name: str):
    examples = documented_examples(TASKS[name])
    assert examples, f"{TASKS[name].__name__} documents no literal sequence"
    for task, example in examples:
        judge(task, example)


# ------------------------------------------------------------------------------------------------ the judges can fail

FORGED: list[tuple[Task, int]] = [
    (SparseParity(), 20),
    (ParityScratchpad(), 12),
    (ParityScratchpad(jump=3), 20),
    (VariableAssignment(depth=2), 20),
    (VariableAssignment(depth=3, scratchpad=False), 20),
    (StringReversal(), 7),
    (Copy(), 7),
    (KgramRetrieval(), 14),
    (Addition(), 5),
]
forged = pytest.mark.parametrize(("task", "length"), FORGED, ids=show)


def genuine(task: Task, length: int) -> list[Example]:
    examples = split(task, task.sample(rng_for(4, "forged"), 5, length))
    for example in examples:
        judge(task, example)
    return examples


def rejects(task: Task, example: Example) -> bool:
    try:
        judge(task, example)
    except Rejected:
        return True
    return False


def with_token(example: Example, slot: int, name: str) -> Example:
    return example._replace(names=(*example.names[:slot], name, *example.names[slot + 1 :]))


@forged
def test_solver_can_fail_on_a_flipped_target(task: Task, length: int):
    for example in genuine(task, length):
        for slot in range(example.prompt_len, len(example.names)):
            for name in task.vocabulary:
                if name != example.names[slot]:
                    assert rejects(task, with_token(example, slot, name)), f"slot {slot}: {name}"


@forged
def test_solver_can_fail_on_a_flipped_separator(task: Task, length: int):
    def is_separator(name: str) -> bool:
        return name.startswith("<") or name in ("+", "=")

    for example in genuine(task, length):
        separators = [slot for slot, name in enumerate(example.names) if is_separator(name)]
        for slot in separators:
            for name in task.vocabulary:
                if name != example.names[slot]:
                    assert rejects(task, with_token(example, slot, name)), f"slot {slot}: {name}"
        assert separators or task.name == "kgram-retrieval"  # the only format without one
        for slot in set(range(len(example.names))) - set(separators):
            for name in filter(is_separator, task.vocabulary):
                assert rejects(task, with_token(example, slot, name)), f"slot {slot}: {name}"


@forged
def test_solver_can_fail_on_a_flipped_id(task: Task, length: int):
    for example in genuine(task, length):
        for slot in range(len(example.ids)):
            for wrong in {example.ids[slot] - 1, example.ids[slot] + 1, 0, length} - {example.ids[slot]}:
                ids = (*example.ids[:slot], wrong, *example.ids[slot + 1 :])
                assert rejects(task, example._replace(ids=ids)), f"slot {slot}: {wrong}"
        assert rejects(task, example._replace(ids=example.ids[:-1]))


@forged
def test_solver_can_fail_on_a_missing_token(task: Task, length: int):
    for example in genuine(task, length):
        for slot in range(len(example.names)):
            fewer = example._replace(
                names=example.names[:slot] + example.names[slot + 1 :], ids=example.ids[:slot] + example.ids[slot + 1 :]
            )
            assert rejects(task, fewer), f"slot {slot}"


@forged
def test_solver_can_fail_on_a_wrong_size(task: Task, length: int):
    for example in genuine(task, length):
        for prompt_len in (example.prompt_len - 1, example.prompt_len + 1):
            assert rejects(task, example._replace(prompt_len=prompt_len))
        for wrong in (length // 2, 2 * length):
            assert rejects(task, example._replace(length=wrong))


# Each a whole sequence with one fault that the flips above do not reach. (task, length, fault, tokens, ids)
FORGERIES: list[tuple[Task, int, str, str, str]] = [
    (
        SparseParity(num_markers=4, k_train=1),
        8,
        "above K_train",
        "<BOS> j1 t1 j3 t0 j2 t0 j4 t1 <SEP> t1",
        "0 1 2 3 4 5 6 7 8 9 10",
    ),
    (
        SparseParity(num_markers=4, k_test=1),
        6,
        "not k_test",
        "<BOS> j1 t1 j3 t0 j2 t0 <SEP> t1",
        "0 1 2 3 4 5 6 7 8",
    ),
    (SparseParity(num_markers=4), 4, "1 ≤ k < ℓ", "<BOS> j1 t1 j2 t0 <SEP> t1", "0 1 2 3 4 5 6"),
    (SparseParity(num_markers=4), 4, "1 ≤ k < ℓ", "<BOS> j3 t1 j4 t0 <SEP> t0", "0 1 2 3 4 5 6"),
    (SparseParity(num_markers=4), 4, "not the parity", "<BOS> j3 t1 j2 t0 <SEP> t1", "0 1 2 3 4 5 6"),
    (SparseParity(num_markers=4), 4, "not in j1 … j4", "<BOS> j5 t1 j2 t0 <SEP> t0", "0 1 2 3 4 5 6"),
    (ParityScratchpad(jump=2), 6, "not a multiple", "<BOS> 1 0 1 <SEP> 1", "0 1 1 2 0 1"),
    (ParityScratchpad(jump=2), 8, "more bits", "<BOS> 1 0 <SEP> 1", "0 1 1 0 1"),
    (ParityScratchpad(jump=2), 4, "more than half", "<BOS> 1 0 0 1 <SEP> 1 0", "0 1 1 2 2 0 1 2"),
    (ParityScratchpad(jump=2), 8, "ids", "<BOS> 1 0 1 1 <SEP> 1 1", "0 1 2 3 4 0 1 2"),
    (ParityScratchpad(jump=2), 8, "ids", "<BOS> 1 0 1 1 <SEP> 1 1", "0 1 2 3 4 0 2 4"),
    (
        VariableAssignment(depth=2),
        12,
        "order of the chain",  # v2 <- v3 stands before v1 <- v2
        "<BOS> v1 <SEP1> v4 <- v5 v2 <- v3 v1 <- v2 v5 <- v6 <SEP2> v1 <- v2 v2 <- v3",
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 9 10 11 6 7 8",
    ),
    (
        VariableAssignment(depth=2),
        12,
        "the most that fit",  # a second chain would fit
        "<BOS> v1 <SEP1> v1 <- v2 v2 <- v3 <SEP2> v1 <- v2 v2 <- v3",
        "0 1 2 3 4 5 6 7 8 0 3 4 5 6 7 8",
    ),
    (
        VariableAssignment(depth=2),
        12,
        "assigned twice",
        "<BOS> v1 <SEP1> v2 <- v5 v1 <- v2 v2 <- v3 v5 <- v6 <SEP2> v1 <- v2 v2 <- v3",
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 6 7 8 9 10 11",
    ),
    (
        VariableAssignment(depth=2),
        12,
        "read twice",  # both chains end in v3
        "<BOS> v1 <SEP1> v4 <- v5 v1 <- v2 v2 <- v3 v5 <- v3 <SEP2> v1 <- v2 v2 <- v3",
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 6 7 8 9 10 11",
    ),
    (
        VariableAssignment(depth=2),
        12,
        "not 2",  # a chain of three and one of one
        "<BOS> v1 <SEP1> v4 <- v5 v1 <- v2 v2 <- v3 v3 <- v6 <SEP2> v1 <- v2 v2 <- v3",
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 6 7 8 9 10 11",
    ),
    (
        VariableAssignment(depth=2),
        12,
        "starts no chain",  # asks for the middle of a chain
        "<BOS> v2 <SEP1> v4 <- v5 v1 <- v2 v2 <- v3 v5 <- v6 <SEP2> v1 <- v2 v2 <- v3",
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 6 7 8 9 10 11",
    ),
    (
        VariableAssignment(depth=2),
        12,
        "should be",  # writes out the other chain, with that chain's ids
        "<BOS> v1 <SEP1> v4 <- v5 v1 <- v2 v2 <- v3 v5 <- v6 <SEP2> v4 <- v5 v5 <- v6",
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 3 4 5 12 13 14",
    ),
    (StringReversal(), 3, "should be", "4 7 1 <SEP> 4 7 1", "1 2 3 0 1 2 3"),
    (StringReversal(), 3, "ids", "4 7 1 <SEP> 1 7 4", "1 2 3 0 1 2 3"),
    (Copy(), 3, "should be", "4 7 1 <SEP> 1 7 4", "1 2 3 0 3 2 1"),
    (Copy(num_symbols=7), 3, "not in 0 … 6", "4 7 1 <SEP> 4 7 1", "1 2 3 0 1 2 3"),
    # The query 9 4 stands at the very beginning only, where ℓ' would be 0; and only where it overlaps itself.
    (KgramRetrieval(gram_size=2), 8, "stands nowhere", "9 4 7 1 2 0 9 4 7", "1 2 3 4 5 6 7 8 3"),
    (KgramRetrieval(gram_size=2), 8, "stands nowhere", "1 2 3 0 5 9 9 9 9", "1 2 3 4 5 6 7 8 8"),
    # It stands twice with different successors: the id has to fit the answer.
    (KgramRetrieval(gram_size=1), 8, "points at", "0 9 4 9 5 1 2 9 5", "1 2 3 4 5 6 7 8 3"),
    (Addition(), 2, "digits", "<BOS> 6 5 + 9 = 4 7 0", "0 2 1 0 1 0 1 2 3"),  # 65 + 9, not padded
    (Addition(), 2, "digits", "<BOS> 6 5 + 0 9 = 4 7", "0 2 1 0 2 1 0 1 2"),  # no digit for the carry
    (Addition(), 2, "read backwards", "<BOS> 6 5 + 0 9 = 0 7 4", "0 2 1 0 2 1 0 1 2 3"),  # not reversed
    (Addition(), 2, "ids", "<BOS> 6 5 + 0 9 = 4 7 0", "0 1 2 0 1 2 0 1 2 3"),  # ids by place, not by significance
]


@pytest.mark.parametrize(("task", "length", "fault", "tokens", "ids"), FORGERIES, ids=show)
def test_solver_can_fail_on_a_forgery(task: Task, length: int, fault: str, tokens: str, ids: str):
    names = tuple(tokens.split())
    separators = [slot for slot, name in enumerate(names) if name in ("<SEP>", "<SEP2>", "=")]
    prompt_len = separators[-1] + 1 if separators else len(names) - 1
    example = Example(names, tuple(int(text) for text in ids.split()), prompt_len, length)
    with pytest.raises(Rejected, match=re.escape(fault)):
        judge(task, example)
