"""The arms of Sec. 5.3 and those that show why PoSE is needed, at three scales. `paper` is Table 5."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from lengen.checks import unknown_name
from lengen.language.config import FULL_ROPE, LanguageConfig
from lengen.language.packed import CorpusStamp
from lengen.model.config import ModelConfig
from lengen.positions.assign import Assigner, Contiguous, Pose
from lengen.positions.scheme import Scheme
from lengen.scale import Scale, known_scale

SHORT, LONG = 64, 128  # L and L̄ = 2L
PAPER_VOCABULARY = 32_000  # Llama-2's

# Table 5: 34,000 steps without PoSE and 15,000 with it; h_long has half the batch and 48,000 steps.
PAPER: dict[str, Any] = {
    "model": ModelConfig(num_layers=24, num_heads=32, width=2048),
    "batch_size": 8192,
    "microbatch_size": 256,
    "first_steps": 34_000,
    "steps": 49_000,
    "learning_rate": 1e-3,
    "warmup_steps": 5_000,
    "precision": "bf16",
    "eval_every": 1_000,
    "checkpoint_every": 1_000,
}
# 29.5 million tokens: one to three hours of one thread, by vocabulary and machine. Small batches: in a race of 32, 16
# and 8 windows, after as many tokens 16 were ahead of 32, and 8 of 16 by less than they cost (docs/exploration.md).
CPU: dict[str, Any] = {
    "model": ModelConfig(num_layers=4, num_heads=4, width=128),
    "batch_size": 16,
    "first_steps": 20_160,
    "steps": 28_800,
    "learning_rate": 2e-3,
    "warmup_steps": 600,
    "eval_every": 500,
    "checkpoint_every": 250,
}
SMOKE: dict[str, Any] = {
    "model": ModelConfig(num_layers=2, num_heads=2, width=32),
    "batch_size": 8,
    "first_steps": 14,
    "steps": 20,
    "learning_rate": 5e-3,
    "warmup_steps": 4,
    "eval_windows": 8,
    "eval_every": 10,
    "log_every": 5,
    "checkpoint_every": 5,
}
SCALES: dict[str, dict[str, Any]] = {"smoke": SMOKE, "cpu": CPU, "paper": PAPER}
LONG_STEPS = {"paper": 48_000}  # elsewhere as many as h_short


@dataclass(frozen=True)
class LanguagePreset:
    about: str
    last: Assigner  # ids of the last phase
    interpolation: Literal["none", "linear", "ntk", "yarn"] = "none"  # of the last phase
    context: int = SHORT
    has_first_phase: bool = True  # contiguous ids for the first 70 %

    def at(self, scale: Scale, corpus: CorpusStamp) -> LanguageConfig:
        settings = dict(SCALES[scale])
        if self.context == LONG:
            settings["batch_size"] //= 2
            settings["microbatch_size"] = settings.get("microbatch_size", 256) // 2
            settings["steps"] = LONG_STEPS.get(scale, settings["steps"])
        if not self.has_first_phase or self.context == LONG:
            settings["first_steps"] = 0
        encoder = FULL_ROPE
        if self.interpolation != "none":
            encoder = replace(encoder, interpolation=self.interpolation, factor=LONG / SHORT, trained_max_id=SHORT)
        contiguous = Contiguous(max_position_id=LONG)
        return LanguageConfig(
            corpus=corpus,
            first_scheme=Scheme(contiguous, FULL_ROPE),
            scheme=Scheme(self.last, encoder),
            context=self.context,
            **settings,
        )


PLAIN, POSE = Contiguous(max_position_id=LONG), Pose(max_position_id=LONG)
# Of the pairs of tokens that PoSE with ids below 128 trains, 1 % are 96 or more apart. Of those in a window of 128
# it is 6 %, and of those trained with ids below 192 as well.
BEYOND = Pose(max_position_id=LONG + SHORT)
LANGUAGE_PRESETS: dict[str, LanguagePreset] = {
    "short": LanguagePreset("h_short: context 64, the last 30 % of the steps with PoSE (Sec. 5.3)", POSE),
    "long": LanguagePreset("h_long: context 128, half the batch, no PoSE (Sec. 5.3)", PLAIN, context=LONG),
    "short-no-pose": LanguagePreset("context 64, never PoSE", PLAIN),
    "pose-from-scratch": LanguagePreset("context 64, PoSE from the first step", POSE, has_first_phase=False),
    "pose-beyond": LanguagePreset("h_short with PoSE ids beyond the 128 that are tested, up to 192", BEYOND),
    "pose-linear": LanguagePreset("h_short with linear interpolation in its PoSE phase", POSE, "linear"),
    "pose-ntk": LanguagePreset("h_short with NTK interpolation in its PoSE phase", POSE, "ntk"),
    "pose-yarn": LanguagePreset("h_short with YaRN interpolation in its PoSE phase", POSE, "yarn"),
    "pose-yarn-beyond": LanguagePreset("pose-yarn with PoSE ids up to 192", BEYOND, "yarn"),
}


def language_preset(name: str, scale: str, corpus: CorpusStamp) -> LanguageConfig:
    if name not in LANGUAGE_PRESETS:
        raise unknown_name("preset", name, LANGUAGE_PRESETS)
    return LANGUAGE_PRESETS[name].at(known_scale(scale), corpus)
