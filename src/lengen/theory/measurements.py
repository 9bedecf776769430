"""What the figures and the longer checks measure: rows of plain numbers, one function an experiment."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from lengen.theory.assumptions import check_coverage
from lengen.theory.counterexamples import COUNTEREXAMPLES
from lengen.theory.coupling_examples import far_retrieval_class, far_retrieval_coupler
from lengen.theory.errata import hidden_path
from lengen.theory.examples import dilution, marker_class, noisy_marker, planted_parity
from lengen.theory.learning import (
    QueryRetrieval,
    TrainedAttention,
    TrainingSetup,
    learn_planted_parity,
    learn_retrieval,
)
from lengen.theory.pose import pose_length_generalization, spread_sets_example
from lengen.theory.position_laws import PositionLaw
from lengen.theory.risk import Estimate, length_generalization
from lengen.theory.theorem import TheoremReport, check_theorem, proof_factor

Row = dict[str, str | float | int | bool]

PARITY_SPARSITY, PARITY_LOCALITY = 3, 6
RETRIEVAL_GRAM, RETRIEVAL_TOKENS, RETRIEVAL_LOCALITY = 2, 256, 4
BRIDGE_LENGTHS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]


@dataclass(frozen=True)
class GridPoint:
    """One setting of Theorem 4.3. `difficulty` is the markers' noise, or the dilution's softness."""

    family: Literal["markers", "dilution"]
    sparsity: int
    difficulty: float
    max_length: int
    test_length: int

    def report(self, samples: int = 0) -> TheoremReport:
        locality = max(2, self.sparsity)  # the paper's smallest: L_local >= k
        if self.family == "markers":
            ensemble, hypotheses = noisy_marker(self.sparsity, self.difficulty), marker_class(self.sparsity, locality)
        else:
            ensemble, hypotheses = dilution(self.sparsity, locality, self.difficulty, self.max_length)
        return check_theorem(ensemble, hypotheses, self.max_length, self.test_length, samples)


def exact_grid() -> list[GridPoint]:
    """Settings whose loss at L̄ is enumerated: k = 2 and 3, δ from 0 up.

    In `markers` the realizing hypothesis is the minimiser, and its loss is δ; in `dilution` it is not.
    """
    markers = [(2, 8, 10), (2, 8, 14), (3, 12, 15)]
    diluted = [(2, 8, 10), (2, 8, 32), (2, 8, 128), (2, 32, 128), (3, 12, 15), (3, 12, 48)]
    return [
        GridPoint("markers", k, noise, short, long) for k, short, long in markers for noise in (0.0, 1e-7, 1e-4, 1e-1)
    ] + [GridPoint("dilution", k, soft, short, long) for k, short, long in diluted for soft in (3.0, 8.0, 13.0, 18.0)]


def theorem_rows() -> list[Row]:
    """Theorem 4.3 over the exact grid."""
    return [_theorem_row(point, point.report()) for point in exact_grid()]


def growth_rows() -> list[Row]:
    """How the minimiser's loss grows with L̄, exactly, up to 64 times L."""
    points = [
        GridPoint("dilution", k, 12.0, short, short * factor)
        for k, short in ((2, 8), (2, 16), (2, 32), (3, 12))
        for factor in (2, 4, 8, 16, 32, 64)
    ]
    return [_theorem_row(point, point.report()) for point in points]


def counterexample_rows() -> list[Row]:
    """Prop. C.3: the exact loss of the worst minimiser by L̄, for each example."""
    rows: list[Row] = []
    for name, make in COUNTEREXAMPLES.items():
        for max_length in (4, 8, 16):
            for factor in (1.25, 1.5, 2, 3, 4, 6, 8):
                test_length = int(max_length * factor)
                loss = make(max_length).outcome(test_length).worst.value
                rows.append({"lacks": name, "L": max_length, "L_bar": test_length, "loss": loss})
    return rows


def erratum_rows() -> list[Row]:
    """Theorem 4.3 as printed, broken: the loss at L̄ stays while δ, and with it the printed bound, falls."""
    rows: list[Row] = []
    for exponent in range(2, 11, 2):
        report = hidden_path(10.0**exponent).report()
        rows.append(
            {
                "heavy": 10.0**exponent,
                "delta": report.delta,
                "headline_bound": report.headline_bound,
                "bound": report.bound,
                "loss": report.measured.value,
            }
        )
    return rows


def coupling_rows(test_lengths: Iterable[int] = (10, 14, 22, 38), samples: int = 2000) -> list[Row]:
    """Prop. D.2: far retrieval with a local class, without and with position coupling, trained at L = 8."""
    coupler, plain = far_retrieval_coupler(), far_retrieval_class(locality=2)
    coupled_ensemble, coupled_class = coupler.couple_ensemble(), coupler.couple_class(far_retrieval_class())
    rows: list[Row] = []
    for length in test_lengths:
        without = length_generalization(plain, coupler.ensemble, 8, length)
        coupled = length_generalization(coupled_class, coupled_ensemble, 8, length, samples)
        rows.append({"arm": "local class, no coupling", "L": 8, "L_bar": length, **_numbers(without.worst)})
        rows.append({"arm": "position coupling", "L": 8, "L_bar": length, **_numbers(coupled.worst)})
    return rows


def pose_rows(max_length: int = 6, test_lengths: Iterable[int] = (14, 16, 18, 20, 24)) -> list[Row]:
    """Remark 4.2: the worst minimiser with true ids, and with PoSE ids in 2 and 3 chunks, for k = 2 and 3."""
    rows: list[Row] = []
    for sparsity, chunks in ((2, 1), (2, 2), (3, 1), (3, 2), (3, 3)):
        attention_class, ensemble = spread_sets_example(sparsity, max_length)
        for length in test_lengths:
            if chunks == 1:
                outcome = length_generalization(attention_class, ensemble, max_length, length)
            else:
                outcome = pose_length_generalization(attention_class, ensemble, max_length, length, chunks)
            rows.append(
                {"k": sparsity, "chunks": chunks, "L": max_length, "L_bar": length, "loss": outcome.worst.value}
            )
    return rows


def train_parity(seed: int) -> TrainedAttention:
    """The bridge's planted parity: three marked bits within seven positions."""
    task = planted_parity(PARITY_SPARSITY, PARITY_LOCALITY)
    setup = TrainingSetup(steps=600, batch_size=64, seed=seed)
    return learn_planted_parity(task, PARITY_SPARSITY, PARITY_LOCALITY, setup)


def train_retrieval(seed: int) -> TrainedAttention:
    """The bridge's bigram retrieval."""
    task = QueryRetrieval(RETRIEVAL_GRAM, RETRIEVAL_TOKENS)
    return learn_retrieval(task, RETRIEVAL_LOCALITY, TrainingSetup(steps=600, seed=seed))


def bridge_rows(seeds: Iterable[int] = (0, 1, 2), samples: int = 8_000) -> list[Row]:
    """Sparse attention learned by gradient descent at L ≤ 64: its loss up to 64 times that length.

    Parity's rows past L also have the proof's bound. Retrieval has none: it lacks coverage, as it never plants at 1.
    """
    parity_law = planted_parity(PARITY_SPARSITY, PARITY_LOCALITY).position_law
    parity_factors = {n: _bridge_factor(parity_law, PARITY_LOCALITY, 64, n) for n in BRIDGE_LENGTHS if n > 64}
    no_factors: dict[int, float] = {}
    rows: list[Row] = []
    for task, train, factors in (
        ("planted parity", train_parity, parity_factors),
        ("bigram retrieval", train_retrieval, no_factors),
    ):
        for seed in seeds:
            losses = train(seed).loss_by_length(BRIDGE_LENGTHS, samples)
            worst_training = max(losses[n].value for n in (32, 64))
            for length, loss in losses.items():
                row: Row = {"task": task, "seed": seed, "length": length, **_numbers(loss)}
                rows.append(row | ({"bound": factors[length] * worst_training} if length in factors else {}))
    return rows


def _bridge_factor(law: PositionLaw, locality: int, max_length: int, test_length: int) -> float:
    """The proof's factor with Lδ, its bound on the loss at a training length, left for the measured loss there."""
    eta_train = check_coverage(law, max_length, locality).constant.value
    eta_test = check_coverage(law, test_length, locality).constant.value
    return proof_factor(max_length, test_length, locality, eta_train, eta_test) / max_length


def _theorem_row(point: GridPoint, report: TheoremReport) -> Row:
    return {
        "family": point.family,
        "k": point.sparsity,
        "difficulty": point.difficulty,
        "L": point.max_length,
        "L_bar": point.test_length,
        "delta": report.delta,
        "headline_bound": report.headline_bound,
        "bound": report.bound,
        "repaired_bound": report.repaired_bound,
        "hypotheses_hold": report.hypotheses_hold,
        **_numbers(report.measured),
    }


def _numbers(loss: Estimate) -> Row:
    return {"loss": loss.value, "low": loss.low, "high": loss.high, "exact": loss.exact}


MEASUREMENTS: dict[str, Callable[[], list[Row]]] = {
    "theorem": theorem_rows,
    "growth": growth_rows,
    "counterexamples": counterexample_rows,
    "erratum": erratum_rows,
    "coupling": coupling_rows,
    "pose": pose_rows,
    "bridge": bridge_rows,
}
