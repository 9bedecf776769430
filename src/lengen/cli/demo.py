"""Train Predictive Position Coupling and its no-coupling baseline side by side, and draw where they part.

Parity with scratchpad, trained on lengths 10–40, measured up to 120; two processes, a few minutes. A demo that was
interrupted goes on where it stopped; one that is done is shown again.
"""

import argparse
from pathlib import Path

from lengen.cli.listing import add_json_flag, to_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen demo --out runs/demo"
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), metavar="DIR", help="default runs/demo")
    parser.add_argument("--overwrite", action="store_true", help="train again from the start")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from lengen.experiments.demo import run_demo, summary_in_words

    summary = run_demo(args.out, overwrite=args.overwrite)
    print(to_json(summary) if args.json else summary_in_words(summary, args.out))
    return 0
