"""Everything that decides a language run, as one frozen dataclass, and its way to JSON and back."""

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lengen.checks import check_choices, require
from lengen.config import (
    check_numbers,
    difference_between,
    digest_without,
    named,
    scheme_from_dict,
    shallow_fields,
)
from lengen.language.packed import CorpusStamp
from lengen.model.config import ModelConfig
from lengen.positions.assign import Contiguous, Pose
from lengen.positions.scheme import Rope, Scheme

FULL_ROPE = Rope(rotary_fraction=1.0)
DEFAULT_FIRST = Scheme(Contiguous(), FULL_ROPE)
DEFAULT_LAST = Scheme(Pose(max_position_id=128), FULL_ROPE)


@dataclass(frozen=True)
class LanguageConfig:
    corpus: CorpusStamp
    first_scheme: Scheme = DEFAULT_FIRST  # up to `first_steps`
    scheme: Scheme = DEFAULT_LAST  # from then on, and at test
    model: ModelConfig = field(default_factory=ModelConfig)
    seed: int = 0

    context: int = 64
    batch_size: int = 32
    microbatch_size: int = 256  # the most windows a process takes in one pass
    first_steps: int = 700
    steps: int = 1_000

    learning_rate: float = 2e-3
    schedule: Literal["linear", "cosine"] = "cosine"
    warmup_steps: int = 100
    weight_decay: float = 0.0  # Table 5
    clip_norm: float = 1.0
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False

    eval_windows: int = 128  # of the validation text
    eval_every: int = 500
    log_every: int = 50
    checkpoint_every: int = 250

    def __post_init__(self) -> None:
        check_choices(self)
        check_numbers(
            self,
            at_least_one=(
                "context",
                "batch_size",
                "microbatch_size",
                "steps",
                "eval_windows",
                "eval_every",
                "log_every",
                "checkpoint_every",
            ),
            not_negative=("seed", "first_steps", "warmup_steps", "weight_decay"),
            positive=("learning_rate", "clip_norm"),
        )
        require(
            self.first_steps <= self.steps,
            f"first_steps={self.first_steps} is beyond steps={self.steps}",
            "give --first-steps, too",
        )
        for scheme in (self.first_scheme, self.scheme):
            scheme.assigner.check_num_tokens(self.context)
            require(
                not scheme.assigner.predicts_ids and scheme.assigner.name != "coupled",
                f"text has no coupled ids, which {scheme.name} needs",
                "use contiguous, shifted, pose or randomized ids",
            )
            require(
                not scheme.encoder.has_weights,
                f"{scheme.encoder.name} has learned weights, which would be lost between the phases",
                "use nope, rope or alibi",
            )

        both_rotate = isinstance(self.first_scheme.encoder, Rope) and isinstance(self.scheme.encoder, Rope)
        require(
            both_rotate or self.first_scheme.encoder == self.scheme.encoder,
            f"the encoder cannot change from {self.first_scheme.encoder.name} to {self.scheme.encoder.name}",
            "use the same in both phases",
        )

    @property
    def position_loss_weight(self) -> float:
        return 0.0  # text has no ids to predict

    def scheme_at(self, step: int) -> Scheme:
        """The scheme of the update that is made after `step` steps."""
        return self.first_scheme if step < self.first_steps else self.scheme

    @property
    def arm(self) -> str:
        """A digest of all that decides results but the seed: runs of one arm differ by their seed alone."""
        record = config_to_dict(self) | {"corpus": self.corpus.digest}
        return digest_without(record, ("seed", *_BOOKKEEPING))

    @property
    def run_id(self) -> str:
        return f"{self.arm}-s{self.seed}"


_BOOKKEEPING = ("eval_windows", "eval_every", "log_every", "checkpoint_every", "microbatch_size")


def config_to_dict(config: LanguageConfig) -> dict[str, Any]:
    record = shallow_fields(config)
    for name in ("first_scheme", "scheme"):
        scheme = record[name]
        record[name] = {
            "assigner": named(scheme.assigner.name, scheme.assigner),
            "encoder": named(scheme.encoder.name, scheme.encoder),
        }
    record["model"] = config.model.to_dict()
    record["corpus"] = dataclasses.asdict(config.corpus)
    return record


def config_from_dict(record: dict[str, Any]) -> LanguageConfig:
    try:
        plain = dict(record)
        return LanguageConfig(
            corpus=CorpusStamp(**plain.pop("corpus")),
            first_scheme=scheme_from_dict(plain.pop("first_scheme")),
            scheme=scheme_from_dict(plain.pop("scheme")),
            model=ModelConfig(**plain.pop("model")),
            **plain,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no language run of this version ({error}); give one of `lengen lm train`") from error


def first_difference(saved: LanguageConfig, asked: LanguageConfig) -> str | None:
    """The first setting that would change results, in words, or None if `asked` continues `saved` exactly."""
    return difference_between(config_to_dict(saved), config_to_dict(asked), (*_BOOKKEEPING, "corpus.name"))


def first_phase_difference(saved: LanguageConfig, asked: LanguageConfig) -> str | None:
    """The same for the first phase alone, which runs that differ in their last one share."""
    return first_difference(replace(saved, scheme=asked.scheme), asked)
