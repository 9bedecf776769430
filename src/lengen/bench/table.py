"""Rows as a table: in the terminal, and between two markers of a Markdown page."""

from collections.abc import Sequence
from pathlib import Path

from lengen.bench.row import BenchRow
from lengen.results.store import write_atomically

HEADINGS = ("benchmark", "setting", "against", "threads", "ratio", "25–75 %", "target", "met")
BEGIN = "<!-- speed table: written by `lengen bench --from-rows --page README.md` -->"
END = "<!-- end of speed table -->"


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


def write_table(page: Path, rows: Sequence[BenchRow]) -> None:
    """Replace what stands between the markers of a page."""
    text = page.read_text(encoding="utf-8")
    write_atomically(page, with_table(text, rows, str(page)).encode())


def with_table(text: str, rows: Sequence[BenchRow], where: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{where} has no place for the speed table; put the lines {BEGIN!r} and {END!r} there")
    return f"{before}{BEGIN}\n{markdown_table(rows)}\n{END}{after}"
