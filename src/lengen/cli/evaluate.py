"""Measure accuracy by length on fresh examples; the rows are added to the run's rows.jsonl.

One forward pass settles every example that is right throughout, which equals decoding it; the others are decoded.
With --decode every example is. Settings that hold no weights can differ from training, e.g. --task.k_test 8.
"""

import argparse
from pathlib import Path

from lengen.cli.flags import require_at_least
from lengen.cli.listing import add_json_flag
from lengen.cli.overrides import parse_lengths
from lengen.cli.tracking import tracked
from lengen.results import METRICS, Mode, Row, RunFolder

TAKES_OVERRIDES = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  lengen evaluate runs/ppc --lengths 20:200:20\n"
        "  lengen evaluate runs/sparse --lengths 50:500:50 --task.k_test 4 --json\n"
        "  lengen evaluate runs/ppc --lengths 200 --model.sharpness 2   # better? attention was too weak"
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run's folder")
    parser.add_argument("--lengths", required=True, metavar="LENGTHS", help="20:200:20 (inclusive) or 10,20,40")
    parser.add_argument("--num-examples", type=int, default=192, metavar="N", help="for each length (default 192)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the examples (default 1)")
    parser.add_argument("--metric", choices=METRICS, help="only this one")
    parser.add_argument("--decode", action="store_true", help="generate every example for real")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of this process (default 1)")
    parser.add_argument("--task.SETTING", dest="_", metavar="V", help="e.g. --task.k_test 8")
    parser.add_argument("--encoder.SETTING", dest="_", metavar="V", help="e.g. --encoder.interpolation yarn")
    parser.add_argument("--model.SETTING", dest="_", metavar="V", help="sharpness or sharpen_from, of attention")
    parser.add_argument("--assigner.SETTING", dest="_", metavar="V", help="e.g. --assigner.test_offset random")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    lengths = parse_lengths(args.lengths)
    require_at_least("--num-examples", args.num_examples, 1)
    require_at_least("--threads", args.threads, 1)
    folder = RunFolder(args.folder)
    folder.read_run()
    folder.create()

    from lengen.cli.curves import print_curve
    from lengen.cli.trained import load_with_overrides
    from lengen.evaluate.length_curve import length_curve
    from lengen.runtime import prepare_torch

    prepare_torch(args.threads)
    tested = load_with_overrides(folder, args.overrides)
    for length in lengths:
        tested.check_length(length)
    if args.metric == "joint" and not tested.scheme.assigner.predicts_ids:
        raise ValueError(f"--metric joint needs a scheme that predicts ids, and {tested.scheme.name} does not; drop it")
    mode: Mode = "decode" if args.decode else "one-pass"
    run_id, step = tested.progress.run, tested.progress.step
    rows: list[Row] = []
    for length in tracked(lengths, "evaluating"):
        curve = length_curve(tested.decoder, tested.task, [length], args.num_examples, args.seed, mode, args.metric)
        new = [
            Row(run_id, step, m.length, m.metric, m.correct, m.total, args.seed, mode, tested.overrides) for m in curve
        ]
        folder.append_rows(new)
        rows += new
        if args.json:
            print_curve(new, as_json=True)
    if not args.json:
        print_curve(rows, as_json=False)
    return 0
