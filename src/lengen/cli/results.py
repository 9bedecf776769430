"""Write the results page from the rows of a sweep: tables, verdicts and cost, nothing typed by hand."""

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen results --rows results/cpu --out docs/results.md --overwrite"
    parser.add_argument("--rows", type=Path, default=Path("results/cpu"), metavar="DIR", help="default results/cpu")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a Markdown file; default: print the page")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")


def run(args: argparse.Namespace) -> int:
    from lengen.experiments.results_page import results_page
    from lengen.results import write_atomically

    if not args.rows.is_dir():
        raise ValueError(f"{args.rows} is not a folder; give the --out of a `lengen reproduce`")
    page = results_page(args.rows)
    if args.out is None:
        print(page, end="")
        return 0
    if args.out.exists() and not args.overwrite:
        raise ValueError(f"{args.out} exists already; choose another --out or add --overwrite")
    write_atomically(args.out, page.encode())
    print(args.out)
    return 0
