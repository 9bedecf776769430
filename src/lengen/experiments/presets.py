"""The paper's synthetic arms, and some of ours, as Python functions: one preset an arm, each at three scales.

`paper` is Tables 2–4 as printed. `cpu` asks the same question of a model that one core trains in minutes. `smoke` only
shows that everything runs.
"""

from dataclasses import dataclass, replace
from typing import Any

from lengen.checks import unknown_name
from lengen.config import RunConfig
from lengen.model.config import PAPER_MODEL, ModelConfig
from lengen.positions import Scheme, scheme_named
from lengen.positions.assign import Predicted
from lengen.positions.scheme import LearnedAbsolute, Rope
from lengen.scale import Scale, known_scale
from lengen.tasks import TASKS, ParityScratchpad, SparseParity, Task, VariableAssignment


@dataclass(frozen=True)
class Ranges:
    """Training and test lengths, and the largest position id."""

    min_length: int
    max_length: int
    eval_lengths: tuple[int, ...]
    max_position_id: int


# The first three are Tables 2, 3 and 4; the others follow their proportions.
RANGES: dict[str, Ranges] = {
    "sparse-parity": Ranges(20, 50, (20, 30, 40, 50, *range(100, 501, 50)), 510),
    "parity-scratchpad": Ranges(10, 40, tuple(range(10, 201, 10)), 210),
    "variable-assignment": Ranges(20, 60, tuple(range(20, 201, 20)), 230),
    "string-reversal": Ranges(5, 20, tuple(range(5, 101, 5)), 210),
    "copy": Ranges(5, 20, tuple(range(5, 101, 5)), 210),
    "kgram-retrieval": Ranges(10, 40, tuple(range(10, 201, 10)), 210),
    "addition": Ranges(1, 20, tuple(range(5, 61, 5)), 200),
}

# App. E: what all of the paper's synthetic runs share.
PAPER_TRAINING: dict[str, Any] = {
    "model": PAPER_MODEL,
    "steps": 50_000,
    "learning_rate": 5e-5,
    "weight_decay": 0.1,
    "warmup_steps": 300,
    "schedule": "linear",
    "log_every": 100,
    "eval_every": 5_000,
    "checkpoint_every": 1_000,
}
PAPER_BATCH: dict[str, Any] = {  # Tables 2–4
    "sparse-parity": {"batch_size": 64, "eval_examples": 512},
    "parity-scratchpad": {"batch_size": 64, "eval_examples": 192},
    "variable-assignment": {"batch_size": 32, "eval_examples": 192},
}
# Parity starts with larger weights and a higher rate: with 0.64 and 1e-3 only jump 1 is learned at all, and with less
# than 1.6 jumps 3 and 4 stay at chance for thousands of steps, at training lengths already.
CPU_TRAINING: dict[str, Any] = {
    "sparse-parity": {"model": ModelConfig(4, 4, 64), "batch_size": 64, "steps": 4_000, "learning_rate": 1e-3},
    "parity-scratchpad": {
        "model": ModelConfig(2, 4, 128, init_scale=1.6),
        "batch_size": 64,
        "steps": 6_000,
        "learning_rate": 2e-3,
    },
    "variable-assignment": {
        "model": ModelConfig(3, 4, 128, init_scale=0.8),
        "batch_size": 32,
        "steps": 5_000,
        "learning_rate": 2e-3,
    },
}
SMOKE_TRAINING: dict[str, Any] = {
    "model": ModelConfig(1, 2, 32),
    "batch_size": 8,
    "steps": 20,
    "warmup_steps": 2,
    "eval_examples": 16,
    "eval_every": 10,
    "log_every": 10,
    "checkpoint_every": 10,
}


@dataclass(frozen=True)
class Preset:
    about: str
    paper_ref: str
    num_paper_runs: int
    task: Task
    scheme: Scheme
    curriculum_threshold: float = 0.0
    sharpened: bool = False  # attention as sharp among the keys of a test example as among those of training
    times_width: int = 1  # of the scale's model

    def at(self, scale: Scale) -> RunConfig:
        scheme = self.scheme
        if isinstance(scheme.encoder, Rope) and scale != "paper":
            # A quarter of a small model's head leaves a few frequencies only: it rotates whole heads.
            scheme = replace(scheme, encoder=replace(scheme.encoder, rotary_fraction=1.0))
        config = replace(arm(self.task, scheme, scale), curriculum_threshold=self.curriculum_threshold)
        if self.sharpened:
            num_keys = self.task.num_tokens(config.max_length)
            config = replace(config, model=replace(config.model, sharpen_from=num_keys))
        return replace(config, model=replace(config.model, width=self.times_width * config.model.width))


def arm(task: Task, scheme: Scheme, scale: Scale) -> RunConfig:
    """A task with a scheme at a scale: the paper's lengths, and the budget of that scale."""
    base = default_config(task.name, scheme)
    if scale == "paper":
        return replace(base, task=task, **PAPER_TRAINING, **PAPER_BATCH[task.name])
    if scale == "cpu":
        return replace(base, task=task, **CPU_TRAINING[task.name])
    return replace(base, task=task, **SMOKE_TRAINING, eval_lengths=base.eval_lengths[:4])


def default_config(task_name: str, scheme: Scheme) -> RunConfig:
    """A task under its default settings, on its own lengths, with ids enough for all of them."""
    ranges = RANGES[task_name]
    return RunConfig(
        task=TASKS[task_name](),
        scheme=replace(scheme, assigner=replace(scheme.assigner, max_position_id=ranges.max_position_id)),
        min_length=ranges.min_length,
        max_length=ranges.max_length,
        eval_lengths=ranges.eval_lengths,
    )


def preset_config(name: str, scale: str) -> RunConfig:
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS, "see `lengen presets`")
    return PRESETS[name].at(known_scale(scale))


VARIANTS = {"sharp": "sharpened", "wide": "twice as wide"}  # beyond the paper, by how a name begins


def variant_of(name: str) -> str | None:
    """What an arm or figure beyond the paper changes of the one that it is named after; None: it is the paper's."""
    return next((words for prefix, words in VARIANTS.items() if name.startswith(prefix)), None)


def plain_name(name: str) -> str:
    """Of an arm or figure beyond the paper: the one of the paper that it differs from in one thing."""
    for prefix in VARIANTS:
        name = name.replace(prefix, "fig", 1)
    return name


def _presets() -> dict[str, Preset]:
    presets: dict[str, Preset] = {}
    for k_train in (4, 6, 8, 10, 12):
        figure = 1 if k_train in (8, 10) else 7
        presets[f"fig{figure}-k{k_train}"] = Preset(
            f"sparse parity, RoPE + PoSE, K_train = {k_train}",
            f"Fig. {figure}",
            1,
            SparseParity(k_train=k_train),
            scheme_named("pose-rope"),
        )
        presets[f"fig{figure}-k{k_train}-curriculum"] = replace(
            presets[f"fig{figure}-k{k_train}"],
            about=f"sparse parity, RoPE + PoSE, K_train = {k_train}, k added one by one (not in the paper)",
            curriculum_threshold=0.95,
        )
    # E.2.1 shifts the whole list 0, 1, …, ℓ, 0, 1, …, ℓ. Taken at its word, that includes the separators' zeros.
    parity_ppc = Scheme(Predicted(shift_reserved=True), LearnedAbsolute())
    parity_arms: tuple[tuple[str, Scheme, str, int], ...] = (
        ("2", parity_ppc, "PPC", 10),
        ("8a", scheme_named("shifted-ape"), "shifted APE, no coupling", 3),
        ("8b", scheme_named("pose-rope"), "RoPE + PoSE", 3),
    )
    for figure_name, parity_scheme, words, num_runs in parity_arms:
        for jump in (1, 2, 3, 4):
            presets[f"fig{figure_name}-jump{jump}"] = Preset(
                f"parity with scratchpad, {words}, jump {jump}",
                f"Fig. {figure_name}",
                num_runs,
                ParityScratchpad(jump=jump),
                parity_scheme,
            )
    assignment_arms: tuple[tuple[str, str, str, int, bool], ...] = (
        ("3a", "ppc", "PPC", 3, True),
        ("3b", "shifted-ape", "shifted APE, no coupling", 3, True),
        ("3c", "pose-rope", "RoPE + PoSE, no scratchpad", 10, False),
        ("3d", "pose-rope", "RoPE + PoSE", 3, True),
    )
    for figure_name, scheme, words, num_runs, scratchpad in assignment_arms:
        for depth in (2, 3, 4, 5):
            presets[f"fig{figure_name}-depth{depth}"] = Preset(
                f"variable assignment, {words}, depth {depth}",
                f"Fig. {figure_name}",
                num_runs,
                VariableAssignment(depth=depth, scratchpad=scratchpad),
                scheme_named(scheme),
            )
    for name, preset in list(presets.items()):
        figure_name, _, variant = name.partition("-")
        if figure_name in ("fig2", "fig3a") or variant in ("k4-curriculum", "k6-curriculum"):
            presets[name.replace("fig", "sharp")] = replace(
                preset, about=f"{preset.about}, sharpened attention", paper_ref="beyond the paper", sharpened=True
            )
        if variant in ("k4-curriculum", "k6-curriculum"):
            presets[name.replace("fig", "wide")] = replace(
                preset, about=f"{preset.about}, twice as wide", paper_ref="beyond the paper", times_width=2
            )
    return presets


PRESETS: dict[str, Preset] = _presets()
