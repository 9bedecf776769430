"""Every claim judged on the rows of a folder, and the few that the README shows."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from lengen.experiments.claims import CLAIMS
from lengen.experiments.context_claims import context_claims
from lengen.experiments.figures import FIGURES
from lengen.experiments.judging import Claim, Judgement
from lengen.experiments.language_claims import LANGUAGE_CLAIMS
from lengen.experiments.rows import current_rows, table1_rows
from lengen.experiments.wording import with_interval
from lengen.results.block import Block

FINDINGS = Block("findings", "lengen results --page README.md")
SHOWN = (  # a choice of subjects, made whatever their verdicts
    "sparse-parity-extrapolates-curriculum",
    "wide-extrapolates",
    "width-helps",
    "sharpening-helps-sparse-parity",
    "sparse-parity-collapses-above-k-train-curriculum",
    "smaller-jumps-go-further",
    "sharpening-helps-parity",
    "ppc-three-times-depth2",
    "ppc-three-times-depth5",
    "ppc-beats-fig3b",
    "ppc-beats-fig8b",
    "short-gains-from-128",
    "short-beats-trivial-baseline",
    "pose-is-needed",
    "pose-beyond-is-better",
    "yarn-alone-is-better",
    "pose-yarn-beats-trivial-baseline",
    "pose-yarn-beyond-beats-trivial-baseline",
    "manuals-long-gains-from-128",
    "manuals-short-beats-trivial-baseline",
    "manuals-pose-yarn-beats-trivial-baseline",
    "sparse-context-short",
    "sparse-context-manuals-long",
    "sparse-context-smollm2-wikitext-64-128",
)


class Judged(NamedTuple):
    name: str
    paper_ref: str
    statement: str
    judgement: Judgement

    @classmethod
    def of(cls, claim: Claim[Any], judgement: Judgement) -> "Judged":
        return cls(claim.name, claim.paper_ref, claim.statement, judgement)


def judge_all(folder: Path) -> list[Judged]:
    rows = {figure: current_rows(folder, figure) for figure in FIGURES}
    perplexities = table1_rows(folder)
    return [
        *(Judged.of(claim, claim.judge(rows)) for claim in CLAIMS),
        *(Judged.of(claim, claim.judge(perplexities)) for claim in LANGUAGE_CLAIMS),
        *(Judged.of(claim, claim.judge(rows)) for claim in context_claims(folder)),
    ]


def findings(folder: Path) -> str:
    judged = judge_all(folder)
    counts = Counter(entry.judgement.verdict for entry in judged)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("reproduced", "partly", "not", "no-data"))
    by_name = {entry.name: entry for entry in judged}
    lines = [
        f"{len(judged)} claims: {told}. Among them:",
        "",
        "| | where | verdict | measured | over |",
        "|---|---|---|---|---|",
    ]
    for name in SHOWN:
        _, paper_ref, statement, judgement = by_name[name]
        measured = with_interval(judgement.interval) if judgement.over else ""
        lines.append(f"| {statement} | {paper_ref} | {judgement.verdict} | {measured} | {judgement.over} |")
    return "\n".join(lines)
