"""Printing a catalogue: aligned lines for a person, one JSON object a line for a program."""

import argparse
import json
from collections.abc import Sequence
from typing import Any


def add_json_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def print_records(records: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Each record's values in columns; lists and empty values are left to the JSON form."""
    if as_json:
        for record in records:
            print(json.dumps(record, ensure_ascii=False))
        return
    columns = list(records[0]) if records else []
    widths = {column: max(len(str(record[column])) for record in records) for column in columns}
    for record in records:
        print("  ".join(f"{record[column]!s:<{widths[column]}}" for column in columns).rstrip())
