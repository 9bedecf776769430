"""The libraries for text are an extra."""

from typing import Any

from lengen.extras import extra_module


def language_module(name: str) -> Any:
    return extra_module(name, "language")
