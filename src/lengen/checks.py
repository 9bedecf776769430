"""A user's mistake as one sentence: what is wrong with which value, and what to do or which name was meant."""

import dataclasses
import difflib
from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin, get_type_hints


def require(condition: bool, what: str, advice: str) -> None:
    if not condition:
        raise ValueError(f"{what}; {advice}")


def unknown_name(kind: str, name: str, known: Iterable[str], advice: str = "") -> ValueError:
    """A ValueError to raise: names the value, the nearest known name, and all of them."""
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}" if nearest else f"choose from {', '.join(names)}"
    return ValueError(f"unknown {kind} {name!r}; {hint}" + (f", {advice}" if advice else ""))


def check_choices(instance: Any) -> None:
    """Raise if a dataclass field declared as a Literal holds anything else."""
    hints = get_type_hints(type(instance))
    for field in dataclasses.fields(instance):
        value, hint = getattr(instance, field.name), hints[field.name]
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise unknown_name(f"choice for {field.name}", str(value), map(str, get_args(hint)))
