"""The command line: parse, call, print. One file a command; only the chosen one is imported, so help is instant."""

import argparse
import difflib
import importlib
import os
import sys
from typing import NoReturn

from lengen.stopped import Failed, ProcessLost, Stopped

COMMANDS = {
    "demo": "train PPC and its baseline side by side and draw the difference",
    "tasks": "list the tasks",
    "schemes": "list the position schemes",
    "presets": "list the paper's arms and their scales",
    "sample": "show examples of a task with their ids",
    "train": "train a model on short sequences",
    "evaluate": "measure accuracy by length",
    "attention": "how many keys each head attends to, by length",
    "decode": "decode one example step by step against the truth",
    "plot": "draw length curves of one or more runs",
    "plan": "what a run would cost on given devices",
    "reproduce": "run the figures of the paper",
    "figure": "draw the figures of the paper from their rows",
    "claims": "what the paper claims, and what our rows say",
    "results": "write the results page from the rows",
    "corpus": "prepare real text for language models",
    "lm": "train language models on short contexts, measure them on long ones",
    "context": "which past tokens matter to a language model",
    "theory": "check the paper's definitions, theorems and counterexamples",
    "bench": "measure speed as ratios to named peers",
}

EXIT_USAGE = 2


class Parser(argparse.ArgumentParser):
    """Errors are one sentence on standard error and exit 2."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message}; see `{self.prog} --help`", file=sys.stderr)
        sys.exit(EXIT_USAGE)


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    overview = _overview()
    if not arguments or arguments[0] in ("-h", "--help", "--version"):
        overview.parse_args(arguments or ["--help"])
    name, *rest = arguments
    if name not in COMMANDS:
        nearest = difflib.get_close_matches(name, COMMANDS, n=1)
        overview.error(f"unknown command {name!r}" + (f"; did you mean {nearest[0]!r}" if nearest else ""))

    command = importlib.import_module(f"lengen.cli.{name}")
    parser = Parser(
        prog=f"lengen {name}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    try:
        return _run(command, parser, rest)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Stopped as stop:  # everything is saved
        print(f"lengen {name}: {stop}", file=sys.stderr)
        return 128 + stop.signal_number
    except ValueError as error:
        print(f"lengen {name}: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"lengen {name}: error: {where}{error.strerror or error}; check the path and its disk", file=sys.stderr)
        return EXIT_USAGE
    except (Failed, ProcessLost) as error:  # not the command line's fault
        print(f"lengen {name}: error: {error}", file=sys.stderr)
        return 1


def _run(command: object, parser: Parser, rest: list[str]) -> int:
    overrides = None
    if getattr(command, "TAKES_OVERRIDES", False):
        from lengen.cli.overrides import read_dotted_flags

        overrides, rest = read_dotted_flags(rest)  # first: argparse would take their values for positionals
    args, unknown = parser.parse_known_args(rest)
    args.overrides = overrides
    if unknown:
        chosen = _chosen(parser, args)
        known = [option for action in chosen._actions for option in action.option_strings]
        nearest = difflib.get_close_matches(unknown[0], known, n=1)
        chosen.error(f"unknown argument {unknown[0]!r}" + (f"; did you mean {nearest[0]!r}" if nearest else ""))
    code: int = command.run(args)  # type: ignore[attr-defined]
    sys.stdout.flush()
    return code


def _chosen(parser: argparse.ArgumentParser, args: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the command within the command, where there is one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            chosen: argparse.ArgumentParser = action.choices[getattr(args, action.dest)]
            return chosen
    return parser


def _overview() -> Parser:
    from lengen import __version__

    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {about}" for name, about in COMMANDS.items())
    overview = Parser(
        prog="lengen",
        usage="lengen COMMAND ...",
        description="Length generalization of transformers: train on short sequences, work on long ones, know why.",
        epilog=f"commands:\n{lines}\n\nexample:\n  lengen sample parity-scratchpad --length 8\n\n"
        "`lengen COMMAND --help` explains a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    overview.add_argument("--version", action="version", version=f"lengen {__version__}")
    return overview
