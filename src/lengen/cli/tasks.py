"""List the tasks: name, what length means, and the settings with their defaults (set them with --task.SETTING)."""

import argparse

from lengen.cli.listing import add_json_flag, print_records
from lengen.cli.overrides import settings_of
from lengen.tasks import TASKS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen tasks --json"
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    records = [
        {"name": name, "settings": settings_of(task), "length": task.length_rule} for name, task in TASKS.items()
    ]
    print_records(records, args.json)
    return 0
