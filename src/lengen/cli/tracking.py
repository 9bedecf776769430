"""What a person sees while lengths are worked through: a bar on a terminal, a line each in a log."""

import sys
from collections.abc import Iterator, Sequence


def tracked(lengths: Sequence[int], doing: str) -> Iterator[int]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        yield from track(lengths, doing, console=console, transient=True)
        return
    for number, length in enumerate(lengths, start=1):
        print(f"{doing} at length {length} ({number} of {len(lengths)})", file=sys.stderr, flush=True)
        yield length
