"""Training a language model: windows of text, contiguous ids first, then those of the last phase (PoSE)."""

import math
import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from lengen.batch import Batch
from lengen.language.config import (
    LanguageConfig,
    config_from_dict,
    config_to_dict,
    first_difference,
    first_phase_difference,
)
from lengen.language.losses import copying_gain, text_batch, token_losses
from lengen.language.packed import TOKENIZER_FILE, PackedCorpus, TokenFile
from lengen.language.windows import check_size, num_windows, training_windows
from lengen.model.decoder import Decoder
from lengen.positions.encode import build_encoder
from lengen.positions.scheme import Scheme
from lengen.results import RunFolder, write_atomically
from lengen.seeding import rng_for
from lengen.train.checkpoint import latest_checkpoint
from lengen.train.curriculum import Curriculum
from lengen.train.distributed import ALONE, Processes, Sharding
from lengen.train.optimise import Outcome, optimise
from lengen.train.record import new_run_record
from lengen.train.update import Forward, training_step
from lengen.train.work import Measured, Update


def train_language(
    config: LanguageConfig,
    corpus: PackedCorpus,
    folder: RunFolder,
    *,
    start_from: Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    processes: Processes = ALONE,
    sharding: Sharding = "none",
) -> Outcome:
    """Train to the last step; with `start_from`, only the last phase, after the first one of that run."""
    if resume and start_from is not None:
        raise ValueError(f"--resume goes on with {folder.path} from where it is; drop --from {start_from}")
    work = LanguageWork(config, corpus)
    source = None if start_from is None else RunFolder(start_from)
    if source is not None:
        processes.by_first(lambda: check_source(work, source, folder))

    def begin() -> None:
        # Beside the weights, so that a run can be used without its corpus.
        write_atomically(folder.path / TOKENIZER_FILE, corpus.tokenizer().to_str().encode())
        if source is not None:
            branch_off(work, source, folder)

    return optimise(
        work,
        folder,
        resume=resume,
        overwrite=overwrite,
        quiet=quiet,
        processes=processes,
        sharding=sharding,
        begin=begin,
    )


def check_source(work: "LanguageWork", source: RunFolder, folder: RunFolder) -> None:
    """Make sure that `folder` can stand where `source` stood after its first phase."""
    if source.path.resolve() == folder.path.resolve():
        raise ValueError(f"cannot start from {source.path} and write the new run over it; use another --out")
    difference = first_phase_difference(config_from_dict(source.read_run()["config"]), work.config)
    if difference:
        raise ValueError(f"cannot start from {source.path}: {difference}; its first phase is not this run's")
    if not latest_checkpoint(source.milestone).exists():
        raise ValueError(f"{source.path} has not finished its first phase; let it train on, then start from it")


def branch_off(work: "LanguageWork", source: RunFolder, folder: RunFolder) -> None:
    """Make `folder` a run that stands where `source` stood after its first phase."""
    checkpoint = latest_checkpoint(source.milestone)
    if checkpoint.is_dir():
        shutil.copytree(checkpoint, folder.path / checkpoint.name)
    else:
        shutil.copyfile(checkpoint, folder.checkpoint_file)
    shutil.copyfile(source.metrics_file, folder.metrics_file)
    record = new_run_record(work.config, work.describe(), torch.get_num_threads())
    folder.write_run(record | {"first_phase_of": source.read_run()["run"]})


def build_language_model(config: LanguageConfig, scheme: Scheme | None = None) -> Decoder:
    return Decoder(config.model, scheme or config.scheme, config.corpus.vocab_size).initialize(config.seed)


def training_batch(config: LanguageConfig, tokens: TokenFile, step: int) -> Batch:
    """The windows and ids of one step, a pure function of (seed, step)."""
    windows = training_windows(tokens, config.context, config.batch_size, config.seed, step)
    return text_batch(windows, config.scheme_at(step), rng_for(config.seed, "text-ids", step), True)


def view_through(decoder: Decoder, scheme: Scheme) -> None:
    """Have a decoder see ids as `scheme` does; encoders of text hold no weights that could be lost."""
    if decoder.scheme == scheme:
        return
    if decoder.scheme.encoder != scheme.encoder:
        device = decoder.token_head.weight.device
        model = decoder.config
        decoder.encoder = build_encoder(
            scheme.encoder,
            num_ids=scheme.num_ids,
            width=model.width,
            num_heads=model.num_heads,
            head_size=model.head_size,
        ).to(device)
    decoder.scheme = scheme


@dataclass
class LanguageWork:
    """Windows of a packed corpus; the loss on held-out text as the measure."""

    config: LanguageConfig
    corpus: PackedCorpus

    def __post_init__(self) -> None:
        if self.corpus.stamp.digest != self.config.corpus.digest:
            raise ValueError(
                f"the run was made for corpus {self.config.corpus.digest}, and {self.corpus.folder} is "
                f"{self.corpus.stamp.digest}; give the corpus it was made for"
            )
        self.curriculum = Curriculum(stage=1)  # text has no stages
        self._train, self._valid = self.corpus.split("train"), self.corpus.split("valid")
        check_size(self._train, self.config.context)

    @property
    def milestone(self) -> int | None:
        return self.config.first_steps or None

    def describe(self) -> dict[str, Any]:
        return {
            "headline_metric": "perplexity",
            "label": f"language · context {self.config.context} · {self.config.scheme.name}",
            "config": config_to_dict(self.config),
            "corpus_folder": str(self.corpus.folder.resolve()),
        }

    def difference(self, saved: dict[str, Any]) -> str | None:
        return first_difference(config_from_dict(saved), self.config)

    def build(self, processes: Processes) -> Decoder:
        config = self.config
        processes.check_group_size(config.batch_size)
        return build_language_model(config, config.scheme_at(0))

    def update(
        self,
        forward: Forward,
        decoder: Decoder,
        optimizer: torch.optim.Optimizer,
        step: int,
        learning_rate: float,
        processes: Processes,
    ) -> Update:
        config = self.config
        view_through(decoder, config.scheme_at(step))
        batch = training_batch(config, self._train, step)
        group_size = config.microbatch_size * processes.size
        # Gradients of the groups add up; every process has a share of each, so that none of them is left without one.
        num_groups = math.ceil(config.batch_size / group_size)
        bounds = [group * config.batch_size // num_groups for group in range(num_groups + 1)]
        groups = [batch.rows(slice(start, stop)) for start, stop in pairwise(bounds)]
        loss, accuracy = training_step(forward, optimizer, groups, learning_rate, config, processes)
        begins = 0 < config.first_steps == step and config.scheme != config.first_scheme
        return Update(loss, accuracy, news=f"the last phase begins: {config.scheme.name}" if begins else "")

    def measure(self, decoder: Decoder, step: int) -> Measured:
        """The loss on the same windows of the validation text each time, and whether the model has learned to copy."""
        config = self.config
        view_through(decoder, config.scheme_at(max(step - 1, 0)))
        if num_windows(len(self._valid.tokens), config.context) < 1:
            return Measured({}, "no validation text", [])
        windows = training_windows(self._valid, config.context, config.eval_windows, seed=0, step=0)
        loss = float(token_losses(decoder, windows, config.context).double().mean())
        copying = copying_gain(decoder, config.context)
        words = f"validation: loss {loss:.4f}, perplexity {math.exp(loss):.2f}; random tokens that are repeated: "
        return Measured({"valid_loss": loss, "copying_gain": copying}, f"{words}{copying:+.2f} nats", [])
