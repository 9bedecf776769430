"""List the paper's synthetic arms, each at three scales: smoke (seconds), cpu (minutes), paper (Tables 2–4)."""

import argparse

from lengen.cli.listing import add_json_flag, print_records
from lengen.experiments.presets import PRESETS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen train --preset fig3a-depth3 --scale cpu --out runs/depth3"
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    records = [
        {"name": name, "paper": preset.paper_ref, "runs": preset.num_paper_runs, "about": preset.about}
        for name, preset in PRESETS.items()
    ]
    print_records(records, args.json)
    return 0
