"""Which past tokens matter to a language model: is its dependence on the far past sparse (Sec. 5.3)?

`analyze` measures, `show` highlights the influential tokens of one example, `copies` tells which examples gain, and
`figure` draws. Any causal model that `transformers` loads from disk will do, and ours.
"""

import argparse
import math
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengen.cli.flags import require_at_least
from lengen.cli.listing import add_json_flag, print_records, to_json
from lengen.cli.subcommands import add_subcommand
from lengen.results.context import counted

if TYPE_CHECKING:
    from lengen.context.window import Window
    from lengen.results.context import Analysis

NUM_GREEDY = 20
_EXAMPLES = """examples:
  lengen context analyze --model models/smollm2 --text speeches.txt --out analyses/speeches
  lengen context show analyses/speeches --example 3 --html example3.html
  lengen context copies analyses/speeches
  lengen context figure analyses/speeches --out speeches.png
"""
_STOOD = {"far": "among the far tokens alone", "recent": "among the recent ones", "nowhere": "nowhere in the window"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_subparsers(dest="context_command", metavar="COMMAND", required=True)
    _configure_analyze(
        add_subcommand(
            commands,
            "analyze",
            "measure leave-one-out influence and the losses of Sec. 5.3",
            "lengen context analyze --model MODEL --text FILE --num-examples 100 --out DIR --json",
            "Measure, for examples of a text, how much a few influential far tokens recover of what all of them\n"
            "give. An interrupted analysis goes on where it was when the command is given again.",
        )
    )
    show = add_subcommand(
        commands,
        "show",
        "the text of one example with its influential tokens highlighted",
        "lengen context show DIR --example 3 --html example3.html",
    )
    show.add_argument("folder", type=Path, metavar="DIR", help="the --out of an analysis")
    show.add_argument("--example", type=int, default=0, metavar="N", help="which one (default 0, the first)")
    show.add_argument("--html", type=Path, metavar="FILE", help="write a page instead of printing")
    _add_sources(show)
    show.add_argument("--overwrite", action="store_true", help="replace a page that is there")

    copies = add_subcommand(
        commands,
        "copies",
        "who gains from far tokens: words that stood among them before, or others",
        "lengen context copies DIR",
        "Examples by where the token to be predicted stood before: what all far tokens give to them\n"
        "(L_short − L_long), their share of all that is gained, and what the few influential ones give.",
    )
    copies.add_argument("folder", type=Path, metavar="DIR", help="the --out of an analysis")
    _add_sources(copies)
    add_json_flag(copies)

    figure = add_subcommand(
        commands,
        "figure",
        "draw Figures 4 and 6 and the curves from rows; no torch needed",
        "lengen context figure results/cpu/context/*.jsonl --out context.png",
        "A row for each analysis: a scatter like Figures 4 and 6, the random control, loss against k.",
    )
    figure.add_argument(
        "analyses", nargs="*", type=Path, metavar="DIR", help="analyses: folders, or their files of rows"
    )
    figure.add_argument("--masks", action="store_true", help="draw Figure 5, which needs no analysis")
    figure.add_argument("--out", type=Path, required=True, metavar="FILE", help=".png, .pdf or .svg")
    figure.add_argument("--overwrite", action="store_true", help="replace a figure that is there")


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", type=Path, metavar="PATH", help="where the model is now, if it was moved")
    parser.add_argument("--text", type=Path, metavar="FILE", help="where the text is now, if it was moved")


def _configure_analyze(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="PATH",
        help="a Hugging Face folder, a .gguf file, or a run of ours",
    )
    parser.add_argument(
        "--text", type=Path, required=True, metavar="PATH", help="a UTF-8 file, or a prepared corpus folder"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the rows go")
    parser.add_argument(
        "--select-with", type=Path, metavar="PATH", help="another model chooses the tokens (Fig. 6b, c)"
    )
    parser.add_argument("--short", type=int, default=64, metavar="L", help="recent tokens, always seen (default 64)")
    parser.add_argument("--long", type=int, default=128, metavar="L_BAR", help="tokens of an example (default 128)")
    parser.add_argument("--num-influential", type=int, default=5, metavar="K", help="far tokens unmasked (default 5)")
    parser.add_argument(
        "--num-examples", type=int, default=1000, metavar="N", help="predicted tokens of the text (default 1000)"
    )
    parser.add_argument(
        "--num-greedy",
        type=int,
        metavar="N",
        help="greedy forward selection for the first N examples (default about 20): it costs K passes a far token",
    )
    parser.add_argument(
        "--num-targets",
        type=int,
        default=1,
        metavar="M",
        help="examples of each window of text (default 1): the M − 1 tokens after the first predicted one are "
        "predicted, too; their influences cost no more, but their curves do (--curve none)",
    )
    parser.add_argument(
        "--curve",
        choices=("some", "full", "none"),
        default="some",
        help="unmask 1, 2, 5, 10, … far tokens (default), every number, or only K and all",
    )
    parser.add_argument(
        "--max-batch-tokens", type=int, default=2048, metavar="N", help="bounds memory; in one batch (default 2048)"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of this process (default 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the windows and random tokens (default 0)")
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    commands = {"analyze": _analyze, "show": _show, "copies": _copies, "figure": _figure}
    return commands[args.context_command](args)


def _analyze(args: argparse.Namespace) -> int:
    from lengen.context.window import Window
    from lengen.results import RunFolder

    for flag, least in (
        ("num_influential", 1),
        ("num_targets", 1),
        ("num_examples", 2 * args.num_targets),
        ("max_batch_tokens", 1),
        ("threads", 1),
    ):
        require_at_least(f"--{flag.replace('_', '-')}", getattr(args, flag), least)
    window = Window(args.short, args.long, args.num_targets)
    if args.num_influential > window.num_far:
        raise ValueError(
            f"--num-influential {args.num_influential} is more than the {window.num_far} far tokens of "
            f"--short {args.short} --long {args.long}; use at most {window.num_far}"
        )
    window.num_windows("--num-examples", args.num_examples)  # refuses a part of one
    num_greedy = min(_num_greedy(args.num_greedy, window), args.num_examples)
    from lengen.context.text import read_text

    text = read_text(args.text)

    import torch
    from rich.console import Console
    from rich.progress import Progress

    from lengen import __version__
    from lengen.context.analysis import analyze
    from lengen.context.identity import tokens_digest, weights_digest
    from lengen.context.loading import load_model
    from lengen.context.probe import check_method
    from lengen.context.selection import curve_points
    from lengen.context.sources import Sources
    from lengen.context.summary import summarize
    from lengen.context.text import draw_examples, encode
    from lengen.results.context import ContextSettings, read_analysis
    from lengen.runtime import prepare_torch
    from lengen.train.record import source_commit

    prepare_torch(args.threads)
    loaded = load_model(args.model)
    selector = loaded if args.select_with is None else load_model(args.select_with)
    for model in dict.fromkeys((loaded.model, selector.model)):
        check_method(model, window)
    tokens = encode(loaded.tokenizer, text)
    if selector is not loaded and encode(selector.tokenizer, text) != tokens:
        raise ValueError(
            f"--select-with {selector.model.name} cuts this text into other tokens than {loaded.model.name}; "
            "choose two models with one tokenizer"
        )
    examples = draw_examples(tokens, text.name, window, args.num_examples, args.seed)
    settings = ContextSettings(
        loaded.model.name,
        selector.model.name,
        text.name,
        text.sha256,
        args.short,
        args.long,
        args.num_influential,
        args.num_examples,
        num_greedy,
        curve_points(window.num_far, args.num_influential, args.curve),
        args.seed,
        args.num_targets,
    )
    digests = {
        "model": (digest := weights_digest(loaded.model.module)),
        "select_with": digest if selector is loaded else weights_digest(selector.model.module),
        "tokens": tokens_digest(tokens),
    }
    RunFolder(args.out).create()
    rows_file = args.out / "rows.jsonl"
    provenance = {"version": __version__, "commit": source_commit() or "", "torch": torch.__version__}
    counts = analyze(
        loaded.model, selector.model, examples, settings, args.max_batch_tokens, rows_file, digests, provenance
    )
    num_before = next(counts)  # the analysis in --out, if there is one, is this one
    Sources(str(args.model.resolve()), str(args.text.resolve())).write(args.out)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("examples", total=args.num_examples)
        progress.update(task, completed=num_before)
        for before, num_done in pairwise(chain([num_before], counts)):
            progress.update(task, completed=num_done)
            if not console.is_terminal and (num_done // 20 > before // 20 or num_done == args.num_examples):
                console.print(f"{num_done}/{args.num_examples} examples", highlight=False)
    for record in summarize(read_analysis(args.out)):
        print(to_json(record) if args.json else _line(record))
    return 0


def _num_greedy(asked: int | None, window: "Window") -> int:
    """How many examples get a greedy selection, by whole windows."""
    if asked is None:
        return NUM_GREEDY - NUM_GREEDY % window.num_targets
    require_at_least("--num-greedy", asked, 0)
    return window.num_windows("--num-greedy", asked) * window.num_targets


def _line(record: dict[str, Any]) -> str:
    parts = [f"{record['num_influential']} by {record['order']:<9}"]
    for name in ("correlation", "slope", "recovered"):
        parts.append(f"{name} {record[name]:6.3f} [{record[f'{name}_low']:.3f}, {record[f'{name}_high']:.3f}]")
    return "  ".join([*parts, counted(record["num_examples"], record["num_windows"])])


def _show(args: argparse.Namespace) -> int:
    from lengen.context.show import page_of, pieces_of, print_pieces
    from lengen.results import refuse_to_replace, write_atomically
    from lengen.results.context import read_analysis

    analysis = read_analysis(args.folder)
    by_number = {row.example: row for row in analysis.rows}
    if args.example not in by_number:
        raise ValueError(f"--example {args.example} is not in {args.folder}; it has {len(by_number)} examples, from 0")
    if args.html is not None and not args.overwrite:
        refuse_to_replace(args.html, "--html")
    row = by_number[args.example]
    pieces = pieces_of(analysis, row, args.folder, args.model, args.text)
    if args.html is None:
        print_pieces(analysis.settings, row, pieces)
    else:
        write_atomically(args.html, page_of(analysis.settings, row, pieces).encode())
        print(args.html)
    return 0


def _copies(args: argparse.Namespace) -> int:
    from lengen.context.copies import gains_by_place, places_of
    from lengen.context.reread import read_again
    from lengen.results.context import read_analysis

    analysis = read_analysis(args.folder)
    encodings = read_again(analysis, args.folder, args.model, args.text).encodings
    records = gains_by_place(analysis, places_of(analysis, [encoding.ids for encoding in encodings]))
    if not args.json:
        print(f"{analysis.counted()}; nats, 95 % bootstrap")
        records = [_in_words(record, analysis) for record in records]
    print_records(records, args.json)
    return 0


def _in_words(record: dict[str, Any], analysis: "Analysis") -> dict[str, str]:
    from lengen.evaluate.intervals import Interval
    from lengen.experiments.wording import with_interval

    def bounds(name: str) -> str:
        interval = Interval(*(record[key] for key in (name, f"{name}_low", f"{name}_high")))
        return with_interval(interval) if math.isfinite(interval.value) else "–"

    return {
        "the predicted token stood": _STOOD[record["place"]],
        "examples": f"{record['num_examples']} ({record['num_examples'] / len(analysis.rows):.0%})",
        "gain from far tokens": bounds("gain"),
        "share of all gain": bounds("share_of_gain"),
        f"gain from {analysis.settings.num_influential} influential": bounds("gain_of_influential"),
    }


def _figure(args: argparse.Namespace) -> int:
    from lengen.figures.context import draw_analyses, draw_masks
    from lengen.figures.length_curves import save_figure
    from lengen.results.context import read_analysis

    if args.masks == bool(args.analyses):
        raise ValueError("give analyses to draw, or --masks for Figure 5; not both and not neither")
    figure = draw_masks() if args.masks else draw_analyses([read_analysis(path) for path in args.analyses])
    save_figure(figure, args.out, args.overwrite)
    print(args.out)
    return 0
