"""The libraries for text are an extra: imported where they are used, with one sentence if they are not there."""

from importlib import import_module
from typing import Any

INSTALL = "in lengen's folder, pip install -e '.[language]'"


def language_module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ValueError(f"this needs {package}, which is not installed; {INSTALL}") from error
