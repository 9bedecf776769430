"""Many runs side by side on one machine: one single-thread process each, a live view of all, safe to stop anywhere."""

import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lengen.config import RunConfig
from lengen.results import RunFolder
from lengen.results.store import read_jsonl

POLL_SECONDS = 1.0
LOG_SECONDS = 15.0  # between lines when no terminal is there to draw bars on


@dataclass(frozen=True)
class Job:
    label: str
    config: RunConfig
    folder: RunFolder


def run_side_by_side(jobs: Sequence[Job], workers: int, overwrite: bool = False) -> bool:
    """Run what is missing, resuming what was interrupted. False if a signal stopped it; everything is saved then."""
    # Two small models on two cores are faster in two processes than in two threads each.
    pool = ProcessPoolExecutor(max_workers=workers, mp_context=multiprocessing.get_context("spawn"))
    with pool, _View(jobs) as view:
        pending = {pool.submit(_run, job, overwrite): job for job in jobs}
        finished_all = True
        while pending:
            done, _ = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            view.refresh()
            for future in done:
                del pending[future]
                finished_all &= future.result()
    return finished_all


def _run(job: Job, overwrite: bool) -> bool:
    import torch

    from lengen.train.loop import train

    torch.set_num_threads(1)
    resume = job.folder.exists() and not overwrite
    outcome = train(job.config, job.folder, resume=resume, overwrite=overwrite, quiet=True)
    return outcome.status == "finished"


class _View:
    """Bars on a terminal, lines in a log, fed from each run's metrics.jsonl."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bars = [self._progress.add_task(job.label, total=job.config.steps, news="") for job in jobs]
        self._last_log = time.monotonic()

    def __enter__(self) -> "_View":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def refresh(self) -> None:
        news = [_latest(job) for job in self._jobs]
        for bar, (step, text) in zip(self._bars, news, strict=True):
            self._progress.update(bar, completed=step, news=text)
        if not self._console.is_terminal and time.monotonic() - self._last_log > LOG_SECONDS:
            self._last_log = time.monotonic()
            for job, (step, text) in zip(self._jobs, news, strict=True):
                self._console.print(
                    f"{job.label}: step {step}/{job.config.steps}  {text}", highlight=False, markup=False
                )


def _latest(job: Job) -> tuple[int, str]:
    """The last training line of a run: its step, and loss and accuracy in words."""
    if not job.folder.metrics_file.exists():
        return 0, "starting"
    lines = [record for record in read_jsonl(job.folder.metrics_file) if "loss" in record]
    if not lines:
        return 0, "starting"
    return lines[-1]["step"], f"loss {lines[-1]['loss']:.4f}  accuracy {lines[-1]['accuracy']:.3f}"
