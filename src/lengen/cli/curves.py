"""Printing accuracy by length."""

from collections.abc import Sequence

from lengen.cli.listing import to_json
from lengen.evaluate.intervals import wilson
from lengen.results import METRICS, Row


def print_curve(rows: Sequence[Row], as_json: bool) -> None:
    """A line a row as JSON, or a table with a line a length and a column a metric (95 % Wilson intervals)."""
    if as_json:
        for row in rows:
            _, low, high = wilson(row.correct, row.total)
            print(to_json(row.to_dict() | {"low": low, "high": high}), flush=True)
        return
    by_place = {(row.length, row.metric): row for row in rows}
    metrics = [metric for metric in METRICS if any(row.metric == metric for row in rows)]
    print(f"{'length':>6}  " + "  ".join(f"{metric:<20}" for metric in metrics).rstrip())
    for length in sorted({row.length for row in rows}):
        cells = (by_place.get((length, metric)) for metric in metrics)
        print(f"{length:>6}  " + "  ".join(f"{_cell(row):<20}" for row in cells).rstrip())


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    share, low, high = wilson(row.correct, row.total)
    return f"{share:.3f} [{low:.3f}, {high:.3f}]"
