"""Measure speed as ratios to named peers, in one process with the two sides taking turns: median and quartiles.

Needs the `hf` extra (transformers) for its peers. All of it takes up to twenty minutes on two cores.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from lengen.bench import BENCHMARKS, benchmark_named
from lengen.bench.row import BenchRow, read_rows, write_rows
from lengen.bench.table import HEADINGS, cells_of, places_in, write_tables
from lengen.cli.listing import add_json_flag, to_json

DEFAULT_OUT = Path("results/bench")


def configure(parser: argparse.ArgumentParser) -> None:
    width = max(map(len, BENCHMARKS))
    lines = "\n".join(f"  {name:<{width}}  {benchmark.about}" for name, benchmark in BENCHMARKS.items())
    parser.epilog = (
        f"benchmarks:\n{lines}\n\n"
        "examples:\n"
        "  lengen bench startup data --out results/bench\n"
        "  lengen bench --from-rows --page README.md"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which benchmarks (default: all)")
    parser.add_argument(
        "--out", type=Path, default=DEFAULT_OUT, metavar="DIR", help=f"one file of rows each (default {DEFAULT_OUT})"
    )
    parser.add_argument("--from-rows", action="store_true", help="measure nothing: show the rows that are in --out")
    parser.add_argument(
        "--page",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="write all rows of --out into this page's table; may be given again",
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    names = args.names or list(BENCHMARKS)
    for name in names:
        benchmark_named(name)
    for page in args.page:  # one without a place for a table is known before any work is spent
        places_in(page)
    if not args.json:
        print(_line(HEADINGS))
    for row in read_rows(args.out, names) if args.from_rows else _measured(names, args.out):
        print(to_json(row.to_dict()) if args.json else _line(cells_of(row)), flush=True)
    for page in args.page:
        write_tables(page, read_rows(args.out, BENCHMARKS))
    return 0


def _measured(names: list[str], out: Path) -> Iterator[BenchRow]:
    from lengen.results import RunFolder

    RunFolder(out).create()  # a folder that cannot be written to is known before any work is spent
    for name in names:
        rows = []
        for row in benchmark_named(name).measure():
            rows.append(row)
            yield row
        for kept in write_rows(out, name, rows):
            print(
                f"{name}: not measured this time, so its row is kept: {kept.setting}, against {kept.peer}, "
                f"{kept.threads} thread{'s' if kept.threads > 1 else ''}",
                file=sys.stderr,
            )


def _line(cells: tuple[str, ...]) -> str:
    widths = (17, 62, 24, 8, 7, 13, 7, 3)
    return " ".join(f"{cell.replace('**', ''):<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
