"""Table 1: perplexity of held-out text by context length.

A longer window looks better on average for a trivial reason: more of its positions have a context at all. So the same
target tokens are predicted from exactly their last 64, 128, … tokens; at the training length that is the *trivial
baseline* of Sec. 5.3. The paper's own average, over all positions of a window, is measured beside it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import torch

from lengen.language.config import LanguageConfig
from lengen.language.documents import Split
from lengen.language.held_out import trained_on
from lengen.language.losses import token_losses
from lengen.language.packed import PackedCorpus, TokenFile
from lengen.language.presets import LANGUAGE_PRESETS, LONG, SCALES, SHORT
from lengen.language.targets import Target, choose_targets, context_windows, digest_of, document_windows
from lengen.language.trained import load_language_run, tokenizer_file
from lengen.language.training import view_through
from lengen.model.decoder import Decoder
from lengen.positions.scheme import EncoderSettings, Rope
from lengen.results import RunFolder
from lengen.results.perplexity import Measure, PerplexityRow

SAME_SHARE = 0.01  # of the steps: they are whole numbers
Tracked = Callable[[tuple[int, ...]], Iterable[int]]  # the same lengths, as they are taken: a command may show them


@dataclass(frozen=True)
class Request:
    lengths: tuple[int, ...]
    split: Split
    num_documents: int
    targets_per_document: int
    seed: int

    def __post_init__(self) -> None:
        for name, value in (
            ("--lengths", min(self.lengths)),
            ("--num-documents", self.num_documents),
            ("--targets-per-document", self.targets_per_document),
        ):
            if value < 1:
                raise ValueError(f"{name} {value} is too small; use at least 1")


def measure(
    decoder: Decoder,
    tokens: TokenFile,
    groups: list[list[Target]],
    lengths: tuple[int, ...],
    tracked: Tracked = iter,
) -> Iterator[tuple[Measure, int, list[float], list[int]]]:
    """(measure, length, loss by document, targets by document) for each length, both measures."""
    longest = max(lengths)
    counts = [len(group) for group in groups]
    flat = [target for group in groups for target in group]
    for length in tracked(lengths):
        losses = token_losses(decoder, context_windows(tokens, flat, length), 1)[:, 0].double()
        yield "same-targets", length, [float(part.sum()) for part in torch.split(losses, counts)], counts
        sums, numbers = [], []
        for group in groups:
            windows = document_windows(tokens, group[0].document, length, longest)
            sums.append(float(token_losses(decoder, windows, length).double().sum()))
            numbers.append(windows.shape[0] * length)
        yield "all-positions", length, sums, numbers


def evaluate_run(
    folder: RunFolder,
    request: Request,
    corpus_folder: Path | None,
    encoder: EncoderSettings | None = None,
    say: Callable[[str], None] = lambda message: None,
    tracked: Tracked = iter,
) -> list[PerplexityRow]:
    """Rows of one run; `encoder` sees the ids in another way than in training (interpolation)."""
    config, decoder, progress = load_language_run(folder)
    record = folder.read_run()
    own_folder = Path(record["corpus_folder"])
    corpus = PackedCorpus.open(corpus_folder or own_folder)
    check_tokenizer(folder, corpus)
    tokens = corpus.split(request.split)
    overrides = {}
    if encoder is not None and encoder != config.scheme.encoder:
        check_interpolation(config, encoder)
        trained = asdict(config.scheme.encoder)
        overrides = {f"encoder.{name}": value for name, value in asdict(encoder).items() if value != trained[name]}
        view_through(decoder, replace(config.scheme, encoder=encoder))
    preset, scale = preset_of(config)
    groups = choose_targets(
        tokens,
        max(request.lengths),
        request.num_documents,
        request.targets_per_document,
        request.seed,
        trained_on(config, own_folder, corpus, tokens, say),
    )
    return [
        PerplexityRow(
            preset=preset,
            scale=scale,
            run=progress.run,
            arm=config.arm,
            train_seed=config.seed,
            step=progress.step,
            num_tokens=progress.step * config.batch_size * config.context,
            wall_seconds=round(progress.wall_seconds, 1),
            version=record["versions"]["lengen"],
            commit=record["commit"],
            trained_on=config.corpus.name,
            corpus=corpus.stamp.name,
            split=request.split,
            measure=name,
            length=length,
            targets=digest_of(groups, corpus.stamp.digest),
            overrides=overrides,
            losses=[round(value, 4) for value in losses],
            counts=counts,
        )
        for name, length, losses, counts in measure(decoder, tokens, groups, request.lengths, tracked)
    ]


def preset_of(config: LanguageConfig) -> tuple[str, str]:
    """The preset and scale that a config is, or ("custom", ""). How long it is trained is told by its tokens.

    Longer or shorter, with other batches, it is still the same arm if its last phase is as large a part of it.
    """
    share = config.first_steps / config.steps
    as_long = {field: getattr(config, field) for field in ("steps", "first_steps", "batch_size", "warmup_steps")}
    for scale, (name, preset) in product(SCALES, LANGUAGE_PRESETS.items()):
        usual = preset.at(scale, config.corpus)
        is_same_share = abs(usual.first_steps / usual.steps - share) < SAME_SHARE
        if is_same_share and replace(usual, **as_long).arm == config.arm:
            return name, scale
    return "custom", ""


def check_interpolation(config: LanguageConfig, encoder: EncoderSettings) -> None:
    """A row is labelled by its interpolation, so it has to be one."""
    if not isinstance(encoder, Rope):
        return
    if encoder.interpolation == "none":
        trained = config.scheme.encoder
        for name in ("factor", "trained_max_id"):
            if getattr(encoder, name) != getattr(trained, name):
                raise ValueError(
                    f"--encoder.{name} {getattr(encoder, name):g} changes nothing without an interpolation; "
                    "add --encoder.interpolation yarn, ntk or linear"
                )
        return
    if encoder.factor == 1:
        raise ValueError(
            f"--encoder.interpolation {encoder.interpolation} changes nothing with factor=1; "
            f"add --encoder.factor {LONG / SHORT:g}"
        )
    largest = config.scheme.assigner.max_position_id
    if encoder.interpolation == "yarn" and encoder.trained_max_id > largest:
        raise ValueError(
            f"YaRN with trained_max_id={encoder.trained_max_id} is for a model trained on so many ids, and this one "
            f"saw {largest} at most; add --encoder.trained_max_id {config.context}"
        )


def check_tokenizer(folder: RunFolder, corpus: PackedCorpus) -> None:
    path = tokenizer_file(folder)
    if hashlib.sha256(path.read_bytes()).hexdigest() != corpus.tokenizer_sha256:
        raise ValueError(
            f"{corpus.folder} has another tokenizer than {folder.path}; prepare it with --tokenizer {path}"
        )
