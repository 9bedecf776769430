"""Run a figure of the paper, or an arm of one: what is missing is trained, what is there is skipped (by config hash).

One single-thread process a worker; rows are appended as each run finishes. Stop it at any moment: the same command goes
on where it stopped. A run whose worker dies goes on from its last checkpoint on another.
"""

import argparse
import sys
from pathlib import Path
from typing import get_args

from lengen.cli.flags import require_at_least
from lengen.cli.listing import add_json_flag, print_records
from lengen.experiments.figures import FIGURES
from lengen.scale import known_scale
from lengen.train.engines import EngineName


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  lengen reproduce fig2 --scale smoke --out results/smoke\n"
        "  lengen reproduce fig7-k4 fig7-k6 --out results/cpu   # two arms of Figure 7\n"
        "  lengen reproduce all --scale cpu --workers 2 --out results/cpu\n"
        "  lengen reproduce all --engine ray --address auto --out /shared/results   # on every core of a Ray cluster"
    )
    parser.add_argument(
        "figures", nargs="+", metavar="FIGURE", help=f"{', '.join(FIGURES)}, all, or an arm's preset (fig7-k4)"
    )
    parser.add_argument("--scale", default="cpu", metavar="SCALE", help="smoke, cpu (default) or paper")
    parser.add_argument("--seeds", type=int, metavar="N", help="runs an arm; default: the figure's own number")
    parser.add_argument("--workers", type=int, default=2, metavar="W", help="processes side by side (default 2)")
    parser.add_argument(
        "--engine", choices=get_args(EngineName), default="local", help="processes here (default), or Ray workers"
    )
    parser.add_argument("--address", metavar="A", help="of a Ray cluster: HOST:PORT or auto; default: start one here")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="e.g. results/cpu")
    parser.add_argument(
        "--dry-run", action="store_true", help="list the missing runs with their core-hours; train none"
    )
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    scale = known_scale(args.scale)
    require_at_least("--workers", args.workers, 1)
    if args.seeds is not None:
        require_at_least("--seeds", args.seeds, 1)
    if args.address is not None and args.engine != "ray":
        raise ValueError(f"--address {args.address} is a Ray cluster's; add --engine ray")

    from lengen.experiments.reproduce import core_hours_of, plan, reproduce

    out = args.out.resolve()  # workers elsewhere have another working directory
    jobs = plan(args.figures, scale, args.seeds, out)
    if not args.dry_run:
        left_alone = reproduce(jobs, args.workers, out, args.engine, args.address)
        for job in left_alone:
            print(f"{job.label}: left alone, another process is training it", file=sys.stderr)
        jobs = [job for job in jobs if job not in left_alone]
    hours = core_hours_of(jobs)
    records = [
        {
            "figure": job.figure,
            "preset": job.preset,
            "seed": job.config.seed,
            "steps": job.config.steps,
            "core_hours": round(core_hours, 3),
        }
        for job, core_hours in zip(jobs, hours, strict=True)
    ]
    print_records(records, args.json)
    if not args.json and args.dry_run:
        print(f"{len(jobs)} runs to do, about {sum(hours):.1f} core-hours")
    elif not args.json:
        print(f"{len(jobs)} runs done")
    return 0
