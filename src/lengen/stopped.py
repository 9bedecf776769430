"""What is raised when a signal ended a piece of work that has saved itself."""


class Stopped(Exception):
    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number
