"""Ctrl-C and SIGTERM ask a run to stop after the step it is in, so that nothing is lost."""

import signal
import threading
from types import FrameType, TracebackType


class StopRequest:
    """A context in which the two signals set `signal_number` instead of ending the process; a second one ends it."""

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._previous: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():  # Python allows handlers nowhere else
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:  # whoever ignores it has their reason
                    self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()
