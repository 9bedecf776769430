"""The part of training that every run shares: updates, schedule, resuming, checkpoints, signals, logs, many processes.

What is trained, on which batches, and how it is measured comes from a `Work`: the synthetic tasks (`train/loop.py`) and
language (`language/training.py`) are two of them.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from filelock import FileLock, Timeout

from lengen.model.decoder import Decoder
from lengen.results import RunFolder, write_atomically
from lengen.train.checkpoint import Progress, drop_shards, latest_checkpoint, load_checkpoint
from lengen.train.distributed import ALONE, Processes, Sharding
from lengen.train.interrupt import StopRequest
from lengen.train.progress import ProgressReport
from lengen.train.record import MetricsLog, new_run_record, resumed_run_record
from lengen.train.schedule import learning_rate_at
from lengen.train.update import Forward, build_optimizer
from lengen.train.work import Work


@dataclass(frozen=True)
class Outcome:
    status: Literal["finished", "interrupted"]
    step: int
    signal_number: int | None = None


class RunIsHeld(ValueError):
    """Another process trains this run now."""


@contextmanager
def held(folder: RunFolder) -> Iterator[None]:
    """No other process trains this run meanwhile. The system lets go if this one dies."""
    folder.create()
    lock = FileLock(folder.lock_file, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise RunIsHeld(f"{folder.path} is being trained by another process; wait for it or use a new --out") from error
    try:
        yield
    finally:
        lock.release()


def open_run(work: Work, folder: RunFolder, resume: bool, overwrite: bool) -> None:
    """Make sure that training may write here: a new folder, a run to resume, or one to give up on purpose."""
    if resume and overwrite:
        raise ValueError(f"--resume goes on with {folder.path} and --overwrite replaces it; give one of the two")
    if resume:
        difference = work.difference(folder.read_run()["config"])
        if difference:
            raise ValueError(
                f"cannot resume {folder.path} with another config: {difference}; drop that flag or use a new --out"
            )
    elif folder.exists() and not overwrite:
        raise ValueError(f"{folder.path} already holds a run; continue it with --resume or replace it with --overwrite")
    elif folder.exists():
        discard(folder)


def require_run(folder: RunFolder) -> None:
    if not folder.exists():
        raise ValueError(f"{folder.path} holds no run to resume; drop --resume to start one")


def discard(folder: RunFolder) -> None:
    """Give a run up. Its record goes last, and is empty until then: nobody takes what is left for a run."""
    write_atomically(folder.run_file, b"")
    for file in (folder.rows_file, folder.metrics_file, folder.checkpoint_file):
        file.unlink(missing_ok=True)
    for leftover in (folder.events_folder, folder.milestone.path):
        shutil.rmtree(leftover, ignore_errors=True)
    drop_shards(folder)
    folder.run_file.unlink()


def optimise(
    work: Work,
    folder: RunFolder,
    *,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    processes: Processes = ALONE,
    sharding: Sharding = "none",
    begin: Callable[[], None] = lambda: None,
) -> Outcome:
    """Train to the last step and measure there. Everything on disk is whole at any moment.

    Each of several `processes` calls this; the first alone writes and reports. `begin` may put into the folder of a new
    run what belongs there from its first step: even a record and a checkpoint, from which it then goes on.
    """
    # Before a run is given up: what cannot be built replaces nothing.
    decoder = work.build(processes).to(processes.device)
    forward = processes.spread(decoder, sharding)
    with ExitStack() as stack:

        def open_folder() -> bool:
            if resume:
                require_run(folder)  # before a folder is made for the lock
            stack.enter_context(held(folder))
            open_run(work, folder, resume, overwrite)
            if not resume:
                begin()
            return folder.exists()

        goes_on = processes.by_first(open_folder)
        return _optimise(work, folder, decoder, forward, goes_on, quiet, processes)


def _optimise(
    work: Work,
    folder: RunFolder,
    decoder: Decoder,
    forward: Forward,
    goes_on: bool,
    quiet: bool,
    processes: Processes,
) -> Outcome:
    config = work.config
    optimizer = build_optimizer(decoder, config.weight_decay)
    described = work.describe()
    record = folder.read_run() if goes_on else new_run_record(config, described, torch.get_num_threads())
    progress = Progress(config.run_id, 0, 0.0, work.curriculum)
    if goes_on:
        if record["status"] == "finished":
            return Outcome("finished", record["step"])
        record = resumed_run_record(record, torch.get_num_threads())
        if latest_checkpoint(folder).exists():
            progress = load_checkpoint(latest_checkpoint(folder), decoder, optimizer)
            _check_is_of(record, config.run_id, progress, folder)
        elif record["step"]:
            raise ValueError(f"{folder.path} has lost its checkpoint; restore it or start again with --overwrite")
    record |= {"config": described["config"], "status": "running", "processes": processes.size}
    processes.by_first(lambda: folder.write_run(record))

    started = time.monotonic() - progress.wall_seconds
    if config.compile:
        forward = torch.compile(forward, dynamic=True)
    log = MetricsLog(folder, progress.step, silent=not processes.is_first)
    step, work.curriculum = progress.step, progress.curriculum

    def reached() -> Progress:
        return Progress(config.run_id, step, time.monotonic() - started, work.curriculum)

    def save(status: str) -> None:
        now = reached()
        processes.save(folder, decoder, optimizer, now)
        reached_record = record | {"status": status, "step": step, "wall_seconds": round(now.wall_seconds, 1)}
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
                update = work.update(forward, decoder, optimizer, step, learning_rate, processes)
                step += 1
                if update.news:
                    report.say(f"step {step}  {update.news}")
                report.update(step, update.loss, update.accuracy)
                if step % config.log_every == 0 or step == config.steps:
                    values = {"loss": update.loss, "accuracy": update.accuracy, "learning_rate": learning_rate}
                    log.write(step, values | update.logged)
                if step % config.eval_every == 0 and step < config.steps:
                    measured = work.measure(decoder, step)
                    log.write(step, measured.logged)
                    report.say(f"step {step}  {measured.words}")
                if step == work.milestone:
                    processes.by_first(folder.milestone.create)
                    processes.save(folder.milestone, decoder, optimizer, reached())
                signal_number = processes.agree_on_signal(stop.signal_number)
                if signal_number is not None:
                    save("interrupted")
                    report.say(f"stopped at step {step} and saved; continue with --resume")
                    return Outcome("interrupted", step, signal_number)
                if step % config.checkpoint_every == 0:
                    save("running")
            save("running")
            report.say("measuring the last step")
            measured = work.measure(decoder, step)
    finally:
        log.close()

    def append_rows() -> None:
        there = folder.read_rows()  # if the process died here before, after its rows and before its record
        folder.append_rows(row for row in measured.rows if row not in there)

    processes.by_first(append_rows)
    save("finished")
    return Outcome("finished", step)


def _check_is_of(record: dict[str, Any], run_id: str, progress: Progress, folder: RunFolder) -> None:
    if progress.run not in (run_id, record["run"], record.get("first_phase_of")):
        raise ValueError(
            f"the checkpoint in {folder.path} is of another run, {progress.run}; start again with --overwrite"
        )
