"""Rows that may be judged and drawn together: those of the presets as they are now, of one scale."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from lengen.experiments.presets import PRESETS, preset_config
from lengen.results.perplexity import TABLE1, PerplexityRow, read_perplexity_rows
from lengen.results.sweep import SweepRow, read_sweep_rows, sweep_file


def current_rows(folder: Path, figure: str) -> list[SweepRow]:
    """What a preset gave before it was changed is left out, as `lengen reproduce` trains it again."""
    rows = [row for row in read_sweep_rows(folder, figure) if row.preset in PRESETS and row.arm == _arm(row)]
    _check_one_scale(sweep_file(folder, figure), (row.scale for row in rows))
    return rows


def table1_rows(folder: Path) -> list[PerplexityRow]:
    rows = read_perplexity_rows(folder / TABLE1)
    _check_one_scale(folder / TABLE1, (row.scale for row in rows if row.scale))  # a run of no preset has none
    return rows


def _arm(row: SweepRow) -> str:
    return _arm_of(row.preset, row.scale)


@cache
def _arm_of(preset: str, scale: str) -> str:
    return preset_config(preset, scale).arm


def _check_one_scale(file: Path, scales: Iterable[str]) -> None:
    found = list(dict.fromkeys(scales))
    if len(found) > 1:
        raise ValueError(f"{file} has rows of --scale {' and '.join(found)}; move each to a folder of its own")
