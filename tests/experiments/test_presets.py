"""Presets say what Tables 2–4 say, and every one of them runs."""

import pytest

from lengen.config import differing_settings
from lengen.experiments.presets import PRESETS, RANGES, default_config, plain_name, preset_config
from lengen.positions import SCHEMES, scheme_named
from lengen.tasks import TASKS

TABLES = {  # transcribed from the paper: min, max training length; min, max test length; batch; test points; L_max
    "sparse-parity": (20, 50, 20, 500, 64, 512, 510),
    "parity-scratchpad": (10, 40, 10, 200, 64, 192, 210),
    "variable-assignment": (20, 60, 20, 200, 32, 192, 230),
}
NUM_RUNS = {"fig1": 1, "fig7": 1, "fig2": 10, "fig8a": 3, "fig8b": 3, "fig3a": 3, "fig3b": 3, "fig3c": 10, "fig3d": 3}
ENCODERS = {"fig1": "rope", "fig7": "rope", "fig2": "ape", "fig8a": "ape", "fig8b": "rope"} | {
    "fig3a": "ape",
    "fig3b": "ape",
    "fig3c": "rope",
    "fig3d": "rope",
}


@pytest.mark.parametrize("name", PRESETS)
def test_paper_scale_is_the_paper_s_tables(name):
    config = preset_config(name, "paper")
    figure = plain_name(name).split("-")[0]  # the same arm but for one thing
    measured = (
        config.min_length,
        config.max_length,
        min(config.eval_lengths),
        max(config.eval_lengths),
        config.batch_size,
        config.eval_examples,
        config.scheme.assigner.max_position_id,
    )
    assert measured == TABLES[config.task.name]
    assert (config.steps, config.learning_rate, config.weight_decay) == (50_000, 5e-5, 0.1)
    assert (config.warmup_steps, config.schedule) == (300, "linear")
    width = 2048 if name.startswith("wide") else 1024
    assert (config.model.num_layers, config.model.num_heads, config.model.width) == (12, 16, width)
    assert config.scheme.encoder.name == ENCODERS[figure]
    assert PRESETS[name].num_paper_runs == NUM_RUNS[figure]
    if config.scheme.encoder.name == "rope":
        assert config.scheme.encoder.rotary_fraction == 0.25


def test_every_arm_of_the_paper_is_there():
    expected = {f"fig{figure}-k{k}" for figure, k in ((7, 4), (7, 6), (1, 8), (1, 10), (7, 12))}
    expected |= {f"fig{figure}-jump{jump}" for figure in ("2", "8a", "8b") for jump in (1, 2, 3, 4)}
    expected |= {f"fig3{panel}-depth{depth}" for panel in "abcd" for depth in (2, 3, 4, 5)}
    of_the_paper = {name for name in PRESETS if name.startswith("fig")}
    assert expected == {name for name in of_the_paper if not name.endswith("-curriculum")}
    assert {f"{name}-curriculum" for name in expected if "-k" in name} == of_the_paper - expected


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("sharp")])
def test_sharpened_arms_differ_from_the_paper_s_by_that_alone(name, scale):
    sharpened, plain = preset_config(name, scale), preset_config(plain_name(name), scale)
    num_keys = plain.task.num_tokens(plain.max_length)
    assert differing_settings(sharpened, plain) == {"model.sharpen_from": (num_keys, None)}


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("wide")])
def test_wide_arms_differ_from_the_paper_s_by_that_alone(name, scale):
    wide, plain = preset_config(name, scale), preset_config(plain_name(name), scale)
    assert differing_settings(wide, plain) == {"model.width": (2 * plain.model.width, plain.model.width)}


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_valid_config(name, scale):
    config = preset_config(name, scale)
    assert config.task.num_targets(config.max_length) == 1 or config.headline_metric != "last-token"


def test_the_scales_of_one_arm_share_data_and_scheme():
    for name in PRESETS:
        cpu, paper = preset_config(name, "cpu"), preset_config(name, "paper")
        assert cpu.task == paper.task
        assert cpu.scheme.assigner == paper.scheme.assigner
        assert cpu.training_lengths == paper.training_lengths
        assert cpu.eval_lengths == paper.eval_lengths


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_defaults_fit_every_task_with_every_scheme(task, scheme):
    config = default_config(task, scheme_named(scheme))
    assert config.max_length < max(RANGES[task].eval_lengths)
