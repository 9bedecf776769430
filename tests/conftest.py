"""Shapes in signatures are checked while the tests run: jaxtyping's annotations, enforced by beartype."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
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
def start_lengen() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `lengen` in a process group of its own, where Ctrl-C works even if the tests run in the background."""
    children = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "lengen", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        children.append(child)
        return child

    yield start
    for child in children:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


@pytest.fixture
def start_torchrun() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `lengen` in several processes. They are not in the launcher's group, so it is asked to end them itself."""
    launchers = []

    def start(num_processes: int, *arguments: str) -> subprocess.Popen[str]:
        launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(num_processes), "-m", "lengen"]
        launcher = subprocess.Popen([sys.executable, "-m", *launch, *arguments], stderr=subprocess.PIPE, text=True)
        launchers.append(launcher)
        return launcher

    yield start
    for launcher in launchers:
        if launcher.poll() is None:
            launcher.terminate()
            launcher.communicate(timeout=60)


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
