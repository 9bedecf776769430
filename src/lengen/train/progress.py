"""What a person sees of a run: a live bar on a terminal, plain lines in a log. Everything goes to standard error."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class ProgressReport:
    """A context that shows steps, loss, accuracy and time left."""

    def __init__(self, title: str, num_steps: int, log_every: int, quiet: bool = False) -> None:
        self._title, self._num_steps, self._log_every = title, num_steps, log_every
        self._console = Console(stderr=True, quiet=quiet)
        self._bar: Progress | None = None
        self._first_step: int | None = None
        self._started = time.monotonic()

    def __enter__(self) -> "ProgressReport":
        if self._console.is_terminal and not self._console.quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("loss {task.fields[loss]:.4f}  accuracy {task.fields[accuracy]:.3f}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._num_steps, loss=float("nan"), accuracy=0.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, step: int, loss: float, accuracy: float) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=step, loss=loss, accuracy=accuracy)
        elif step % self._log_every == 0 or step == self._num_steps:
            left = self._seconds_left(step)
            self.say(f"step {step}/{self._num_steps}  loss {loss:.4f}  accuracy {accuracy:.3f}  left {left}")
        if self._first_step is None:
            self._first_step, self._started = step, time.monotonic()

    def say(self, message: str) -> None:
        if self._bar is not None:
            self._bar.console.print(message, highlight=False, markup=False)
        else:
            self._console.print(f"[{self._title}] {message}", highlight=False, markup=False, soft_wrap=True)

    def _seconds_left(self, step: int) -> str:
        if self._first_step is None or step <= self._first_step:
            return "?"
        each = (time.monotonic() - self._started) / (step - self._first_step)
        minutes, seconds = divmod(round(each * (self._num_steps - step)), 60)
        return f"{minutes}:{seconds:02d}"
