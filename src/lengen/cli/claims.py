"""What the paper claims of its experiments, and what our rows say, with 95 % intervals over runs (text: documents)."""

import argparse
import json
import math
from pathlib import Path

from lengen.cli.listing import add_json_flag


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen claims --rows results/cpu --json"
    parser.add_argument("--rows", type=Path, default=Path("results/cpu"), metavar="DIR", help="default results/cpu")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from lengen.experiments.claims import CLAIMS, Claim, Judgement
    from lengen.experiments.context_claims import context_claims
    from lengen.experiments.figures import FIGURES
    from lengen.experiments.language_claims import LANGUAGE_CLAIMS, LanguageClaim
    from lengen.results.perplexity import TABLE1, read_perplexity_rows
    from lengen.results.sweep import read_sweep_rows

    if not args.rows.is_dir():
        raise ValueError(f"{args.rows} is not a folder; give the --out of a `lengen reproduce`")
    rows = {figure: read_sweep_rows(args.rows, figure) for figure in FIGURES}
    perplexities = read_perplexity_rows(args.rows / TABLE1)
    judged: list[tuple[Claim | LanguageClaim, Judgement]] = [(claim, claim.judge(rows)) for claim in CLAIMS]
    judged += [(claim, claim.judge(perplexities)) for claim in LANGUAGE_CLAIMS]
    judged += [(claim, claim.judge(rows)) for claim in context_claims(args.rows)]
    for claim, judgement in judged:
        value, low, high = (number if math.isfinite(number) else None for number in judgement.interval)
        if args.json:
            record = {
                "claim": claim.name,
                "paper_ref": claim.paper_ref,
                "verdict": judgement.verdict,
                "value": value,
                "low": low,
                "high": high,
                "seeds": judgement.num_seeds,
                "statement": claim.statement,
                "note": judgement.note,
            }
            print(json.dumps(record, ensure_ascii=False))
        else:
            print(f"{judgement.verdict:<10}  {claim.name}: {claim.statement} ({claim.paper_ref})")
            if value is not None:
                interval = f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None else ""
                note = f"; {judgement.note}" if judgement.note else ""
                print(f"{'':<12}{value:.3f}{interval} over {judgement.num_seeds} runs{note}")
    return 0
