"""Errors for names that do not exist: say which one was meant."""

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, name: str, known: Iterable[str], advice: str = "") -> ValueError:
    """A ValueError to raise: names the value, the nearest known name, and all of them."""
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}" if nearest else f"choose from {', '.join(names)}"
    return ValueError(f"unknown {kind} {name!r}; {hint}" + (f", {advice}" if advice else ""))
