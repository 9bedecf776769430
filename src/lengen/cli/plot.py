"""Draw accuracy against length for one or more runs, with the training range marked.

Runs that differ by their seed alone become one curve, shaded with the Student-t interval over runs, or with the range
of two; a single run is shaded with the Wilson interval over its test examples. The figure says which.
"""

import argparse
from pathlib import Path

from lengen.results import METRICS, RunFolder


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen plot runs/demo/ppc runs/demo/baseline --out curves.png"
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="folders of runs")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a .png, .pdf or .svg file")
    parser.add_argument("--metric", choices=METRICS, help="default: each run's own headline metric")
    parser.add_argument("--title", default="", help="above the figure")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")


def run(args: argparse.Namespace) -> int:
    from lengen.figures.length_curves import curves_of, draw_length_curves, save_figure

    curves = curves_of([RunFolder(folder) for folder in args.folders], args.metric)
    save_figure(draw_length_curves(curves, args.title), args.out, args.overwrite)
    print(args.out)
    return 0
