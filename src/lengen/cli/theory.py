"""`lengen theory`: list the paper's statements, check them, draw their figures."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lengen.checks import unknown_name
from lengen.cli.listing import add_json_flag, print_records, to_json
from lengen.cli.subcommands import add_subcommand

if TYPE_CHECKING:  # torch takes a second to import, and `lengen --help` should not wait for it
    from lengen.figures.theory import Rows
    from lengen.theory.checks import Check, Result

DEFAULT_L = 8

_EPILOG = """examples:
  lengen theory list
  lengen theory check --json
  lengen theory check counterexample-locality --L 8 --L-bar 32
  lengen theory plot --out figures
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands list, check and plot."""
    parser.description = "The paper's theory as code: every statement is checked, and the bound is measured."
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="theory_command", metavar="COMMAND", required=True)

    add_json_flag(
        add_subcommand(commands, "list", "name every statement, with its place in the paper", "lengen theory list")
    )
    check = add_subcommand(
        commands,
        "check",
        "check statements; exit code 1 if one that should hold does not",
        "lengen theory check theorem-4.3 lemma-c.2 --json",
        "Check the named statements, or all of them (about a minute).",
    )
    check.add_argument("names", nargs="*", metavar="NAME", help="statements to check (default: all)")
    add_json_flag(check)
    check.add_argument(
        "--L", type=int, dest="max_length", metavar="L", help="training length of the counterexamples (default: 8)"
    )
    check.add_argument(
        "--L-bar", type=int, dest="test_length", metavar="L_BAR", help="their test length (default: 2 L)"
    )

    plot = add_subcommand(
        commands,
        "plot",
        "draw the figures of the theory",
        "lengen theory plot --out figures --rows results/theory",
        "Measure what the figures show (about three minutes), write the rows, and draw them.",
    )
    plot.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the figures go")
    plot.add_argument("--rows", type=Path, metavar="DIR", help="draw these rows (*.jsonl) instead of measuring")
    plot.add_argument("--overwrite", action="store_true", help="replace figures and rows that are there")


def run(args: argparse.Namespace) -> int:
    """Run one subcommand; the exit code."""
    if args.theory_command == "list":
        return _list(args.json)
    if args.theory_command == "check":
        return _check(args.names, args.json, args.max_length, args.test_length)
    return _plot(args.out, args.rows, args.overwrite)


def _list(as_json: bool) -> int:
    from lengen.theory.checks import CHECKS

    print_records([{"name": c.name, "paper_ref": c.paper_ref, "statement": c.statement} for c in CHECKS], as_json)
    return 0


def _check(names: list[str], as_json: bool, max_length: int | None, test_length: int | None) -> int:
    from lengen.theory.checks import CHECKS, run_check

    selected = _select(CHECKS, names)
    if (max_length is not None or test_length is not None) and not any(check.takes_lengths for check in selected):
        raise ValueError(
            f"--L and --L-bar are for counterexample-*, and none is among {', '.join(names)}; leave them out"
        )
    short = DEFAULT_L if max_length is None else max_length
    long = 2 * short if test_length is None else test_length
    all_hold = True
    for check in selected:
        result = run_check(check, short, long)
        print(to_json(result.as_json()) if as_json else _describe(result), flush=True)
        all_hold = all_hold and result.outcome.holds
    return 0 if all_hold else 1


def _select(checks: list["Check"], names: list[str]) -> list["Check"]:
    by_name = {check.name: check for check in checks}
    for name in names:
        if name not in by_name:
            raise unknown_name("statement", name, by_name, "see `lengen theory list`")
    return [by_name[name] for name in names] if names else checks


def _describe(result: "Result") -> str:
    measured = result.outcome.measured
    spread = "" if measured.exact else f" in [{measured.low:.4g}, {measured.high:.4g}] (95 %)"
    verdict = "holds" if result.outcome.holds else "FAILS"
    return (
        f"{verdict}  {result.check.name} ({result.check.paper_ref}): {result.check.statement}\n"
        f"       measured {measured.value:.6g}{spread}, bound {result.outcome.bound:.6g}, {result.seconds:.1f} s"
    )


def _plot(out: Path, rows_dir: Path | None, overwrite: bool) -> int:
    from lengen.figures.theory import draw_all, figure_files, read_rows
    from lengen.results import refuse_to_replace

    if not overwrite:
        for file in figure_files(out).values():
            refuse_to_replace(file)
    rows = _measured(out, overwrite) if rows_dir is None else read_rows(rows_dir)
    for path in draw_all(rows, out, overwrite):
        print(path)
    return 0


def _measured(out: Path, overwrite: bool) -> "Rows":
    """What the figures show; its rows are written once all are measured."""
    from lengen.results import RunFolder, refuse_to_replace, write_atomically
    from lengen.theory.measurements import MEASUREMENTS

    files = {name: out / f"{name}.jsonl" for name in MEASUREMENTS}
    if not overwrite:
        for file in files.values():
            refuse_to_replace(file)
    RunFolder(out).create()  # a folder that cannot be written to is known before any work is spent
    rows = {}
    for name, measure in MEASUREMENTS.items():
        print(f"measuring {name}", file=sys.stderr, flush=True)
        rows[name] = measure()
    for name, table in rows.items():
        write_atomically(files[name], "".join(json.dumps(row) + "\n" for row in table).encode())
    return rows
