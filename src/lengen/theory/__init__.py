"""The theory of the paper, executable: ensembles, sparse functional attention, assumptions, theorems, counterexamples.

docs/theory.md tells the story with a worked example; docs/paper_map.md finds the code of each numbered statement.
"""

from lengen.theory.adversarial import AdversarialExtension, extend_adversarially
from lengen.theory.assumptions import (
    Finding,
    check_coverage,
    check_locality,
    check_realizability,
    check_relativity,
    check_strong_realizability,
)
from lengen.theory.attention import AttentionClass, SparseAttention, attend_all_sets
from lengen.theory.counterexamples import COUNTEREXAMPLES, Counterexample
from lengen.theory.coupling import CoupledPositions, PositionCoupler, check_local_coupling
from lengen.theory.ensembles import Iid, LabelledBatch, MarkovChain, PlantedEnsemble, TokenLaw
from lengen.theory.examples import k_gram_retrieval, marker_class, noisy_marker, planted_parity, sticky_marker
from lengen.theory.heads import AttentionHead, attention_from_head, head_from_attention
from lengen.theory.keys import TableKey, TableValue, tabulate_key, tabulate_value
from lengen.theory.local_attention import attend_local_sets
from lengen.theory.pose import pose_length_generalization
from lengen.theory.position_laws import KGramPositions, ListedPositions, RandomShift, UniformPlacement
from lengen.theory.risk import (
    Estimate,
    LengthGeneralization,
    estimate_loss,
    expected_loss,
    length_generalization,
    training_risk,
)
from lengen.theory.theorem import TheoremReport, check_theorem

__all__ = [
    "COUNTEREXAMPLES",
    "AdversarialExtension",
    "AttentionClass",
    "AttentionHead",
    "Counterexample",
    "CoupledPositions",
    "Estimate",
    "Finding",
    "Iid",
    "KGramPositions",
    "LabelledBatch",
    "LengthGeneralization",
    "ListedPositions",
    "MarkovChain",
    "PlantedEnsemble",
    "PositionCoupler",
    "RandomShift",
    "SparseAttention",
    "TableKey",
    "TableValue",
    "TheoremReport",
    "TokenLaw",
    "UniformPlacement",
    "attend_all_sets",
    "attend_local_sets",
    "attention_from_head",
    "check_coverage",
    "check_local_coupling",
    "check_locality",
    "check_realizability",
    "check_relativity",
    "check_strong_realizability",
    "check_theorem",
    "estimate_loss",
    "expected_loss",
    "extend_adversarially",
    "head_from_attention",
    "k_gram_retrieval",
    "length_generalization",
    "marker_class",
    "noisy_marker",
    "planted_parity",
    "pose_length_generalization",
    "sticky_marker",
    "tabulate_key",
    "tabulate_value",
    "training_risk",
]
