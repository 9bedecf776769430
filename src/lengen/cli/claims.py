"""What the paper claims of its experiments, and what our rows say, each with a 95 % interval and what it is over."""

import argparse
import math
from pathlib import Path

from lengen.cli.listing import add_json_flag, to_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen claims --rows results/cpu --json"
    parser.add_argument("--rows", type=Path, default=Path("results/cpu"), metavar="DIR", help="default results/cpu")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from lengen.experiments.findings import judge_all

    if not args.rows.is_dir():
        raise ValueError(f"{args.rows} is not a folder; give the --out of a `lengen reproduce`")
    for name, paper_ref, statement, judgement in judge_all(args.rows):
        value, low, high = judgement.interval
        if args.json:
            record = {
                "claim": name,
                "paper_ref": paper_ref,
                "verdict": judgement.verdict,
                "value": value,
                "low": low,
                "high": high,
                "seeds": judgement.num_seeds,
                "over": judgement.over,
                "statement": statement,
                "note": judgement.note,
            }
            print(to_json(record))
        else:
            print(f"{judgement.verdict:<10}  {name}: {statement} ({paper_ref})")
            if math.isfinite(value):
                interval = f" [{low:.3f}, {high:.3f}]" if math.isfinite(low) and math.isfinite(high) else ""
                note = f"; {judgement.note}" if judgement.note else ""
                print(f"{'':<12}{value:.3f}{interval} over {judgement.over}{note}")
            elif judgement.note:
                print(f"{'':<12}{judgement.note}")
    return 0
