"""The training loop: a pure function of the config, which can stop anywhere and go on bit for bit."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from lengen.batch import Batch, sample_batch
from lengen.config import RunConfig, config_from_dict, config_to_dict, first_difference
from lengen.evaluate.length_curve import Measurement, length_curve
from lengen.loss import summed_loss
from lengen.model.decoder import Decoder, DecoderOutput
from lengen.results import Row, RunFolder
from lengen.seeding import rng_for
from lengen.tasks import Task
from lengen.train.checkpoint import Progress, drop_shards, latest_checkpoint, load_checkpoint
from lengen.train.curriculum import Curriculum
from lengen.train.distributed import ALONE, Processes, Sharding
from lengen.train.interrupt import StopRequest
from lengen.train.progress import ProgressReport
from lengen.train.record import MetricsLog, new_run_record
from lengen.train.schedule import learning_rate_at


class NonFiniteLoss(ArithmeticError):
    """The loss or its gradient is infinite or not a number; the last checkpoint is untouched."""


@dataclass(frozen=True)
class Outcome:
    status: Literal["finished", "interrupted"]
    step: int
    signal_number: int | None = None


def build_decoder(config: RunConfig) -> Decoder:
    return Decoder(config.model, config.scheme, len(config.task.vocabulary)).initialize(config.seed)


def load_decoder(folder: RunFolder) -> tuple[RunConfig, Decoder, Progress]:
    """A trained model with its config, ready to be evaluated."""
    config = config_from_dict(folder.read_run()["config"])
    decoder = build_decoder(config)
    progress = load_checkpoint(latest_checkpoint(folder), decoder)
    return config, decoder, progress


def open_run(config: RunConfig, folder: RunFolder, resume: bool, overwrite: bool) -> None:
    """Make sure that training may write here: a new folder, a run to resume, or one to give up on purpose."""
    folder.create()
    if folder.exists() and resume:
        difference = first_difference(config_from_dict(folder.read_run()["config"]), config)
        if difference:
            raise ValueError(
                f"cannot resume {folder.path} with another config: {difference}; drop that flag or use a new --out"
            )
    elif folder.exists() and not overwrite:
        raise ValueError(f"{folder.path} already holds a run; continue it with --resume or replace it with --overwrite")
    elif resume:
        raise ValueError(f"{folder.path} holds no run to resume; drop --resume to start one")
    elif folder.exists():
        for file in (folder.run_file, folder.rows_file, folder.metrics_file, folder.checkpoint_file):
            file.unlink(missing_ok=True)
        shutil.rmtree(folder.events_folder, ignore_errors=True)
        drop_shards(folder)


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
    """Train to the last step and evaluate there. Everything on disk is whole at any moment.

    Each of several `processes` calls this; the first alone writes and reports.
    """
    # Before a run is given up: what cannot be built replaces nothing.
    processes.check_group_size(config.batch_size // config.lengths_per_batch)
    decoder = build_decoder(config).to(processes.device)
    forward = processes.spread(decoder, sharding)
    processes.by_first(lambda: open_run(config, folder, resume, overwrite))
    optimizer = build_optimizer(decoder, config.weight_decay)
    record = folder.read_run() if resume else new_run_record(config, torch.get_num_threads())
    progress = Progress(config.run_id, 0, 0.0, Curriculum.start(config))
    if resume and latest_checkpoint(folder).exists():
        progress = load_checkpoint(latest_checkpoint(folder), decoder, optimizer)
        if record["status"] == "finished":
            return Outcome("finished", progress.step)
    record |= {"config": config_to_dict(config), "status": "running", "processes": processes.size}
    processes.by_first(lambda: folder.write_run(record))

    started = time.monotonic() - progress.wall_seconds
    if config.compile:
        forward = torch.compile(forward, dynamic=True)
    log = MetricsLog(folder, progress.step, silent=not processes.is_first)
    step, curriculum = progress.step, progress.curriculum

    def save(status: str) -> None:
        wall_seconds = time.monotonic() - started
        reached = Progress(config.run_id, step, wall_seconds, curriculum)
        processes.save(folder, decoder, optimizer, reached)
        reached_record = record | {"status": status, "step": step, "wall_seconds": round(wall_seconds, 1)}
        processes.by_first(lambda: folder.write_run(reached_record))

    quiet = quiet or not processes.is_first
    try:
        with StopRequest() as stop, ProgressReport(config.run_id, config.steps, config.log_every, quiet) as report:
            if step:
                report.say(f"resuming at step {step}")
            while step < config.steps:
                learning_rate = learning_rate_at(
                    step, config.learning_rate, config.warmup_steps, config.steps, config.schedule
                )
                batches = training_batches(config, step, curriculum.task(config))
                loss, accuracy = training_step(forward, optimizer, batches, learning_rate, config, processes)
                step += 1
                before, curriculum = curriculum, curriculum.after_step(accuracy, config)
                if curriculum.stage > before.stage:
                    report.say(f"step {step}  stage {curriculum.stage} of {config.task.num_stages} begins")
                report.update(step, loss, accuracy)
                if step % config.log_every == 0 or step == config.steps:
                    log.write(
                        step,
                        {"loss": loss, "accuracy": accuracy, "learning_rate": learning_rate, "stage": before.stage},
                    )
                if step % config.eval_every == 0 and step < config.steps:
                    curve = _headline_curve(config, decoder)
                    log.write(step, {f"{m.metric}/{m.length}": m.correct / m.total for m in curve})
                    report.say(f"step {step}  {config.headline_metric}: " + _in_words(curve))
                signal_number = processes.agree_on_signal(stop.signal_number)
                if signal_number is not None:
                    save("interrupted")
                    report.say(f"stopped at step {step} and saved; continue with --resume")
                    return Outcome("interrupted", step, signal_number)
                if step % config.checkpoint_every == 0:
                    save("running")
            save("running")
            report.say("measuring the last step")
            rows = [
                Row(config.run_id, step, m.length, m.metric, m.correct, m.total, config.eval_seed, "one-pass")
                for m in _headline_curve(config, decoder)
            ]
    finally:
        log.close()
    processes.by_first(lambda: folder.append_rows(rows))
    save("finished")
    return Outcome("finished", step)


def training_batches(config: RunConfig, step: int, task: Task) -> list[Batch]:
    """The examples of one step, a pure function of (seed, step) and the task's stage: groups of one length each."""
    rng = rng_for(config.seed, "train", step)
    lengths = rng.choice(config.training_lengths, size=config.lengths_per_batch)
    group_size = config.batch_size // config.lengths_per_batch
    return [sample_batch(task, config.scheme, rng, group_size, int(length), True) for length in lengths]


def training_step(
    forward: Callable[..., DecoderOutput],
    optimizer: torch.optim.Optimizer,
    batches: list[Batch],
    learning_rate: float,
    config: RunConfig,
    processes: Processes = ALONE,
) -> tuple[float, float]:
    """One update; returns the mean loss over all targets and the share of targets predicted right before it.

    `batches` is the whole step; each process computes its share of it.
    """
    num_targets = sum(batch.target_tokens.numel() for batch in batches)
    optimizer.zero_grad(set_to_none=True)
    loss, num_correct = 0.0, 0.0
    for batch in batches:
        batch = processes.slice(batch).to(processes.device)
        with torch.autocast(batch.token_ids.device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16"):
            output = forward(batch.input_token_ids, batch.input_position_ids, batch.first_target)
            summed = summed_loss(output, batch, config.position_loss_weight)
        mean = summed.total / num_targets  # every target weighs the same, whatever its group and its process
        # The engines average gradients over processes; what is wanted is their sum.
        (mean * processes.size).backward()  # type: ignore[no-untyped-call]
        loss += mean.item()
        num_correct += summed.num_correct
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    norm = processes.whole(nn.utils.clip_grad_norm_(parameters, config.clip_norm))
    loss, num_correct = processes.sum(loss, num_correct)
    if not np.isfinite(loss) or not torch.isfinite(norm):
        raise NonFiniteLoss(
            f"the loss became {loss} with gradient norm {norm.item()}; the last checkpoint is kept: lower "
            f"--learning-rate (now {config.learning_rate:g}) or raise --warmup-steps (now {config.warmup_steps})"
        )
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    return loss, num_correct / num_targets


def build_optimizer(decoder: Decoder, weight_decay: float) -> torch.optim.AdamW:
    matrices = [parameter for parameter in decoder.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in decoder.parameters() if parameter.ndim < 2]  # biases, norms, scalars
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, fused=True)


def _headline_curve(config: RunConfig, decoder: Decoder) -> list[Measurement]:
    """The measure the paper plots; `lengen evaluate` adds those that need decoding."""
    lengths, num_examples = config.eval_lengths, config.eval_examples
    return list(
        length_curve(decoder, config.task, lengths, num_examples, config.eval_seed, only=config.headline_metric)
    )


def _in_words(curve: list[Measurement]) -> str:
    return "  ".join(f"{m.length}: {m.correct / m.total:.2f}" for m in curve)
