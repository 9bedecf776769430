"""Many runs side by side on one machine: one single-thread process each, a live view of all, safe to stop anywhere."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lengen.config import RunConfig
from lengen.results import RunFolder
from lengen.results.store import read_jsonl
from lengen.stopped import Stopped
from lengen.train.interrupt import StopRequest
from lengen.train.loop import Outcome, train

POLL_SECONDS = 1.0
LOG_SECONDS = 30.0  # between lines when no terminal is there to draw bars on
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    label: str
    config: RunConfig
    folder: RunFolder
    overwrite: bool = False


def train_job(job: Job) -> Outcome:
    """Train a run, or go on with it where it stopped."""
    resume = job.folder.exists() and not job.overwrite
    return train(job.config, job.folder, resume=resume, overwrite=job.overwrite, quiet=True)


def run_side_by_side(jobs: Sequence[Job], workers: int, work: Callable[[Job], T]) -> Iterator[tuple[Job, T]]:
    """Do `work` for each job in processes of their own, in order of start; yield results as they come."""
    # Two small models on two cores are faster in two processes than in one with two threads.
    context = multiprocessing.get_context("spawn")
    stopping = context.Event()
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker, initargs=(stopping,))
    with StopRequest() as stop, pool, _View(jobs) as view:
        pending: dict[Future[T | None], Job] = {pool.submit(_unless_stopping, work, job): job for job in jobs}
        while pending:
            done, _ = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            if stop.signal_number is not None:
                stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in multiprocessing.active_children():
                    worker.terminate()  # SIGTERM: the run in it saves itself
                raise Stopped("stopped and saved; the same command goes on from here", stop.signal_number)
            for future in done:
                job = pending.pop(future)
                view.count(job)
                result = future.result()
                assert result is not None, "no job is passed over unless the work is being stopped"
                yield job, result
            view.refresh([job for future, job in pending.items() if future.running()])


_stopping: Event | None = None  # in a worker: set once the parent has been asked to stop


def _prepare_worker(stopping: Event) -> None:
    global _stopping
    import torch

    _stopping = stopping
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then asks each worker once


def _unless_stopping(work: Callable[[Job], T], job: Job) -> T | None:
    """The pool hands workers a job ahead, which cannot be cancelled: it must not start while the others stop."""
    assert _stopping is not None
    return None if _stopping.is_set() else work(job)


class _View:
    """One bar for all runs and one for each that is under way; lines in a log."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._num_jobs, self._num_done = len(jobs), 0
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
        self._total = self._progress.add_task("all runs", total=len(jobs), news="")
        self._bars: dict[Job, TaskID] = {}
        self._last_log = time.monotonic()

    def __enter__(self) -> "_View":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()

    def count(self, job: Job) -> None:
        self._num_done += 1
        self._progress.update(self._total, completed=self._num_done)
        if job in self._bars:
            self._progress.remove_task(self._bars.pop(job))
        self._log(f"{job.label}: done ({self._num_done} of {self._num_jobs})")

    def refresh(self, active: Sequence[Job]) -> None:
        is_due = time.monotonic() - self._last_log > LOG_SECONDS
        for job in active:
            step, news = _latest(job)
            if job not in self._bars:
                self._bars[job] = self._progress.add_task(job.label, total=job.config.steps, news="")
            self._progress.update(self._bars[job], completed=step, news=news)
            if is_due and step:
                self._log(f"{job.label}: step {step} of {job.config.steps}  {news}")
        if is_due:
            self._last_log = time.monotonic()

    def _log(self, line: str) -> None:
        if not self._console.is_terminal:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def _latest(job: Job) -> tuple[int, str]:
    """The last training line of a run: its step, and loss and accuracy in words."""
    if not job.folder.metrics_file.exists():
        return 0, "starting"
    lines = [record for record in read_jsonl(job.folder.metrics_file) if "loss" in record]
    if not lines:
        return 0, "starting"
    return lines[-1]["step"], f"loss {lines[-1]['loss']:.4f}  accuracy {lines[-1]['accuracy']:.3f}"
