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
    """Each record's values in columns; lists and empty values are left to the JSON form."""
    if as_json:
        for record in records:
            print(to_json(record))
        return
    columns = list(records[0]) if records else []
    widths = {column: max(len(str(record[column])) for record in records) for column in columns}
    for record in records:
        print("  ".join(f"{record[column]!s:<{widths[column]}}" for column in columns).rstrip())
