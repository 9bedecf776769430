"""Table 1 for docs/results.md, written from its rows."""

import math
from collections.abc import Sequence
from statistics import fmean

from lengen.evaluate.intervals import over_documents
from lengen.experiments.language_claims import LANGUAGE_CLAIMS
from lengen.experiments.wording import verdicts
from lengen.results.perplexity import Measure, PerplexityRow

PAPER_SAYS = (
    "A model trained on context 64 with a PoSE phase has perplexity 17.59 at 64 and 14.74 at 128; one trained on 128 "
    "has 17.62 and 14.49 (1.3 B parameters, C4)."
)
TEXTS = (
    "`english` with a vocabulary of 8,192 tokens, and, beyond the paper, `documentation` with one of 4,096: manuals, "
    "in which terms come back (`lengen corpus list`). The same model everywhere. 14.7 million tokens are 7,200 steps "
    "of 2,048, as the `cpu` presets were at first; 29.5 million are 28,800 of 1,024, as they are now. A claim compares "
    "arms that read as many, the most that both did."
)
HEADINGS: dict[Measure, str] = {
    "same-targets": "the same tokens, each from its last L (L = 64 is the trivial baseline of a model trained on 64)",
    "all-positions": "all positions of windows of L tokens, as the paper averages",
}


def language_section(rows: Sequence[PerplexityRow]) -> str:
    lines = ["## Table 1: perplexity of short-trained language models on long contexts", f"**The paper.** {PAPER_SAYS}"]
    if not rows:
        how = "`lengen lm train` and `lengen lm evaluate --out results/cpu/table1.jsonl` (docs/language.md)"
        return "\n\n".join([*lines, f"**Here.** Not run yet: {how}."])
    lines.append(f"**Here.** {TEXTS}")
    for trained_on, corpus in dict.fromkeys((row.trained_on, row.corpus) for row in rows):
        text = corpus if corpus == trained_on else f"{corpus}, trained on {trained_on}"
        for measure, heading in HEADINGS.items():
            place = (trained_on, corpus, measure)
            chosen = [row for row in rows if (row.trained_on, row.corpus, row.measure) == place]
            for targets in dict.fromkeys(row.targets for row in chosen):
                lines.append(_table(f"{text}: {heading}", [row for row in chosen if row.targets == targets]))
    lines.append(verdicts(((claim.statement, claim.judge(rows)) for claim in LANGUAGE_CLAIMS), decimals=3))
    hours = sum({row.run: row.wall_seconds for row in rows}.values()) / 3600
    lines.append(
        f"**Cost.** {len({row.run for row in rows})} models, {hours:.1f} hours of one thread if each had been trained "
        "alone (arms that differ in their last phase share the first): wall time, on cores that did other work as well."
    )
    return "\n\n".join(lines)


def _table(title: str, rows: Sequence[PerplexityRow]) -> str:
    lengths = sorted({row.length for row in rows})
    lines = [
        f"| {title} | million tokens | " + " | ".join(f"L = {length}" for length in lengths) + " |",
        "|---|---|" + "---|" * len(lengths),
    ]
    for label, num_tokens in dict.fromkeys((row.label, row.num_tokens) for row in rows):
        cells = []
        for length in lengths:
            found = [row for row in rows if (row.label, row.num_tokens, row.length) == (label, num_tokens, length)]
            # A document is one document however many runs have read it.
            sums = [fmean(of_runs) for of_runs in zip(*(row.losses for row in found), strict=True)]
            cells.append(_cell(sums, found[0].counts) if found else "–")
        lines.append(f"| {label} | {num_tokens / 1e6:,.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(sums: list[float], counts: list[int]) -> str:
    value, low, high = map(math.exp, over_documents(sums, counts))
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"
