"""Printing a catalogue: aligned lines for a person, one JSON object a line for a program."""

import argparse
import json
import math
from collections.abc import Sequence
from typing import Any


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def to_json(record: dict[str, Any]) -> str:
    """One line that every reader of JSON takes: it has no infinity and no NaN, so such numbers are null."""
    return json.dumps(_finite(record), ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_records(records: Sequence[dict[str, Any]], as_json: bool) -> None:
    """One JSON object a line, or a table with the records' keys above it."""
    if as_json:
        for record in records:
            print(to_json(record))
        return
    if not records:
        return
    lines = [[name.replace("_", " ") for name in records[0]], *([str(value) for value in r.values()] for r in records)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
