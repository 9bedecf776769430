"""Show examples of a task: tokens, coupled ids under them, and a bar where the prompt ends."""

import argparse

from lengen.checks import unknown_name
from lengen.cli.flags import require_at_least
from lengen.cli.listing import add_json_flag, print_records
from lengen.cli.overrides import replace_fields
from lengen.seeding import rng_for
from lengen.tasks import TASKS

TAKES_OVERRIDES = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  lengen sample parity-scratchpad --length 8 --task.jump 2\n"
        "  lengen sample addition --length 3 --json"
    )
    parser.add_argument("task", metavar="TASK", help="see `lengen tasks`")
    parser.add_argument("--length", type=int, required=True, metavar="N", help="the paper's length of each example")
    parser.add_argument("--num-examples", type=int, default=1, metavar="M", help="how many (default 1)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="default 0; the same seed shows the same examples"
    )
    parser.add_argument("--task.SETTING", dest="_", metavar="V", help="a setting of the task, e.g. --task.jump 2")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if args.task not in TASKS:
        raise unknown_name("task", args.task, TASKS)
    require_at_least("--num-examples", args.num_examples, 1)
    stray = [section for section in args.overrides if section != "task"]
    if stray:
        raise ValueError(f"--{stray[0]}.* has no meaning for a sample; only --task.SETTING has")
    task = replace_fields("task", TASKS[args.task](), args.overrides.get("task", {}))
    examples = task.sample(rng_for(args.seed, "sample"), args.num_examples, args.length)
    records = [
        {
            "tokens": task.names_of(tokens),
            "token_ids": tokens.tolist(),
            "coupled_ids": ids.tolist(),
            "prompt_len": examples.prompt_len,
            "length": examples.length,
        }
        for tokens, ids in zip(examples.tokens, examples.coupled_ids, strict=True)
    ]
    if args.json:
        print_records(records, as_json=True)
    else:
        print(
            "\n\n".join(
                _side_by_side(record["tokens"], record["coupled_ids"], examples.prompt_len) for record in records
            )
        )
    return 0


def _side_by_side(tokens: list[str], ids: list[int], prompt_len: int, width: int = 110) -> str:
    """Ids under their tokens, wrapped; a bar stands before the first target."""
    blocks, upper, lower = [], "tokens", "ids   "
    for slot, (token, position_id) in enumerate(zip(tokens, ids, strict=True)):
        cell = max(len(token), len(str(position_id)))
        bar = " |" if slot == prompt_len else ""
        if len(upper) + len(bar) + cell + 1 > width:
            blocks.append(f"{upper}\n{lower}")
            upper, lower = "      ", "      "
        upper += f"{bar} {token:>{cell}}"
        lower += f"{bar} {position_id:>{cell}}"
    return "\n".join([*blocks, f"{upper}\n{lower}"])
