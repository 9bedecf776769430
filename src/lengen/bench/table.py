"""Rows as a table: in the terminal, and in a Markdown page."""

from collections.abc import Sequence

from lengen.bench.row import BenchRow
from lengen.results.block import Block

HEADINGS = ("benchmark", "setting", "against", "threads", "ratio", "25–75 %", "target", "met")
SPEED_TABLE = Block("speed table", "lengen bench --from-rows --page README.md")


def cells_of(row: BenchRow) -> tuple[str, ...]:
    sign = "≥" if row.bound == "at least" else "≤"
    return (
        row.name,
        row.setting,
        row.peer,
        str(row.threads),
        f"{row.ratio:g}",
        f"{row.low:g}–{row.high:g}",
        "" if row.target is None else f"{sign} {row.target:g}",
        "" if row.met is None else "yes" if row.met else "**no**",
    )


def markdown_table(rows: Sequence[BenchRow]) -> str:
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *map(cells_of, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
