"""Settings from the command line: --task.jump 2, --model.width 64, --steps 1000, coerced by the field's own type."""

import argparse
import dataclasses
import typing
from typing import Any, Literal, TypeVar

from lengen.checks import unknown_name
from lengen.config import RunConfig
from lengen.model.config import ModelConfig
from lengen.positions import Scheme
from lengen.tasks import Task

SECTIONS = ("task", "assigner", "encoder", "model")
Overrides = dict[str, dict[str, str]]  # section -> field -> text
T = TypeVar("T")


def read_dotted_flags(arguments: list[str]) -> tuple[Overrides, list[str]]:
    """Split --section.field value (or =value) pairs from the other arguments."""
    overrides: Overrides = {}
    others: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.removeprefix("--").partition("=")
        section, dot, field = name.partition(".")
        if not argument.startswith("--") or not dot or section not in SECTIONS:
            others.append(argument)
            continue
        if not equals:
            following = next(rest, None)
            if following is None or following.startswith("--"):
                raise ValueError(f"{argument} needs a value; write {argument} VALUE")
            value = following
        overrides.setdefault(section, {})[field.replace("-", "_")] = value
    return overrides, others


def apply_overrides(config: RunConfig, overrides: Overrides, flat: dict[str, Any]) -> RunConfig:
    """The config with sections and flat fields replaced; validated once, as a whole."""
    task, scheme, model = override_parts(config, overrides)
    return dataclasses.replace(config, task=task, scheme=scheme, model=model, **flat)


def override_parts(config: RunConfig, overrides: Overrides) -> tuple[Task, Scheme, ModelConfig]:
    scheme = dataclasses.replace(
        config.scheme,
        assigner=replace_fields("assigner", config.scheme.assigner, overrides.get("assigner", {})),
        encoder=replace_fields("encoder", config.scheme.encoder, overrides.get("encoder", {})),
    )
    task = replace_fields("task", config.task, overrides.get("task", {}))
    return task, scheme, replace_fields("model", config.model, overrides.get("model", {}))


def replace_fields(section: str, instance: T, texts: dict[str, str]) -> T:
    values = {}
    hints = typing.get_type_hints(type(instance))
    names = [field.name for field in dataclasses.fields(instance)]  # type: ignore[arg-type]
    for name, text in texts.items():
        if name not in names:
            owner = getattr(instance, "name", section)
            if not names:
                raise ValueError(f"--{section}.{name}: {owner} has no settings; drop the flag")
            raise unknown_name(f"setting of {owner}", name, names)
        values[name] = coerce(hints[name], text, f"--{section}.{name}")
    return dataclasses.replace(instance, **values)  # type: ignore[type-var]


def coerce(hint: Any, text: str, flag: str) -> Any:
    """Text to a field's type: int, float, bool, str, one of a Literal, or a tuple of ints (as lengths)."""
    if typing.get_origin(hint) is Literal:
        choices = [str(choice) for choice in typing.get_args(hint)]
        if text not in choices:
            raise ValueError(f"{flag} {text!r} is not one of {', '.join(choices)}; choose one of them")
        return text
    if typing.get_origin(hint) is tuple:
        return parse_lengths(text, flag)
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{flag} {text!r} is neither true nor false; write one of the two")
        return text.lower() == "true"
    assert hint in (int, float, str), hint
    try:
        return hint(text)
    except ValueError as error:
        kind = "a whole number" if hint is int else "a number"
        raise ValueError(f"{flag} {text!r} is not {kind}; give one") from error


def parse_lengths(text: str, flag: str = "--lengths") -> tuple[int, ...]:
    """20:200:20 (inclusive), 10,20,40 or 80; parts can be mixed: 10,20:60:20."""
    lengths: list[int] = []
    for part in text.split(","):
        try:
            bounds = [int(bound) for bound in part.split(":")]
        except ValueError as error:
            raise ValueError(f"{flag} {text!r} is not a list of lengths; write 20:200:20 or 10,20,40") from error
        if len(bounds) == 1:
            lengths.append(bounds[0])
        elif len(bounds) <= 3 and bounds[0] <= bounds[1] and (len(bounds) == 2 or bounds[2] >= 1):
            lengths.extend(range(bounds[0], bounds[1] + 1, bounds[2] if len(bounds) == 3 else 1))
        else:
            raise ValueError(f"{flag} {part!r} is not a range; write START:STOP:STEP with START ≤ STOP and STEP ≥ 1")
    return tuple(dict.fromkeys(lengths))


def add_run_flags(
    parser: argparse.ArgumentParser, config_class: type[Any] = RunConfig, *, needs_preset: bool = False
) -> None:
    """One flag for each flat field of a run; only those given are set, so that a preset's values stay."""
    defaults = "the preset's" if needs_preset else "those of a run without --preset"
    group = parser.add_argument_group(f"run settings (defaults are {defaults})")
    hints = typing.get_type_hints(config_class)
    for field in dataclasses.fields(config_class):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            continue
        flag = "--" + field.name.replace("_", "-")
        if hint is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
            continue
        default = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
        told = None if needs_preset else f"default {default}"
        group.add_argument(flag, dest=f"run.{field.name}", default=argparse.SUPPRESS, metavar=_metavar(hint), help=told)


def run_flags(args: argparse.Namespace, config_class: type[Any] = RunConfig) -> dict[str, Any]:
    """The flat fields that were given, with their types."""
    hints = typing.get_type_hints(config_class)
    values = {}
    for key, value in vars(args).items():
        name = key.removeprefix("run.")
        if name != key:
            values[name] = coerce(hints[name], value, "--" + name.replace("_", "-"))
        elif hints.get(name) is bool:
            values[name] = value
    return values


def _metavar(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return "{" + ",".join(typing.get_args(hint)) + "}"
    if typing.get_origin(hint) is tuple:
        return "LENGTHS"
    return "N" if hint is int else "X"


def settings_of(cls: type[Any]) -> str:
    """A dataclass's fields with their defaults, for listings: jump=1."""
    return " ".join(f"{field.name}={_shown(field.default)}" for field in dataclasses.fields(cls))


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
