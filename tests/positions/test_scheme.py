"""Named schemes, pairs by name, nicknames, and choices that do not exist."""

from dataclasses import dataclass, replace
from typing import Literal

import pytest

from lengen.checks import check_choices
from lengen.positions import SCHEMES, scheme_named
from lengen.positions.assign import Coupled, Pose, Randomized, Shifted
from lengen.positions.scheme import Rope, Scheme, nickname
from lengen.seeding import rng_for
from lengen.tasks import Copy


@pytest.mark.parametrize("name", SCHEMES)
def test_a_named_scheme_keeps_its_nickname_at_any_size(name):
    scheme = scheme_named(name)
    assert nickname(replace(scheme, assigner=replace(scheme.assigner, max_position_id=999))) == name


def test_an_unnamed_pair_is_its_own_name():
    assert nickname(scheme_named("randomized+alibi")) == "randomized+alibi"
    assert nickname(Scheme(Pose(num_chunks=3), Rope())) == "pose-rope"  # other settings of a known pair


@dataclass(frozen=True)
class Choosy:
    variant: Literal["paper", "original"] = "paper"

    def __post_init__(self):
        check_choices(self)


def test_misspelt_choices_are_refused():
    """On a class of its own: in the library's, the tests' type checks would speak first."""
    assert Choosy("original").variant == "original"
    with pytest.raises(ValueError, match="unknown choice for variant 'papre'; did you mean 'paper'"):
        Choosy("papre")


@pytest.mark.parametrize(
    "assigner", [Shifted(5, test_offset="random"), Coupled(3, test_offset="random"), Randomized(5)]
)
def test_drawn_test_ids_are_bounded_for_every_encoder(assigner):
    with pytest.raises(ValueError, match="beyond the position table"):
        Scheme(assigner, Rope()).check_test_length(Copy(), 4)


def test_plain_test_ids_may_go_beyond_what_has_no_table():
    Scheme(Pose(5), Rope()).check_test_length(Copy(), 400)


def test_direct_calls_without_room_are_refused():
    examples = Copy().sample(rng_for(0, "room"), 2, 4)
    for assigner in (Randomized(5), Pose(9), Pose(num_chunks=30)):
        with pytest.raises(ValueError, match=r"max_position_id|num_chunks"):
            assigner(examples, rng_for(0, "room"), True)
