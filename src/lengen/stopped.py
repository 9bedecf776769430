"""What is raised when work ends before its end, through no fault of the command line."""


class Stopped(Exception):
    """A signal ended a piece of work that has saved itself."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class ProcessLost(Exception):
    """A process that shares the work has died; what was saved before is whole."""


class Failed(Exception):
    """What was computed cannot be gone on with: a loss that is no number, two results that should be equal."""
