"""Everything that decides a run, as one frozen dataclass, and its way to JSON and back."""

import dataclasses
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from lengen.checks import check_choices, require, unknown_name
from lengen.model.config import ModelConfig
from lengen.positions.assign import ASSIGNERS
from lengen.positions.scheme import ENCODERS, Scheme
from lengen.tasks import TASKS, Task


@dataclass(frozen=True)
class RunConfig:
    task: Task
    scheme: Scheme
    model: ModelConfig = field(default_factory=ModelConfig)
    seed: int = 0

    # Data: lengths are drawn uniformly from those between the two that fit the task.
    min_length: int = 10
    max_length: int = 40
    batch_size: int = 64
    lengths_per_batch: int = 1  # a batch is this many equal groups, each of one length: no padding
    curriculum_threshold: float = 0.0  # running accuracy at which a task's next stage begins; 0: no curriculum

    # Optimisation. AdamW decays matrices only, as the Hugging Face trainer does.
    steps: int = 2_000
    learning_rate: float = 1e-3
    schedule: Literal["linear", "cosine"] = "linear"
    warmup_steps: int = 100
    weight_decay: float = 0.1
    clip_norm: float = 1.0
    position_loss_weight: float = 1.0
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False

    # Measuring: lengths beyond training are reported, never selected on.
    eval_lengths: tuple[int, ...] = (10, 20, 40, 60, 80)
    eval_examples: int = 192
    eval_seed: int = 0
    eval_every: int = 500
    log_every: int = 50
    checkpoint_every: int = 500

    def __post_init__(self) -> None:
        check_choices(self)
        check_numbers(
            self,
            at_least_one=(
                "batch_size",
                "lengths_per_batch",
                "steps",
                "eval_examples",
                "eval_every",
                "log_every",
                "checkpoint_every",
            ),
            not_negative=(
                "seed",
                "eval_seed",
                "warmup_steps",
                "weight_decay",
                "position_loss_weight",
                "curriculum_threshold",
            ),
            positive=("learning_rate", "clip_norm"),
        )
        require(
            self.batch_size % self.lengths_per_batch == 0,
            f"batch_size={self.batch_size} is not a multiple of lengths_per_batch={self.lengths_per_batch}",
            "change one of them",
        )
        require(
            self.curriculum_threshold < 1,
            f"curriculum_threshold={self.curriculum_threshold} is an accuracy that cannot be passed",
            "use a number below 1, e.g. 0.95",
        )
        require(
            not self.curriculum_threshold or self.task.num_stages > 1,
            f"curriculum_threshold={self.curriculum_threshold} has no meaning: {self.task.name} has a single stage",
            "drop it",
        )
        for length in self.training_lengths:
            self.scheme.assigner.check_training_length(self.task, length)
        for length in self.eval_lengths:
            try:
                self.check_test_length(length)
            except ValueError as error:
                raise ValueError(f"of the lengths to be tested at (eval_lengths), one cannot be: {error}") from error

    @cached_property  # asked for at every step
    def training_lengths(self) -> tuple[int, ...]:
        return self.task.at_stage(self.task.num_stages).lengths_between(self.min_length, self.max_length)

    def check_test_length(self, length: int) -> None:
        self.task.check_length(length)
        self.scheme.check_test_length(self.task, length)

    @property
    def headline_metric(self) -> str:
        """The measure the paper plots for such a run; each equals real decoding from one forward pass."""
        if self.scheme.assigner.predicts_ids:
            return "joint"
        return "last-token" if self.task.num_targets(self.max_length) == 1 else "exact-tokens"

    @property
    def arm(self) -> str:
        """A digest of all that decides results but the seed: runs of one arm differ by their seed alone."""
        return digest_without(config_to_dict(self), ("seed", *_BOOKKEEPING))

    @property
    def run_id(self) -> str:
        return f"{self.arm}-s{self.seed}"


# Fields that decide what is reported, not what is computed: a resumed run may change them.
_BOOKKEEPING = ("eval_lengths", "eval_examples", "eval_seed", "eval_every", "log_every", "checkpoint_every")


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in shallow_fields(config).items():
        record[name] = list(value) if isinstance(value, tuple) else value
    record["task"] = named(config.task.name, config.task)
    record["scheme"] = {
        "assigner": named(config.scheme.assigner.name, config.scheme.assigner),
        "encoder": named(config.scheme.encoder.name, config.scheme.encoder),
    }
    record["model"] = config.model.to_dict()
    return record


def config_from_dict(record: dict[str, Any]) -> RunConfig:
    if "corpus" in record:
        raise ValueError(
            "this is a language model's run, which has no task; use `lengen lm` or `lengen context` for it"
        )
    try:
        plain = dict(record)
        return RunConfig(
            task=_from_named("task", plain.pop("task"), TASKS),
            scheme=scheme_from_dict(plain.pop("scheme")),
            model=ModelConfig(**plain.pop("model")),
            eval_lengths=tuple(plain.pop("eval_lengths")),
            **plain,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the run's config cannot be read ({error}); was it written by another version?") from error


def scheme_from_dict(record: dict[str, Any]) -> Scheme:
    return Scheme(
        _from_named("assigner", record["assigner"], ASSIGNERS), _from_named("encoder", record["encoder"], ENCODERS)
    )


def first_difference(saved: RunConfig, asked: RunConfig) -> str | None:
    """The first setting that would change results, in words, or None if `asked` continues `saved` exactly."""
    return difference_between(config_to_dict(saved), config_to_dict(asked), _BOOKKEEPING)


def difference_between(saved: dict[str, Any], asked: dict[str, Any], ignored: Collection[str]) -> str | None:
    for name, (old, new) in _differences(saved, asked, ignored).items():
        return f"{name} is {old!r} in the run and {new!r} here"
    return None


def differing_settings(one: RunConfig, other: RunConfig) -> dict[str, tuple[Any, Any]]:
    """All settings that would change results and are not the same in both, by dotted name."""
    return _differences(config_to_dict(one), config_to_dict(other), _BOOKKEEPING)


def _differences(one: dict[str, Any], other: dict[str, Any], ignored: Collection[str]) -> dict[str, tuple[Any, Any]]:
    left, right = _flatten(one), _flatten(other)
    return {
        name: (left.get(name), right.get(name))
        for name in sorted(left.keys() | right.keys())
        if name not in ignored and left.get(name) != right.get(name)
    }


def digest_without(record: dict[str, Any], ignored: Collection[str]) -> str:
    kept = {name: value for name, value in record.items() if name not in ignored}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def check_numbers(
    config: Any, at_least_one: Collection[str], not_negative: Collection[str], positive: Collection[str]
) -> None:
    for name in at_least_one:
        value = getattr(config, name)
        require(value >= 1, f"{name}={value} is too small", "use at least 1")
    for name in not_negative:
        value = getattr(config, name)
        require(value >= 0, f"{name}={value} is negative", "use 0 or more")
    for name in positive:
        value = getattr(config, name)
        require(value > 0, f"{name}={value} is not positive", "use a number above 0")


def shallow_fields(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass as they are, without descending into nested ones."""
    return {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance)}


def named(name: str, instance: Any) -> dict[str, Any]:
    return {"name": name, **shallow_fields(instance)}


def _from_named(kind: str, record: dict[str, Any], known: dict[str, type[Any]]) -> Any:
    fields = dict(record)
    name = fields.pop("name")
    if name not in known:
        raise unknown_name(kind, name, known)
    return known[name](**fields)


def _flatten(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
