"""Training on a synthetic task: a pure function of the config, which can stop anywhere and go on bit for bit."""

from typing import Any

import torch

from lengen.batch import Batch, sample_batch
from lengen.config import RunConfig, config_from_dict, config_to_dict, first_difference
from lengen.evaluate.length_curve import length_curve
from lengen.model.decoder import Decoder
from lengen.positions.scheme import nickname
from lengen.results import Row, RunFolder
from lengen.seeding import rng_for
from lengen.tasks import Task
from lengen.train.checkpoint import Progress, latest_checkpoint, load_checkpoint
from lengen.train.curriculum import Curriculum
from lengen.train.distributed import ALONE, Processes, Sharding
from lengen.train.optimise import Outcome, optimise
from lengen.train.update import Forward, training_step
from lengen.train.work import Measured, Update


def build_decoder(config: RunConfig) -> Decoder:
    return Decoder(config.model, config.scheme, len(config.task.vocabulary)).initialize(config.seed)


def load_decoder(folder: RunFolder) -> tuple[RunConfig, Decoder, Progress]:
    """A trained model with its config, ready to be evaluated."""
    config = config_from_dict(folder.read_run()["config"])
    decoder = build_decoder(config)
    progress = load_checkpoint(latest_checkpoint(folder), decoder)
    return config, decoder, progress


def train(
    config: RunConfig,
    folder: RunFolder,
    *,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    processes: Processes = ALONE,
    sharding: Sharding = "none",
) -> Outcome:
    """Train to the last step and evaluate there."""
    return optimise(
        TaskWork(config),
        folder,
        resume=resume,
        overwrite=overwrite,
        quiet=quiet,
        processes=processes,
        sharding=sharding,
    )


class TaskWork:
    """Batches of a task, drawn anew each step; accuracy by length as the measure."""

    milestone: int | None = None

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.curriculum = Curriculum.start(config)

    def describe(self) -> dict[str, Any]:
        return {
            "headline_metric": self.config.headline_metric,
            "label": f"{self.config.task.name} · {nickname(self.config.scheme)}",
            "config": config_to_dict(self.config),
        }

    def difference(self, saved: dict[str, Any]) -> str | None:
        return first_difference(config_from_dict(saved), self.config)

    def build(self, processes: Processes) -> Decoder:
        processes.check_group_size(self.config.batch_size // self.config.lengths_per_batch)
        return build_decoder(self.config)

    def update(
        self,
        forward: Forward,
        decoder: Decoder,
        optimizer: torch.optim.Optimizer,
        step: int,
        learning_rate: float,
        processes: Processes,
    ) -> Update:
        config, before = self.config, self.curriculum
        batches = training_batches(config, step, before.task(config))
        loss, accuracy = training_step(forward, optimizer, batches, learning_rate, config, processes)
        self.curriculum = before.after_step(accuracy, config)
        has_advanced = self.curriculum.stage > before.stage
        news = f"stage {self.curriculum.stage} of {config.task.num_stages} begins" if has_advanced else ""
        return Update(loss, accuracy, {"stage": before.stage}, news)

    def measure(self, decoder: Decoder, step: int) -> Measured:
        """The measure the paper plots; `lengen evaluate` adds those that need decoding."""
        config, metric = self.config, self.config.headline_metric
        lengths, num_examples = config.eval_lengths, config.eval_examples
        curve = list(length_curve(decoder, config.task, lengths, num_examples, config.eval_seed, only=metric))
        return Measured(
            {f"{m.metric}/{m.length}": m.correct / m.total for m in curve},
            f"{metric}: " + "  ".join(f"{m.length}: {m.correct / m.total:.2f}" for m in curve),
            [
                Row(config.run_id, step, m.length, m.metric, m.correct, m.total, config.eval_seed, "one-pass")
                for m in curve
            ],
        )


def training_batches(config: RunConfig, step: int, task: Task) -> list[Batch]:
    """The examples of one step, a pure function of (seed, step) and the task's stage: groups of one length each."""
    rng = rng_for(config.seed, "train", step)
    lengths = rng.choice(config.training_lengths, size=config.lengths_per_batch)
    group_size = config.batch_size // config.lengths_per_batch
    return [sample_batch(task, config.scheme, rng, group_size, int(length), True) for length in lengths]
