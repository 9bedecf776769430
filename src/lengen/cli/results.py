"""Write the results page from the rows of a sweep: tables, verdicts and cost, nothing typed by hand."""

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen results --rows results/cpu --out docs/results.md --overwrite --page README.md"
    parser.add_argument("--rows", type=Path, default=Path("results/cpu"), metavar="DIR", help="default results/cpu")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a Markdown file; default: print the page")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the findings into this page")


def run(args: argparse.Namespace) -> int:
    from lengen.experiments.findings import FINDINGS, findings
    from lengen.experiments.results_page import results_page
    from lengen.results import refuse_to_replace, write_atomically

    if not args.rows.is_dir():
        raise ValueError(f"{args.rows} is not a folder; give the --out of a `lengen reproduce`")
    if args.out is not None and not args.overwrite:
        refuse_to_replace(args.out)
    if args.page is not None:
        FINDINGS.write(args.page, findings(args.rows))
        print(args.page)
    if args.out is not None:
        write_atomically(args.out, results_page(args.rows).encode())
        print(args.out)
    if args.out is None and args.page is None:
        print(results_page(args.rows), end="")
    return 0
