"""Decode one example step by step: the predicted token and id against the truth."""

import argparse
from pathlib import Path

from lengen.cli.listing import add_json_flag, to_json
from lengen.results import RunFolder

TAKES_OVERRIDES = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  lengen decode runs/ppc --length 60 --seed 7"
    parser.add_argument("folder", type=Path, metavar="DIR", help="a run's folder")
    parser.add_argument("--length", type=int, required=True, metavar="N", help="the paper's length of the example")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the example (default 0)")
    parser.add_argument("--task.SETTING", dest="_", metavar="V", help="e.g. --task.k_test 8")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    folder = RunFolder(args.folder)
    folder.read_run()

    from lengen.batch import sample_batch
    from lengen.cli.trained import load_with_overrides
    from lengen.decode import Prompts, greedy_decode
    from lengen.runtime import prepare_torch
    from lengen.seeding import rng_for

    prepare_torch(num_threads=1)
    tested = load_with_overrides(folder, args.overrides)
    tested.check_length(args.length)
    batch = sample_batch(tested.task, tested.scheme, rng_for(args.seed, "decode"), 1, args.length, training=False)
    decoded = greedy_decode(tested.decoder, Prompts.of(batch), batch.target_ids)

    predicts_ids = tested.scheme.assigner.predicts_ids
    names = tested.task.vocabulary
    steps = []
    for step in range(batch.target_tokens.shape[1]):
        token, true_token = int(decoded.token_ids[0, step]), int(batch.target_tokens[0, step])
        position_id, true_id = int(decoded.position_ids[0, step]), int(batch.target_ids[0, step])
        steps.append(
            {
                "slot": batch.prompt_len + step,
                "token": names[token],
                "true_token": names[true_token],
                "position_id": position_id,
                "true_position_id": true_id,
                "right": token == true_token and position_id == true_id,
            }
        )
    if args.json:
        for record in steps:
            print(to_json(record))
        return 0
    print("prompt:", " ".join(tested.task.names_of(batch.token_ids[0, : batch.prompt_len].tolist())))
    print(
        f"{'slot':>5}  {'token':>7} {'truth':>7}   {'id':>5} {'truth':>6}"
        + ("" if predicts_ids else "  (ids are given)")
    )
    for record in steps:
        mark = "" if record["right"] else "  <- wrong"
        print(
            f"{record['slot']:>5}  {record['token']:>7} {record['true_token']:>7}   "
            f"{record['position_id']:>5} {record['true_position_id']:>6}{mark}"
        )
    num_right = sum(bool(record["right"]) for record in steps)
    print(f"{num_right} of {len(steps)} steps right")
    return 0
