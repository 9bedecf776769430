"""Draw figures of the paper from rows; nothing is trained, and torch is not needed."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lengen.checks import unknown_name
from lengen.experiments.context_page import CONTEXT_FIGURES, analyses_of
from lengen.experiments.figures import FIGURES
from lengen.results.sweep import sweep_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = (*FIGURES, *CONTEXT_FIGURES)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen figure fig2 --rows results/cpu --out docs/figures"
    parser.add_argument("figures", nargs="+", metavar="NAME", help=f"{', '.join(NAMES)}, or all that have rows")
    parser.add_argument("--rows", type=Path, default=Path("results/cpu"), metavar="DIR", help="default results/cpu")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the figures")
    parser.add_argument("--overwrite", action="store_true", help="replace figures that are there")


def run(args: argparse.Namespace) -> int:
    from lengen.figures.length_curves import save_figure

    names = list(dict.fromkeys(args.figures))
    for name in names:
        if name not in (*NAMES, "all"):
            raise unknown_name("figure", name, [*NAMES, "all"])
    if "all" in names:
        names = [name for name in NAMES if _has_rows(name, args.rows)]
        if not names:
            raise ValueError(
                f"{args.rows} has no rows of any figure; run `lengen reproduce all --out {args.rows}` first"
            )
    for name in names:
        path = args.out / f"{name}.png"
        save_figure(_draw(name, args.rows), path, args.overwrite)
        print(path)
    return 0


def _has_rows(name: str, folder: Path) -> bool:
    if name in CONTEXT_FIGURES:
        return bool(analyses_of(name, folder))
    return sweep_file(folder, name).exists()


def _draw(name: str, folder: Path) -> "Figure":
    from lengen.experiments.panels import panels_of
    from lengen.figures.context import draw_analyses
    from lengen.figures.length_curves import draw_panels

    if name not in CONTEXT_FIGURES:
        return draw_panels(panels_of(name, folder))
    analyses = list(analyses_of(name, folder).values())
    if not analyses:
        raise ValueError(f"{folder} has no analysis of {name} yet; see `lengen context analyze` and docs/context.md")
    return draw_analyses(analyses)
