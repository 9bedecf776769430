"""How many keys each head attends to, by length: does attention stay sparse where a model has never been?

Shown is the exp of the entropy of a head's weights (n equal keys count as n), on average over the slots that predict.
Growth is the slope from the first length to the last on logarithmic axes: 0 for a head that stays with its keys, 1 for
one that spreads over all there are.
"""

import argparse
import math
from pathlib import Path

from lengen.cli.flags import require_at_least
from lengen.cli.listing import add_json_flag, to_json
from lengen.cli.overrides import parse_lengths
from lengen.cli.tracking import tracked
from lengen.results import RunFolder

TAKES_OVERRIDES = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen attention runs/sparse --lengths 50,100,200,500"
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run's folder")
    parser.add_argument("--lengths", required=True, metavar="LENGTHS", help="50,500 or 20:200:20 (inclusive)")
    parser.add_argument("--num-examples", type=int, default=32, metavar="N", help="for each length (default 32)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the examples (default 1)")
    parser.add_argument("--task.SETTING", dest="_", metavar="V", help="e.g. --task.k_test 8")
    parser.add_argument("--model.SETTING", dest="_", metavar="V", help="sharpness or sharpen_from, of attention")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    lengths = sorted(set(parse_lengths(args.lengths)))
    require_at_least("--num-examples", args.num_examples, 1)
    folder = RunFolder(args.folder)
    folder.read_run()

    from lengen.cli.trained import load_with_overrides
    from lengen.evaluate.attention_spread import attention_spread
    from lengen.runtime import prepare_torch

    prepare_torch(num_threads=1)
    tested = load_with_overrides(folder, args.overrides)
    for length in lengths:
        tested.check_length(length)
    spread = {
        length: attention_spread(tested.decoder, tested.task, length, args.num_examples, args.seed)
        for length in tracked(lengths, "looking at attention")
    }
    if not args.json:
        print("layer  head  " + "  ".join(f"{length:>7}" for length in lengths) + ("   growth" * (len(lengths) > 1)))
    for layer in range(tested.decoder.config.num_layers):
        for head in range(tested.decoder.config.num_heads):
            keys = {length: float(spread[length][layer, head]) for length in lengths}
            _print(layer + 1, head + 1, keys, args.json)
    return 0


def _print(layer: int, head: int, keys: dict[int, float], as_json: bool) -> None:
    first, last = min(keys), max(keys)
    growth = math.log(keys[last] / keys[first]) / math.log(last / first) if last > first else None
    if as_json:
        print(to_json({"layer": layer, "head": head, "effective_keys": keys, "growth": growth}))
        return
    cells = "  ".join(f"{number:>7.1f}" for number in keys.values())
    print(f"{layer:>5}  {head:>4}  {cells}" + ("" if growth is None else f"   {growth:>6.2f}"))
