"""Libraries of an extra: imported where they are used, with one sentence if they are not there."""

from importlib import import_module
from typing import Any


def how_to_install(extra: str) -> str:
    return f"in lengen's folder, pip install -e '.[{extra}]'"


def extra_module(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ValueError(f"this needs {package}, which is not installed; {how_to_install(extra)}") from error
