"""`lengen theory`: list the paper's statements, check them, draw their figures."""

import argparse
import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from lengen.cli.listing import to_json
from lengen.cli.subcommands import add_subcommand

if TYPE_CHECKING:  # torch takes a second to import, and `lengen --help` should not wait for it
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

    add_subcommand(commands, "list", "name every statement, with its place in the paper", "lengen theory list")
    check = add_subcommand(
        commands,
        "check",
        "check statements; exit code 1 if one that should hold does not",
        "lengen theory check theorem-4.3 lemma-c.2 --json",
        "Check the named statements, or all of them (about a minute).",
    )
    check.add_argument("names", nargs="*", metavar="NAME", help="statements to check (default: all)")
    check.add_argument("--json", action="store_true", help="print one JSON object a line")
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


def run(args: argparse.Namespace) -> int:
    """Run one subcommand; the exit code."""
    if args.theory_command == "list":
        return _list()
    if args.theory_command == "check":
        return _check(args.names, args.json, args.max_length, args.test_length)
    return _plot(args.out, args.rows)


def _list() -> int:
    from lengen.theory.checks import CHECKS

    width = max(len(check.name) for check in CHECKS)
    for check in CHECKS:
        print(f"{check.name:<{width}}  {check.paper_ref}: {check.statement}")
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
            near = difflib.get_close_matches(name, by_name, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else "`lengen theory list` shows them all"
            raise ValueError(f"there is no statement {name!r}; {hint}")
    return [by_name[name] for name in names] if names else checks


def _describe(result: "Result") -> str:
    measured = result.outcome.measured
    spread = "" if measured.exact else f" in [{measured.low:.4g}, {measured.high:.4g}] (95 %)"
    verdict = "holds" if result.outcome.holds else "FAILS"
    return (
        f"{verdict}  {result.check.name} ({result.check.paper_ref}): {result.check.statement}\n"
        f"       measured {measured.value:.6g}{spread}, bound {result.outcome.bound:.6g}, {result.seconds:.1f} s"
    )


def _plot(out: Path, rows_dir: Path | None) -> int:
    from lengen.figures.theory import draw_all, read_rows

    if rows_dir is not None:
        rows = read_rows(rows_dir)
    else:
        from lengen.theory.measurements import MEASUREMENTS

        rows = {}
        for name, measure in MEASUREMENTS.items():
            print(f"measuring {name}", flush=True)
            rows[name] = measure()
    out.mkdir(parents=True, exist_ok=True)
    if rows_dir is None:
        for name, table in rows.items():
            (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    for path in draw_all(rows, out):
        print(path)
    return 0
