"""The checks behind `lengen theory list` and `lengen theory check`: each statement with its name and place.

A check compares two numbers, `measured` and `bound`. A name that starts with `erratum-` states that something fails
*as printed*: it holds when the failure is there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from lengen.theory import statements
from lengen.theory.counterexamples import COUNTEREXAMPLES
from lengen.theory.errata import dead_windows, hidden_path, wide_planted_sets
from lengen.theory.statements import Outcome


@dataclass(frozen=True)
class Check:
    """One statement: `run(L, L_bar)` checks it."""

    name: str
    paper_ref: str
    statement: str
    run: Callable[[int, int], Outcome]
    takes_lengths: bool = False


@dataclass(frozen=True)
class Result:
    """One line of `lengen theory check`."""

    check: Check
    outcome: Outcome
    seconds: float

    def as_json(self) -> dict[str, object]:
        measured = self.outcome.measured
        record: dict[str, object] = {
            "name": self.check.name,
            "paper_ref": self.check.paper_ref,
            "holds": self.outcome.holds,
            "exact": measured.exact,
            "measured": measured.value,
            "bound": self.outcome.bound,
            "seconds": round(self.seconds, 3),
        }
        if not measured.exact:
            record["interval"] = [measured.low, measured.high]
        return record


def run_check(check: Check, max_length: int, test_length: int) -> Result:
    start = perf_counter()
    outcome = check.run(max_length, test_length)
    return Result(check, outcome, perf_counter() - start)


CHECKS: list[Check] = [
    Check(
        "definition-3.2",
        "Def. 3.2",
        "the enumerated probabilities of each ensemble sum to 1",
        statements.ensembles_are_distributions,
    ),
    Check(
        "definition-3.3",
        "Def. 3.3, footnote 6",
        "the linear evaluation equals the sum over all k-sets",
        statements.evaluations_agree,
    ),
    Check(
        "proposition-3.1",
        "Prop. 3.1",
        "an adversarial extension raises the loss at L_bar above 1/2",
        statements.adversary_wins,
    ),
    Check(
        "proposition-3.2",
        "Props. 3.2, B.1",
        "every attention head is 1-sparse functional attention",
        statements.heads_are_attention,
    ),
    Check(
        "proposition-b.1",
        "Prop. B.1",
        "1-sparse functional attention of joint rank at most d is an attention head",
        statements.attention_is_heads,
    ),
    Check(
        "erratum-proposition-b.1",
        "Prop. B.1",
        "some tables (3 tokens, d = 1) are at a distance from those of every head",
        statements.no_head_computes,
    ),
    Check(
        "retrieval-coverage",
        "Sec. 3.1, Assumption 4.2",
        "k-gram retrieval has no coverage: 1/eta is 0",
        statements.retrieval_lacks_coverage,
    ),
    Check(
        "natural-coverage",
        "Assumption 4.2",
        "random shifts of a law that treats each place alike have eta_l <= l",
        statements.natural_choice_covers,
    ),
    Check(
        "erratum-natural-coverage",
        "Assumption 4.2",
        "random shifts of a local law with a missing place have 1/eta_l < 1/l",
        statements.natural_choice_needs_places,
    ),
    Check(
        "theorem-4.3",
        "Theorem 4.3",
        "over an exact grid, delta = 0 and delta > 0, the loss stays within the proof's bound",
        statements.theorem_on_grid,
    ),
    Check(
        "theorem-4.3-long",
        "Theorem 4.3",
        "at 64 times the training length too, with a bound below 1",
        statements.theorem_far_out,
    ),
    Check(
        "theorem-4.3-repaired",
        "Theorem 4.3",
        "the repaired bound holds on the grid, where the printed one fails, and where it is below 1 and needs T or rho",
        statements.repaired_theorem,
    ),
    Check(
        "erratum-theorem-4.3-scores",
        "Theorem 4.3, Lemma C.1",
        "with scores far apart and delta > 0, the loss exceeds the printed bound",
        statements.breaks_theorem(hidden_path),
    ),
    Check(
        "erratum-theorem-4.3-wide",
        "Theorem 4.3, eq. (13)",
        "with planted sets wider than L and delta = 0, the loss exceeds 0",
        statements.breaks_theorem(wide_planted_sets),
    ),
    Check(
        "erratum-theorem-4.3-dead",
        "Theorem 4.3, footnote 6",
        "with base windows that have no finite score and delta = 0, the loss exceeds 0",
        statements.breaks_theorem(dead_windows),
    ),
    Check(
        "lemma-c.1-repaired",
        "Lemma C.1",
        "with the seam factor 1 + rho, the lemma holds on random chains",
        statements.repaired_lemma_c1,
    ),
    Check("erratum-lemma-c.1", "Lemma C.1", "as printed, the lemma fails at i = 3", statements.printed_lemma_c1_fails),
    Check(
        "lemma-c.2",
        "Lemma C.2",
        "the movement of a ratio is at most the sum of its single movements",
        statements.lemma_c2_holds,
    ),
    *(
        Check(
            f"counterexample-{lacks}",
            "Prop. C.3",
            f"lacking {lacks} alone, the worst minimiser loses at least a constant at L_bar",
            statements.counterexample(lacks),
            takes_lengths=True,
        )
        for lacks in COUNTEREXAMPLES
    ),
    Check(
        "definition-4.1",
        "Def. 4.1",
        "gathering the query is an L_local-local position coupling",
        statements.coupling_is_local,
    ),
    Check(
        "strong-realizability",
        "Assumption D.1",
        "realizability needs no larger delta than strong realizability",
        statements.strong_implies_realizable,
    ),
    Check(
        "proposition-d.2",
        "Props. 4.4, D.2",
        "with position coupling, far retrieval generalizes",
        statements.coupling_generalizes,
    ),
    Check(
        "without-coupling",
        "Sec. 4.1",
        "without it, the local class loses at least 1/4",
        statements.local_class_fails_uncoupled,
    ),
    Check(
        "erratum-proposition-d.2",
        "Prop. D.2",
        "strong realizability is lost when PC[.] reorders background tokens",
        statements.reordering_breaks,
    ),
    Check(
        "remark-4.2-pairs", "Remark 4.2", "PoSE removes the need for locality for k = 2", statements.pose_helps_pairs
    ),
    Check(
        "remark-4.2-triples",
        "Remark 4.2",
        "with two chunks it does not for k = 3 (three chunks do)",
        statements.pose_fails_triples,
    ),
    Check(
        "markov-background",
        "after Def. 3.2",
        "the theorem needs i.i.d. tokens: with one Markov background and delta = 0, the loss exceeds 0",
        statements.markov_background,
    ),
    Check(
        "bridge-parity",
        "Theorem 4.3, App. E.1.1",
        "gradient descent at L <= 64 keeps planted parity's loss under 0.1 at 4096",
        statements.learned_parity,
    ),
    Check(
        "bridge-retrieval",
        "Theorem 4.3, Sec. 3.1",
        "gradient descent at L <= 64 keeps bigram retrieval's loss under 0.1 at 4096",
        statements.learned_retrieval,
    ),
]
