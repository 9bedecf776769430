"""Work whose worker dies; a module of its own, because workers import it."""

import os
import signal

from lengen.train import loop
from lengen.train.launch import Job, train_job
from lengen.train.optimise import Outcome


def die_once(job: Job) -> Outcome | None:
    """Seed 1 loses its worker in the middle of step 13, the first time."""
    marker = job.folder.path.with_name(f"{job.folder.path.name}.died")
    if job.config.seed == 1 and not marker.exists():
        marker.touch()
        _die_at_step(13)
    return train_job(job)


def die_always(job: Job) -> Outcome | None:
    _die_at_step(3)
    return train_job(job)


def _die_at_step(step: int) -> None:
    real, calls = loop.training_step, iter(range(step))

    def training_step(*args):
        if next(calls, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args)

    loop.training_step = training_step
