"""Language models of Sec. 5.3: train on short contexts, measure perplexity on long ones.

`train` takes a prepared corpus (`lengen corpus prepare`). Ctrl-C saves; --resume goes on bit for bit; under torchrun
one model is trained by many processes. Runs that differ only in their last phase share the first: --from RUN.
`evaluate` measures the same target tokens from contexts of each length, and adds rows to a file.
"""

import argparse
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lengen.cli.flags import require_at_least
from lengen.cli.listing import add_json_flag, print_records
from lengen.cli.overrides import add_run_flags, parse_lengths, replace_fields, run_flags
from lengen.cli.subcommands import add_subcommand
from lengen.cli.tracking import tracked
from lengen.cli.training_flags import add_training_flags, set_up_torch
from lengen.language.config import LanguageConfig
from lengen.language.presets import LANGUAGE_PRESETS

if TYPE_CHECKING:
    from lengen.language.packed import PackedCorpus

TAKES_OVERRIDES = True
BOTH_PHASES = ("base", "rotary_fraction")  # of the encoder: what a model is made with; interpolation may come later


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  lengen lm train --preset short --scale cpu --corpus corpora/english --out runs/short\n"
        "  lengen lm train --preset short-no-pose --corpus corpora/english --from runs/short --out runs/no-pose\n"
        "  lengen lm evaluate runs/short runs/no-pose --lengths 64,128 --out results/cpu/table1.jsonl\n"
        "  lengen lm evaluate runs/no-pose --encoder.interpolation ntk --encoder.factor 2 --out rows.jsonl\n"
        "  torchrun --nproc-per-node 8 -m lengen lm train --preset short --scale paper --sharding full ..."
    )
    actions = parser.add_subparsers(dest="action", metavar="{train,evaluate,presets}", required=True)
    train = "lengen lm train --preset short --scale cpu --corpus corpora/english --out runs/short"
    _configure_train(add_subcommand(actions, "train", "train a model", train))
    evaluate = "lengen lm evaluate runs/short --lengths 64,128 --out rows.jsonl"
    _configure_evaluate(add_subcommand(actions, "evaluate", "perplexity by context length", evaluate))
    add_json_flag(add_subcommand(actions, "presets", "the arms", "lengen lm presets"))


def _configure_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", metavar="NAME", help="see `lengen lm presets`")
    parser.add_argument("--scale", metavar="SCALE", help="of the preset: smoke, cpu (default) or paper (Table 5)")
    parser.add_argument("--corpus", type=Path, required=True, metavar="DIR", help="of `lengen corpus prepare`")
    parser.add_argument("--from", dest="start_from", type=Path, metavar="RUN", help="a run with the same first phase")
    add_training_flags(parser)
    for section, example in (("model", "width 128"), ("assigner", "num_chunks 3"), ("encoder", "base 1e6")):
        parser.add_argument(f"--{section}.SETTING", dest="_", metavar="V", help=f"e.g. --{section}.{example}")
    add_run_flags(parser, LanguageConfig, needs_preset=True)
    add_json_flag(parser)


def _configure_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of `lengen lm train`")
    parser.add_argument("--lengths", default="64,128,256,512", metavar="LENGTHS", help="of context (default 64,…,512)")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="default: the one trained on")
    parser.add_argument("--split", choices=("valid", "test"), default="test", help="default test")
    parser.add_argument("--num-documents", type=int, default=256, metavar="N", help="at most (default 256)")
    parser.add_argument("--targets-per-document", type=int, default=32, metavar="N", help="at most (default 32)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of documents and targets (default 0)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON lines are added to it")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of this process (default 1)")
    parser.add_argument("--encoder.SETTING", dest="_", metavar="V", help="e.g. --encoder.interpolation yarn")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if args.action == "presets":
        records = [{"name": name, "about": preset.about} for name, preset in LANGUAGE_PRESETS.items()]
        print_records(records, args.json)
        return 0
    require_at_least("--threads", args.threads, 1)
    return _train(args) if args.action == "train" else _evaluate(args)


def _train(args: argparse.Namespace) -> int:
    from lengen.language.packed import PackedCorpus

    corpus = PackedCorpus.open(args.corpus)
    config = resolve_config(args, corpus)

    from lengen.language.training import train_language
    from lengen.results import RunFolder
    from lengen.train.distributed import join_processes

    set_up_torch(args)
    folder = RunFolder(args.out)
    with join_processes(args.device) as processes:
        if processes.is_first:
            print(estimate(config), file=sys.stderr)
        outcome = train_language(
            config,
            corpus,
            folder,
            start_from=args.start_from,
            resume=args.resume,
            overwrite=args.overwrite,
            processes=processes,
            sharding=args.sharding,
        )
    if outcome.signal_number is not None:
        return 128 + outcome.signal_number
    if processes.is_first:
        record = folder.read_run()
        print_records([{name: record[name] for name in ("run", "step", "wall_seconds")}], args.json)
    return 0


def resolve_config(args: argparse.Namespace, corpus: "PackedCorpus") -> LanguageConfig:
    """A preset, or the run being resumed; then what the flags say otherwise."""
    from lengen.language.config import config_from_dict
    from lengen.language.presets import language_preset
    from lengen.results import RunFolder

    if args.preset is not None:
        config = language_preset(args.preset, args.scale or "cpu", corpus.stamp)
    elif args.resume:
        if args.scale is not None:
            raise ValueError(f"--scale {args.scale} is that of a --preset, and --resume has the run's own; drop it")
        config = config_from_dict(RunFolder(args.out).read_run()["config"])
    else:
        raise ValueError("nothing to train: give a --preset (see `lengen lm presets`) or --resume")
    if "task" in args.overrides:
        raise ValueError("--task.* has no meaning for text; drop it")
    encoder = args.overrides.get("encoder", {})
    in_both = {name: text for name, text in encoder.items() if name in BOTH_PHASES}
    first_scheme = replace(config.first_scheme, encoder=replace_fields("encoder", config.first_scheme.encoder, in_both))
    scheme = replace(
        config.scheme,
        assigner=replace_fields("assigner", config.scheme.assigner, args.overrides.get("assigner", {})),
        encoder=replace_fields("encoder", config.scheme.encoder, encoder),
    )
    model = replace_fields("model", config.model, args.overrides.get("model", {}))
    return replace(config, first_scheme=first_scheme, scheme=scheme, model=model, **run_flags(args, LanguageConfig))


def estimate(config: LanguageConfig) -> str:
    """What the run is going to take on one core, in a line."""
    from lengen.language.cost import workload_of
    from lengen.train.cost import CPU_CORE, cost_of

    workload = workload_of(config)
    cost = cost_of(workload, CPU_CORE)
    tokens = config.steps * config.batch_size * config.context
    return (
        f"{cost.parameters / 1e6:.1f} million parameters, {tokens / 1e6:.1f} million tokens; "
        f"about {cost.hours:.1f} hours on one core"
    )


def _evaluate(args: argparse.Namespace) -> int:
    from lengen.evaluate.intervals import over_documents
    from lengen.language.config import config_from_dict
    from lengen.language.evaluation import Request, evaluate_run
    from lengen.results import RunFolder
    from lengen.results.perplexity import append_perplexity_rows
    from lengen.runtime import prepare_torch

    request = Request(parse_lengths(args.lengths), args.split, args.num_documents, args.targets_per_document, args.seed)
    if set(args.overrides) - {"encoder"}:
        raise ValueError("only --encoder.* can differ from training; drop the others")
    if not args.out.parent.is_dir():
        raise ValueError(f"there is no folder {args.out.parent} for --out; make it first")
    if args.out.is_dir():
        raise ValueError(f"--out {args.out} is a folder; give a file in it, e.g. {args.out / 'rows.jsonl'}")
    prepare_torch(args.threads)
    encoders = {  # of all runs, before any is measured: one that is none is told at once
        folder: replace_fields(
            "encoder",
            config_from_dict(folder.read_run()["config"]).scheme.encoder,
            args.overrides.get("encoder", {}),
        )
        for folder in map(RunFolder, args.runs)
    }
    for folder, encoder in encoders.items():
        rows = evaluate_run(
            folder,
            request,
            args.corpus,
            encoder,
            say=lambda message: print(message, file=sys.stderr, flush=True),
            tracked=partial(tracked, doing=f"evaluating {folder.path.name}"),
        )
        append_perplexity_rows(args.out, rows)
        records = []
        for row in rows:
            _, low, high = map(math.exp, over_documents(row.losses, row.counts))
            numbers = {"perplexity": round(row.perplexity, 2), "low": round(low, 2), "high": round(high, 2)}
            records.append({"arm": row.label, "run": row.run, "measure": row.measure, "length": row.length} | numbers)
        print_records(records, args.json)
    return 0
