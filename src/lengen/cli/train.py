"""Train a model on short sequences; measure it, at the last step, on long ones.

The output folder holds run.json (config, versions, commit, seed, wall time), rows.jsonl (accuracy by length),
metrics.jsonl, TensorBoard events and the checkpoint. Ctrl-C saves; --resume goes on bit for bit.

Under torchrun, one model is trained by many processes (gloo on CPUs, nccl on GPUs) with the results of one, and can be
resumed by another number of them; all need to see DIR.
"""

import argparse
import sys
from dataclasses import replace
from typing import Any

from lengen.checks import unknown_name
from lengen.cli.flags import require_at_least
from lengen.cli.listing import add_json_flag
from lengen.cli.overrides import add_run_flags, apply_overrides, run_flags
from lengen.cli.training_flags import add_training_flags, set_up_torch
from lengen.config import RunConfig, config_from_dict
from lengen.positions import scheme_named
from lengen.results import RunFolder
from lengen.tasks import TASKS

TAKES_OVERRIDES = True


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  lengen train parity-scratchpad --scheme ppc --out runs/ppc --steps 1000\n"
        "  lengen train variable-assignment --task.depth 3 --scheme predicted+fire --model.width 64 --out runs/fire\n"
        "  lengen train --preset fig2-jump1 --scale cpu --seed 3 --out runs/fig2-jump1-s3\n"
        "  lengen train --resume --out runs/ppc\n"
        "  torchrun --nproc-per-node 2 -m lengen train --preset fig2-jump1 --sharding full --out runs/two"
    )
    parser.add_argument("task", nargs="?", metavar="TASK", help="see `lengen tasks`; not with --preset")
    parser.add_argument("--scheme", metavar="SCHEME", help="see `lengen schemes`, or a pair such as predicted+fire")
    parser.add_argument("--preset", metavar="NAME", help="an arm of the paper; see `lengen presets`")
    parser.add_argument("--scale", metavar="SCALE", help="of the preset: smoke, cpu (default) or paper")
    add_training_flags(parser)
    for section, example in (
        ("task", "depth 3"),
        ("model", "width 64"),
        ("assigner", "max_position_id 210"),
        ("encoder", "base 1e6"),
    ):
        parser.add_argument(f"--{section}.SETTING", dest="_", metavar="V", help=f"e.g. --{section}.{example}")
    add_run_flags(parser)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    config = resolve_config(args)
    folder = RunFolder(args.out)
    require_at_least("--threads", args.threads, 1)

    from lengen.cli.curves import print_curve
    from lengen.train.distributed import join_processes
    from lengen.train.loop import train

    set_up_torch(args)
    with join_processes(args.device) as processes:
        outcome = train(
            config,
            folder,
            resume=args.resume,
            overwrite=args.overwrite,
            processes=processes,
            sharding=args.sharding,
        )
    if outcome.signal_number is not None:
        return 128 + outcome.signal_number
    if not processes.is_first:
        return 0
    if not args.json:
        print(f"{folder.path}: {outcome.step} steps done", file=sys.stderr)
    print_curve(folder.latest_rows(overrides={}), args.json)
    return 0


def resolve_config(args: argparse.Namespace) -> RunConfig:
    """Task and scheme, or a preset, or the run being resumed; then what the flags say otherwise."""
    flat = run_flags(args)
    if args.scale is not None and args.preset is None:
        raise ValueError(f"--scale {args.scale} is a preset's; add --preset or drop it")
    if args.preset is not None:
        if args.task is not None:
            raise ValueError(f"a preset has its task already; drop {args.task!r} or --preset {args.preset}")
        from lengen.experiments.presets import preset_config

        base = preset_config(args.preset, args.scale or "cpu")
        if args.scheme is not None:
            base = replace(base, scheme=scheme_named(args.scheme))
    elif args.task is not None:
        if args.task not in TASKS:
            raise unknown_name("task", args.task, TASKS)
        if args.scheme is None:
            raise ValueError("which scheme? add --scheme, e.g. --scheme ppc; `lengen schemes` lists them")
        return config_for(args.task, scheme_named(args.scheme), args.overrides, flat)
    elif args.resume:
        if args.scheme is not None:
            raise ValueError(f"the run in {args.out} has its scheme already; drop --scheme {args.scheme}")
        base = config_from_dict(RunFolder(args.out).read_run()["config"])
    else:
        raise ValueError("nothing to train: give a TASK and --scheme, a --preset, or --resume")
    return apply_overrides(base, args.overrides, flat)


def config_for(task_name: str, scheme: Any, overrides: dict[str, dict[str, str]], flat: dict[str, Any]) -> RunConfig:
    """A run of a task by name. Its default lengths are those of the paper where there are any."""
    from lengen.experiments.presets import default_config

    return apply_overrides(default_config(task_name, scheme), overrides, flat)
