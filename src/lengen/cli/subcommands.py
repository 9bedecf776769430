"""Commands within a command, each with an example in its help."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # what `add_subparsers` returns has no public name


def add_subcommand(
    commands: "Commands", name: str, about: str, example: str, description: str = ""
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=about,
        description=description or f"{about[0].upper()}{about[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
