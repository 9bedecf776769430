"""List the position schemes. Any assigner goes with any encoder: --scheme predicted+fire is one flag."""

import argparse

from lengen.cli.listing import add_json_flag, print_records
from lengen.cli.overrides import settings_of
from lengen.positions import ASSIGNERS, ENCODERS, SCHEMES, Assigner, EncoderSettings


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen schemes"
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    sections = {
        "scheme": [
            {"kind": "scheme", "name": name, "pair": entry.scheme.name, "about": entry.about}
            for name, entry in SCHEMES.items()
        ],
        "assigner": [_part("assigner", assigner) for assigner in ASSIGNERS.values()],
        "encoder": [_part("encoder", encoder) for encoder in ENCODERS.values()],
    }
    for index, records in enumerate(sections.values()):
        if index and not args.json:
            print()
        print_records(records, args.json)
    return 0


def _part(kind: str, part: type[Assigner] | type[EncoderSettings]) -> dict[str, str]:
    return {"kind": kind, "name": part.name, "about": part.about, "settings": settings_of(part)}
