"""Proposition C.3: each example lacks exactly one assumption and loses a constant; closed forms beside enumeration."""

from fractions import Fraction
from math import comb, inf

import pytest

from lengen.theory.assumptions import check_realizability
from lengen.theory.counterexamples import (
    COUNTEREXAMPLES,
    loss_constant,
    printed_without_realizability,
    without_locality,
    without_realizability,
)

LENGTHS = [(3, 6), (4, 9), (8, 16), (8, 40), (15, 31)]


def locality_loss(short: int, long: int) -> Fraction:
    """Every one of N sets at least L wide counts as much as the planted one, which is among them when it is L wide."""
    wide = (long - short) * (long - short + 1) // 2
    near, far = long - 1, long - short
    return (near * Fraction(wide, wide + 1) + far * Fraction(wide - 1, wide)) / (near + far)


CLOSED_FORMS = {
    "locality": locality_loss,
    "relative": lambda short, long: Fraction(long - short, long - short + 1),
    "realizability": lambda short, long: Fraction(9, 10) * (1 - Fraction(1, comb(long, 2))),
    "coverage": lambda short, long: 1 - Fraction(1, comb(long, 2)),
}


@pytest.mark.parametrize(("short", "long"), LENGTHS)
@pytest.mark.parametrize("lacks", COUNTEREXAMPLES)
def test_exactly_its_own_assumption_fails(lacks, short, long):
    findings = COUNTEREXAMPLES[lacks](short).findings(long)
    assert [name for name, finding in findings.items() if not finding.holds] == [lacks]
    assert all(finding.constant.exact for finding in findings.values())


@pytest.mark.parametrize(("short", "long"), LENGTHS)
@pytest.mark.parametrize("lacks", COUNTEREXAMPLES)
def test_the_worst_minimiser_loses_a_constant(lacks, short, long):
    worst = COUNTEREXAMPLES[lacks](short).outcome(long).worst
    assert worst.exact
    assert worst.value == pytest.approx(float(CLOSED_FORMS[lacks](short, long)), abs=1e-12)
    assert worst.value >= loss_constant(short, long)


def test_the_constant_is_below_every_loss_at_twice_the_length():
    """The closed forms grow with L and L̄, so L = 3 and L̄ = 6 give the smallest."""
    smallest = {name: form(3, 6) for name, form in CLOSED_FORMS.items()}
    for name, form in CLOSED_FORMS.items():
        assert all(form(short, long) >= smallest[name] for short in range(3, 12) for long in range(2 * short, 40))
    assert min(smallest.values()) == Fraction(3, 4) > loss_constant(3, 6)
    for form in CLOSED_FORMS.values():
        assert all(
            form(short, long) >= loss_constant(short, long) for short in range(3, 12) for long in range(short + 1, 30)
        )


@pytest.mark.parametrize("lacks", COUNTEREXAMPLES)
def test_with_the_good_hypothesis_alone_nothing_is_lost(lacks):
    """The loss comes from the other minimiser: the realizing one, where there is one, loses nothing at L̄."""
    example = COUNTEREXAMPLES[lacks](8)
    best = min(loss.value for loss in example.outcome(16).minimisers.values())
    assert best == 0 if lacks != "realizability" else best > 0.7


def test_locality_slip_the_realizing_hypothesis_is_g_01():
    example = without_locality(8)
    losses = example.outcome(16).minimisers
    assert losses["g_01", "g_1"].value == 0
    assert losses["g_00", "g_1"].value > 0.7  # the one that the paper says achieves 0 loss
    assert "g_01" in example.findings(16)["realizability"].witness


def test_printed_realizability_example_has_no_coverage():
    printed = printed_without_realizability(8).findings(16)
    assert [name for name, finding in printed.items() if not finding.holds] == ["realizability", "coverage"]
    assert printed["coverage"].constant.value == inf
    assert "S=[1, 3]" in printed["coverage"].witness
    mended = without_realizability(8)
    assert mended.findings(16)["coverage"].constant.value == 150.0  # 10 (ℓ − 1): linear in ℓ, as the paper asks
    printed_loss = printed_without_realizability(8).outcome(16).worst.value
    assert mended.outcome(16).worst.value == pytest.approx(printed_loss)  # what is lost has not changed


def test_no_agnostic_guarantee_either():
    """Eq. (16): past L another hypothesis of the class is better than the minimiser by a constant."""
    example = without_realizability(8)
    best_at_16 = check_realizability(example.attention_class, example.ensemble, [16])
    assert "g_01" in best_at_16.witness
    assert example.outcome(16).worst.value >= best_at_16.constant.value + 0.5


def test_lengths_are_checked():
    with pytest.raises(ValueError, match="L=2 is too short"):
        without_locality(2)
    with pytest.raises(ValueError, match="L_bar=8 is not longer than L=8"):
        without_locality(8).findings(8)
