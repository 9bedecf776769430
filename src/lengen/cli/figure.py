"""Draw figures of the paper from the rows of a sweep; nothing is trained, and torch is not needed."""

import argparse
from pathlib import Path

from lengen.experiments.figures import FIGURES


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen figure fig2 --rows results/cpu --out docs/figures"
    parser.add_argument("figures", nargs="+", metavar="NAME", help=f"{', '.join(FIGURES)}, or all that have rows")
    parser.add_argument("--rows", type=Path, default=Path("results/cpu"), metavar="DIR", help="default results/cpu")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the figures")
    parser.add_argument("--overwrite", action="store_true", help="replace figures that are there")


def run(args: argparse.Namespace) -> int:
    from lengen.experiments.panels import panels_of
    from lengen.figures.length_curves import draw_panels, save_figure
    from lengen.results.sweep import sweep_file

    names = args.figures
    if "all" in names:
        names = [name for name in FIGURES if sweep_file(args.rows, name).exists()]
        if not names:
            raise ValueError(
                f"{args.rows} has no rows of any figure; run `lengen reproduce all --out {args.rows}` first"
            )
    for name in dict.fromkeys(names):
        path = args.out / f"{name}.png"
        save_figure(draw_panels(panels_of(name, args.rows)), path, args.overwrite)
        print(path)
    return 0
