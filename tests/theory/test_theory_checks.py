"""The checks of `lengen theory check` can fail: each is shown an instance on which it must."""

from dataclasses import replace

import numpy as np
import pytest

from lengen.theory import statements, theorem
from lengen.theory.counterexamples import without_iid_background
from lengen.theory.ensembles import Iid
from lengen.theory.errata import dead_windows, hidden_path, wide_planted_sets
from lengen.theory.keys import tabulate_value
from lengen.theory.measurements import GridPoint


def without_its_wrong_value(make):
    """The erratum with a value that is right everywhere in place of the wrong ones."""

    def mended():
        erratum = make()
        right = {"right": tabulate_value(lambda x: 1.0, 2, erratum.ensemble.vocab_size)}
        return replace(erratum, attention_class=replace(erratum.attention_class, values=right))

    return mended


@pytest.mark.parametrize("make", [hidden_path, wide_planted_sets, dead_windows])
def test_an_erratum_needs_its_instance(make):
    mended = statements.breaks_theorem(without_its_wrong_value(make))()
    assert mended.measured.value <= statements.ROUNDING
    assert not mended.holds


def test_an_erratum_must_satisfy_the_hypotheses():
    assert statements.breaks_theorem(wide_planted_sets)().holds
    assert not statements.breaks_theorem(lambda: replace(wide_planted_sets(), test_length=17))().holds


def test_the_markov_instance_needs_its_background(monkeypatch):
    assert statements.markov_background().holds
    ensemble, attention_class = without_iid_background()
    independent = replace(ensemble, mu=Iid(np.array([0.25, 0.25, 0.25, 0.25, 0.0])))
    monkeypatch.setattr(statements, "without_iid_background", lambda: (independent, attention_class))
    assert not statements.markov_background().holds


def test_a_distance_from_rounding_alone_is_none(monkeypatch):
    assert statements.no_head_computes().holds
    monkeypatch.setattr(statements, "distance_from_heads", lambda scores, outputs: 1e-15)
    assert not statements.no_head_computes().holds


def test_the_repaired_bound_needs_its_factors(monkeypatch):
    monkeypatch.setattr(statements, "_grid_reports", list)  # the grid and this erratum notice neither, and take long
    monkeypatch.setattr(statements, "dead_windows", wide_planted_sets)
    assert statements.repaired_theorem().holds
    whole = theorem.repaired_factor
    monkeypatch.setattr(theorem, "repaired_factor", lambda eta, lengths, blocks, seam: whole(eta, lengths, 0, seam))
    assert not statements.repaired_theorem().holds
    monkeypatch.setattr(theorem, "repaired_factor", lambda eta, lengths, blocks, seam: whole(eta, lengths, blocks, 0.0))
    assert not statements.repaired_theorem().holds


def test_a_vacuous_bound_far_out_shows_nothing(monkeypatch):
    assert statements.theorem_far_out().holds
    monkeypatch.setattr(statements, "GridPoint", lambda *args, **kwargs: GridPoint("dilution", 2, 12.0, 8, 512))
    assert not statements.theorem_far_out().holds
