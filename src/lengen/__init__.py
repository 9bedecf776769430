"""Length generalization of transformers: train on short sequences, work on long ones, and know why.

The names below are the everyday ones; they are loaded on first use, so that `import lengen` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lengen.config import RunConfig
    from lengen.positions.scheme import scheme_named
    from lengen.results.store import RunFolder
    from lengen.tasks import TASKS
    from lengen.train.loop import load_decoder
    from lengen.train.loop import train as train_run

__version__ = "0.1.0"
__all__ = ["TASKS", "RunConfig", "RunFolder", "load_decoder", "scheme_named", "train_run"]

_HOMES = {
    "RunConfig": ("lengen.config", "RunConfig"),
    "RunFolder": ("lengen.results.store", "RunFolder"),
    "TASKS": ("lengen.tasks", "TASKS"),
    "load_decoder": ("lengen.train.loop", "load_decoder"),
    "scheme_named": ("lengen.positions.scheme", "scheme_named"),
    "train_run": ("lengen.train.loop", "train"),  # `lengen.train` is the package it lives in
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lengen' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
