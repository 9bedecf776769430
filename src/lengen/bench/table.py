"""Rows as tables: every row, in the terminal and in docs/performance.md; one line a promise, in the README."""

from collections.abc import Sequence
from pathlib import Path

from lengen.bench.row import BenchRow
from lengen.results.block import Block

HEADINGS = ("benchmark", "setting", "against", "threads", "ratio", "25–75 %", "target", "met")
PROMISE_HEADINGS = ("benchmark", "setting", "against", "ratio", "target", "met")
SPEED_TABLE = Block("speed table", "lengen bench --from-rows --page docs/performance.md")
SPEED_PROMISES = Block("speed promises", "lengen bench --from-rows --page README.md")


def write_tables(page: Path, rows: Sequence[BenchRow]) -> None:
    """Those that the page has a place for."""
    tables = {SPEED_TABLE: markdown_table(rows), SPEED_PROMISES: promises_table(rows)}
    for block in places_in(page):
        block.write(page, tables[block])


def places_in(page: Path) -> list[Block]:
    """For which tables there is one; a page without any is refused."""
    text = page.read_text(encoding="utf-8")
    blocks = [block for block in (SPEED_TABLE, SPEED_PROMISES) if block.begin in text] or [SPEED_TABLE]
    for block in blocks:
        block.within(text, "", str(page))
    return blocks


def cells_of(row: BenchRow) -> tuple[str, ...]:
    return (
        row.name,
        row.setting,
        row.peer,
        str(row.threads),
        f"{row.ratio:g}",
        f"{row.low:g}–{row.high:g}",
        _target(row),
        "" if row.met is None else "yes" if row.met else "**no**",
    )


def markdown_table(rows: Sequence[BenchRow]) -> str:
    return _markdown([HEADINGS, *map(cells_of, rows)])


def promises_table(rows: Sequence[BenchRow]) -> str:
    """Rows with a target, those of one benchmark, peer and target in one line: the range, and how many meet it."""
    groups: dict[tuple[str, str, str], list[BenchRow]] = {}
    for row in rows:
        if row.target is not None:
            groups.setdefault((row.name, row.peer, _target(row)), []).append(row)
    return _markdown(
        [PROMISE_HEADINGS, *(_promise(name, peer, target, group) for (name, peer, target), group in groups.items())]
    )


def _promise(name: str, peer: str, target: str, rows: Sequence[BenchRow]) -> tuple[str, ...]:
    settings = list(dict.fromkeys(row.setting for row in rows))
    low, high = (f"{bound(row.ratio for row in rows):g}" for bound in (min, max))
    num_met = sum(bool(row.met) for row in rows)
    all_met = "yes" if len(rows) == 1 else f"all {len(rows)}"
    return (
        name,
        settings[0] if len(settings) == 1 else f"{len(settings)} settings",
        peer,
        low if low == high else f"{low}–{high}",
        target,
        all_met if num_met == len(rows) else f"**{num_met} of {len(rows)}**",
    )


def _target(row: BenchRow) -> str:
    return "" if row.target is None else f"{'≥' if row.bound == 'at least' else '≤'} {row.target:g}"


def _markdown(lines: Sequence[tuple[str, ...]]) -> str:
    headings, *body = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (headings, tuple("---" for _ in headings), *body))
