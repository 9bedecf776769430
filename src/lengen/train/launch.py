"""Many runs side by side: a live view of all, safe to stop anywhere, and to lose a worker of."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lengen.config import RunConfig
from lengen.results import RunFolder
from lengen.results.store import read_jsonl
from lengen.stopped import ProcessLost, Stopped
from lengen.train.engines import Engine, Handle
from lengen.train.interrupt import StopRequest
from lengen.train.loop import train
from lengen.train.optimise import Outcome

POLL_SECONDS = 1.0
LOG_SECONDS = 30.0  # between lines when no terminal is there to draw bars on
MAX_LOSSES = 3  # of one run's worker: more is no accident, and the next attempt would end the same way
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    label: str
    config: RunConfig
    folder: RunFolder


def train_job(job: Job) -> Outcome | None:
    """Train a run, or go on with it where it stopped; None if it was stopped again."""
    outcome = train(job.config, job.folder, resume=job.folder.exists(), quiet=True)
    return outcome if outcome.status == "finished" else None


def run_side_by_side(jobs: Sequence[Job], work: Callable[[Job], T | None], engine: Engine) -> Iterator[tuple[Job, T]]:
    """Do `work` for each job on workers of their own, in order of start; yield results as they come, each once.

    Work that a dying worker left undone is done again, and goes on from what it had saved.
    """
    losses: Counter[Job] = Counter()
    try:
        with StopRequest() as stop, _View(jobs) as view:
            pending: dict[Handle, Job] = {engine.submit(work, job): job for job in jobs}
            while pending:
                begun = {job for job in pending.values() if job.folder.exists()}
                view.refresh(begun)
                done = engine.wait(pending.keys(), POLL_SECONDS)
                if stop.signal_number is not None:
                    raise Stopped("stopped and saved; the same command goes on from here", stop.signal_number)
                for handle in done:
                    job = pending.pop(handle)
                    result: T | None = engine.result(handle)
                    if result is not None:
                        view.count(job)
                        yield job, result
                        continue
                    # A pool that loses a worker loses all it was given; only what had begun can be the reason.
                    losses[job] += job in begun
                    if losses[job] > MAX_LOSSES:
                        raise ProcessLost(
                            f"{job.label} has lost its worker {losses[job]} times (out of memory?); finished runs are "
                            f"kept: see {job.folder.path}, then run the same command again"
                        )
                    pending[engine.submit(work, job)] = job
    except BaseException:
        engine.stop()
        raise
    engine.close()


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

    def refresh(self, active: Collection[Job]) -> None:
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
