"""Shapes in signatures are checked while the tests run: jaxtyping's annotations, enforced by beartype."""

from dataclasses import replace
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

install_import_hook("lengen", "beartype.beartype")

import torch  # noqa: E402

from lengen.config import RunConfig  # noqa: E402
from lengen.experiments.presets import preset_config  # noqa: E402
from lengen.positions import scheme_named  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture
def smoke_config() -> RunConfig:
    """Seconds of training: parity with scratchpad under PPC."""
    return preset_config("fig2-jump1", "smoke")


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned short lengths and fails on long ones, so that measures are neither all 0 nor all 1."""
    from lengen.model.config import ModelConfig
    from lengen.results import RunFolder
    from lengen.train.loop import train

    config = replace(
        preset_config("fig2-jump1", "smoke"),
        model=ModelConfig(num_layers=2, num_heads=2, width=64),
        scheme=replace(
            scheme_named("ppc"), assigner=replace(scheme_named("ppc").assigner, max_position_id=40, shift_reserved=True)
        ),
        min_length=4,
        max_length=12,
        batch_size=32,
        steps=300,
        warmup_steps=20,
        learning_rate=5e-3,
        eval_lengths=(6, 12),
        eval_every=150,
        checkpoint_every=100,
    )
    path = tmp_path_factory.mktemp("trained") / "run"
    train(config, RunFolder(path), quiet=True)
    return path
