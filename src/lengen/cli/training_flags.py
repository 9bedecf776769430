"""The flags that every training command has, and what they ask of this process."""

import argparse
from pathlib import Path


def add_training_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run's folder")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint; alone, with its config")
    parser.add_argument("--overwrite", action="store_true", help="replace the run in DIR")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of this process (default 1)")
    parser.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default) or cuda")
    parser.add_argument(
        "--sharding",
        choices=("none", "full"),
        default="none",
        help="of the model over the processes of torchrun: a copy each (DDP, default), or a slice each (FSDP2)",
    )


def set_up_torch(args: argparse.Namespace) -> None:
    import torch

    from lengen.runtime import prepare_torch

    if args.device != "cpu" and not (args.device == "cuda" and torch.cuda.is_available()):
        raise ValueError(f"--device {args.device} is not available here; use cpu")
    prepare_torch(args.threads)
