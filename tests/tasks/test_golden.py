"""Pinned sequences and coupled ids of every task (`tests/golden/tasks.json`), and the paper's own examples as layouts.

A changed pin means that old seeds no longer give the old data. If that is meant, write the file again with

    python tests/tasks/test_golden.py --write

look at the difference, and note it under **Numerics** in the changelog. The layouts of the paper's examples stand in
this file, not in the pinned one: they are never regenerated.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

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

GOLDEN = Path(__file__).parents[1] / "golden" / "tasks.json"
EXAMPLES_A_PIN = 3


class Pin(NamedTuple):
    task: type[Task]
    settings: dict[str, Any]
    length: int
    seed: int


PINS: list[Pin] = [
    Pin(SparseParity, {}, 20, 0),
    Pin(SparseParity, {"k_train": 12}, 6, 1),
    Pin(SparseParity, {"num_markers": 2, "k_test": 3}, 14, 2),
    Pin(SparseParity, {"num_markers": 5, "k_train": 2}, 8, 3),
    Pin(ParityScratchpad, {}, 6, 0),
    Pin(ParityScratchpad, {"jump": 2}, 14, 1),
    Pin(ParityScratchpad, {"jump": 3}, 20, 2),
    Pin(ParityScratchpad, {"jump": 4}, 40, 3),
    Pin(VariableAssignment, {}, 12, 14),  # seed 14 begins with the paper's interleaving 2, 1, 1, 2
    Pin(VariableAssignment, {"depth": 1, "num_variables": 9}, 11, 1),
    Pin(VariableAssignment, {"depth": 3, "num_variables": 12}, 29, 2),
    Pin(VariableAssignment, {"depth": 4, "scratchpad": False}, 40, 3),
    Pin(StringReversal, {}, 4, 0),
    Pin(StringReversal, {"num_symbols": 30}, 9, 1),
    Pin(Copy, {}, 4, 0),
    Pin(Copy, {"num_symbols": 2}, 9, 1),
    Pin(KgramRetrieval, {}, 10, 0),
    Pin(KgramRetrieval, {"gram_size": 1, "num_symbols": 3}, 8, 1),
    Pin(KgramRetrieval, {"gram_size": 3, "num_symbols": 16}, 16, 2),
    Pin(Addition, {}, 1, 0),
    Pin(Addition, {}, 6, 1),
]


def draw(pin: Pin) -> dict[str, Any]:
    """What the task draws now. Tokens by name: a diff can be read, and renumbering the vocabulary changes nothing."""
    task = pin.task(**pin.settings)
    batch = task.sample(rng_for(pin.seed, "golden"), EXAMPLES_A_PIN, pin.length)
    return {
        "task": task.name,
        "settings": pin.settings,
        "length": pin.length,
        "seed": pin.seed,
        "prompt_len": batch.prompt_len,
        "examples": [
            {"tokens": " ".join(task.names_of(tokens)), "ids": " ".join(map(str, ids))}
            for tokens, ids in zip(batch.tokens.tolist(), batch.coupled_ids.tolist(), strict=True)
        ],
    }


def pinned() -> list[dict[str, Any]]:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def show(value: Any) -> str:
    return f"{value.task.name}-{value.length}-seed{value.seed}" if isinstance(value, Pin) else str(value)


def test_pins_cover_every_task_in_several_settings():
    for name in TASKS:
        assert sum(pin.task.name == name for pin in PINS) >= 2
    assert len(pinned()) == len(PINS), "the golden file is not of these pins: write it again"


@pytest.mark.parametrize(("number", "pin"), list(enumerate(PINS)), ids=show)
def test_sequences_are_as_pinned(number: int, pin: Pin):
    assert draw(pin) == pinned()[number]


def test_pins_can_fail():
    """The next seed draws something else from every task."""
    for number, pin in enumerate(PINS):
        other = draw(pin._replace(seed=pin.seed + 100))
        assert other["examples"] != pinned()[number]["examples"]


# ------------------------------------------------------------------------------------------ the paper's own examples


class Layout(NamedTuple):
    """An example as the paper prints it: fixed tokens by name, the others by letters that stand for a token each."""

    where: str
    pin: Pin  # the setting that has this layout; the first pinned example is an instance of it
    tokens: str
    ids: str
    kinds: dict[str, str]  # the first letter of a placeholder → how the tokens that may stand there begin
    distinct: bool = False  # different placeholders are different tokens


def pin_of(task: type[Task], length: int, seed: int) -> Pin:
    return next(pin for pin in PINS if (pin.task, pin.length, pin.seed) == (task, length, seed))


LAYOUTS: list[Layout] = [
    Layout(
        "string reversal, eqs. 1 and 2",
        pin_of(StringReversal, 4, 0),
        "X1 X2 X3 X4 <SEP> X4 X3 X2 X1",
        "1 2 3 4 0 4 3 2 1",
        {"X": ""},
    ),
    Layout(
        "sparse parity, eq. 20",
        pin_of(SparseParity, 6, 1),
        "<BOS> J1 B1 J2 B2 J3 B3 <SEP> B4",
        "0 1 2 3 4 5 6 7 8",
        {"J": "j", "B": "t"},
    ),
    Layout(
        "parity with scratchpad, eq. 21, jump 1",
        pin_of(ParityScratchpad, 6, 0),
        "<BOS> B1 B2 B3 <SEP> B1 C2 C3",  # b'_1 = b_1
        "0 1 2 3 0 1 2 3",
        {"B": "", "C": ""},
    ),
    Layout(
        "variable assignment, E.3.1, d = 2 and w = 2",
        pin_of(VariableAssignment, 12, 14),
        "<BOS> V11 <SEP1> V21 <- V22 V11 <- V12 V12 <- V13 V22 <- V23 <SEP2> V11 <- V12 V12 <- V13",
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 6 7 8 9 10 11",
        {"V": "v"},
        distinct=True,
    ),
]


def matches(layout: Layout, tokens: str) -> bool:
    """Whether the placeholders can be filled, each with one token of its kind, to give these tokens."""
    places, names = layout.tokens.split(), tokens.split()
    if len(places) != len(names):
        return False
    meaning: dict[str, str] = {}
    for place, name in zip(places, names, strict=True):
        if place[0] not in layout.kinds:
            if name != place:
                return False
            continue
        if name.startswith("<") or not name.startswith(layout.kinds[place[0]]) or not name[-1].isdecimal():
            return False
        if meaning.setdefault(place, name) != name:
            return False
    return not layout.distinct or len(set(meaning.values())) == len(meaning)


layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.where)


@layouts
def test_paper_example_is_pinned(layout: Layout):
    """The first pinned example of the setting is an instance of the paper's, with the paper's ids."""
    first = pinned()[PINS.index(layout.pin)]["examples"][0]
    assert matches(layout, first["tokens"]), "if new pins are meant, look for a seed that begins with this layout"
    assert first["ids"] == layout.ids


@layouts
def test_task_emits_the_paper_layout(layout: Layout):
    """Among many examples: the layout and its ids come together, and only together."""
    task = layout.pin.task(**layout.pin.settings)
    batch = task.sample(rng_for(0, "layouts"), 600, layout.pin.length)
    num_matching = 0
    for tokens, ids in zip(batch.tokens.tolist(), batch.coupled_ids.tolist(), strict=True):
        is_match = matches(layout, " ".join(task.names_of(tokens)))
        assert is_match == (" ".join(map(str, ids)) == layout.ids)
        num_matching += is_match
    if task.name == "variable-assignment":  # one of six interleavings of two chains of two
        assert 60 <= num_matching <= 140
    else:
        assert num_matching == 600


@layouts
def test_layout_can_fail(layout: Layout):
    """A token too few, another token for a fixed one, or a separator for any other: none of them is the layout."""
    task = layout.pin.task(**layout.pin.settings)
    names = pinned()[PINS.index(layout.pin)]["examples"][0]["tokens"].split()
    assert matches(layout, " ".join(names))
    assert not matches(layout, " ".join(names[:-1]))
    for slot, place in enumerate(layout.tokens.split()):
        if place[0] not in layout.kinds:
            for name in set(task.vocabulary) - {names[slot]}:
                assert not matches(layout, " ".join([*names[:slot], name, *names[slot + 1 :]]))
        else:
            separators = [name for name in task.vocabulary if name.startswith("<")]
            for name in separators:
                assert not matches(layout, " ".join([*names[:slot], name, *names[slot + 1 :]]))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/tasks/test_golden.py --write   (without --write, run it by pytest)")
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps([draw(pin) for pin in PINS], indent=1) + "\n", encoding="utf-8")
    print(f"wrote {len(PINS)} pins to {GOLDEN}")
