"""Training is a pure function of its config: resumed = uninterrupted bit for bit, and nothing half-written is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lengen.config import config_from_dict, config_to_dict
from lengen.experiments.presets import preset_config
from lengen.results import RunFolder
from lengen.tasks import SparseParity
from lengen.tasks.sparse_parity import FIRST_MARKER
from lengen.train import loop, optimise, record
from lengen.train.curriculum import Curriculum
from lengen.train.loop import build_decoder, train, training_batches
from lengen.train.optimise import RunIsHeld, held
from lengen.train.update import NonFiniteLoss, build_optimizer, training_step

GOLDEN = Path(__file__).parent.parent / "golden" / "loss.json"


def weights(folder: RunFolder) -> dict[str, torch.Tensor]:
    return load_file(folder.checkpoint_file)


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def interrupt_after(monkeypatch: pytest.MonkeyPatch, num_steps: int, error: type[BaseException]) -> None:
    """Make the process 'die' in the middle of a step, without a chance to save."""
    real, calls = loop.training_step, iter(range(10**6))

    def dying_step(*args):
        if next(calls) == num_steps:
            raise error
        return real(*args)

    monkeypatch.setattr(loop, "training_step", dying_step)


def test_resumed_equals_uninterrupted(smoke_config, tmp_path, monkeypatch):
    whole, broken = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "broken")
    train(smoke_config, whole, quiet=True)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 17, MemoryError)  # the last checkpoint is at step 10: seven steps are lost
        with pytest.raises(MemoryError):
            train(smoke_config, broken, quiet=True)
    assert broken.read_run()["step"] == 10
    train(smoke_config, broken, resume=True, quiet=True)
    assert same(weights(whole), weights(broken))  # optimizer state among them
    assert whole.read_rows() == broken.read_rows()
    assert whole.metrics_file.read_text() == broken.metrics_file.read_text()
    assert broken.read_run()["status"] == "finished"


def test_resume_check_can_fail(smoke_config, tmp_path):
    first, other = RunFolder(tmp_path / "first"), RunFolder(tmp_path / "other")
    train(smoke_config, first, quiet=True)
    train(replace(smoke_config, seed=1), other, quiet=True)
    assert not same(weights(first), weights(other))
    assert first.metrics_file.read_text() != other.metrics_file.read_text()


def test_forgetting_the_optimizer_would_be_noticed(smoke_config, tmp_path, monkeypatch):
    whole, broken = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "broken")
    train(smoke_config, whole, quiet=True)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 17, MemoryError)
        with pytest.raises(MemoryError):
            train(smoke_config, broken, quiet=True)
    real = optimise.load_checkpoint
    monkeypatch.setattr(optimise, "load_checkpoint", lambda path, model, optimizer: real(path, model))
    train(smoke_config, broken, resume=True, quiet=True)
    assert not same(weights(whole), weights(broken))


def test_resuming_before_the_first_checkpoint_starts_over(smoke_config, tmp_path, monkeypatch):
    whole, broken = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "broken")
    train(smoke_config, whole, quiet=True)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 3, MemoryError)
        with pytest.raises(MemoryError):
            train(smoke_config, broken, quiet=True)
    train(smoke_config, broken, resume=True, quiet=True)
    assert same(weights(whole), weights(broken))


def test_a_finished_run_is_left_alone(smoke_config, tmp_path):
    folder = RunFolder(tmp_path / "run")
    train(smoke_config, folder, quiet=True)
    before = {path: path.read_bytes() for path in (folder.run_file, folder.rows_file, folder.checkpoint_file)}
    assert train(smoke_config, folder, resume=True, quiet=True).status == "finished"
    assert {path: path.read_bytes() for path in before} == before


def test_an_existing_run_is_never_overwritten_by_accident(smoke_config, tmp_path):
    folder = RunFolder(tmp_path / "run")
    train(smoke_config, folder, quiet=True)
    with pytest.raises(ValueError, match="--resume or replace it with --overwrite"):
        train(smoke_config, folder, quiet=True)
    other = replace(smoke_config, seed=5)
    train(other, folder, overwrite=True, quiet=True)
    assert folder.read_run()["seed"] == 5
    assert {row.run for row in folder.read_rows()} == {other.run_id}


def test_a_finished_run_needs_no_checkpoint(smoke_config, tmp_path):
    folder = RunFolder(tmp_path / "run")
    train(smoke_config, folder, quiet=True)
    folder.checkpoint_file.unlink()
    before = folder.metrics_file.read_text()
    assert train(smoke_config, folder, resume=True, quiet=True).status == "finished"
    assert folder.metrics_file.read_text() == before


def test_an_unfinished_run_without_its_checkpoint_is_not_started_over(smoke_config, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    with monkeypatch.context() as patch:
        interrupt_after(patch, 17, MemoryError)
        with pytest.raises(MemoryError):
            train(smoke_config, folder, quiet=True)
    folder.checkpoint_file.unlink()
    with pytest.raises(ValueError, match="has lost its checkpoint"):
        train(smoke_config, folder, resume=True, quiet=True)


def test_a_checkpoint_of_another_run_is_not_gone_on_from(smoke_config, tmp_path, monkeypatch):
    folder, other = RunFolder(tmp_path / "run"), replace(smoke_config, seed=5)
    train(smoke_config, folder, quiet=True)
    folder.run_file.unlink()
    with monkeypatch.context() as patch:
        interrupt_after(patch, 3, MemoryError)
        with pytest.raises(MemoryError):
            train(other, folder, quiet=True)
    with pytest.raises(ValueError, match=f"is of another run, {smoke_config.run_id}"):
        train(other, folder, resume=True, quiet=True)


def test_what_is_left_of_a_discarded_run_is_no_run(smoke_config, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    train(smoke_config, folder, quiet=True)
    with monkeypatch.context() as patch:
        patch.setattr(optimise, "drop_shards", lambda folder: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(smoke_config, folder, overwrite=True, quiet=True)
    with pytest.raises(ValueError, match="is damaged"):
        train(smoke_config, folder, resume=True, quiet=True)
    train(smoke_config, folder, overwrite=True, quiet=True)
    assert folder.read_run()["status"] == "finished"


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_milestone_is_kept_even_if_the_run_is_stopped_there(is_stopped, smoke_config, tmp_path, monkeypatch):
    class Staged(loop.TaskWork):
        milestone = 15

    real, calls = loop.training_step, iter(range(10**6))

    def training_step(*args):
        if next(calls) == 14 and is_stopped:
            signal.raise_signal(signal.SIGTERM)
        return real(*args)

    monkeypatch.setattr(loop, "training_step", training_step)
    folder = RunFolder(tmp_path / "run")
    outcome = optimise.optimise(Staged(smoke_config), folder, quiet=True)
    assert (outcome.status == "interrupted") == is_stopped
    assert folder.milestone.checkpoint_file.exists()


def test_a_process_that_dies_after_its_rows_does_not_double_them(smoke_config, tmp_path, monkeypatch):
    folder, append_rows = RunFolder(tmp_path / "run"), RunFolder.append_rows

    def append_and_die(folder, rows):
        append_rows(folder, rows)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "append_rows", append_and_die)
        with pytest.raises(MemoryError):
            train(smoke_config, folder, quiet=True)
    rows = folder.read_rows()
    assert rows
    train(smoke_config, folder, resume=True, quiet=True)
    assert folder.read_rows() == rows


def test_one_process_at_a_time_trains_a_run(smoke_config, tmp_path):
    folder = RunFolder(tmp_path / "run")
    with held(folder), pytest.raises(RunIsHeld, match="being trained by another process; wait for it"):
        train(smoke_config, folder, quiet=True)
    assert not folder.exists(), "the second has written nothing"
    assert train(smoke_config, folder, quiet=True).status == "finished"


def test_a_process_that_dies_lets_go_of_its_run(smoke_config, tmp_path):
    code = (
        f"from lengen.train.optimise import *; from pathlib import Path\nwith held(RunFolder(Path({str(tmp_path)!r}))):"
    )
    holder = subprocess.Popen([sys.executable, "-c", code + " print('held', flush=True); input()"], stdin=-1, stdout=-1)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(RunIsHeld):
        train(smoke_config, RunFolder(tmp_path), quiet=True)
    holder.kill()
    holder.communicate()
    assert train(smoke_config, RunFolder(tmp_path), quiet=True).status == "finished"


def test_resume_with_another_config_is_refused(smoke_config, tmp_path):
    folder = RunFolder(tmp_path / "run")
    train(smoke_config, folder, quiet=True)
    with pytest.raises(ValueError, match=r"learning_rate is 0\.001 in the run and 0\.1 here"):
        train(replace(smoke_config, learning_rate=0.1), folder, resume=True, quiet=True)
    with pytest.raises(ValueError, match="no run to resume"):
        train(smoke_config, RunFolder(tmp_path / "nothing"), resume=True, quiet=True)


def test_a_non_finite_loss_keeps_the_last_good_checkpoint(smoke_config, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    real = loop.training_batches

    def poisoned(config, step, task):
        if step == 15:
            with torch.no_grad():
                decoder_of(poisoned).embedding.weight.fill_(torch.nan)
        return real(config, step, task)

    def decoder_of(function):
        return function.decoder

    build = loop.build_decoder

    def remember(config):
        poisoned.decoder = build(config)
        return poisoned.decoder

    monkeypatch.setattr(loop, "training_batches", poisoned)
    monkeypatch.setattr(loop, "build_decoder", remember)
    with pytest.raises(NonFiniteLoss, match="the last checkpoint is kept: lower --learning-rate"):
        train(smoke_config, folder, quiet=True)
    assert folder.read_run()["step"] == 10
    assert all(torch.isfinite(tensor).all() for tensor in weights(folder).values())


def test_a_non_finite_gradient_never_reaches_the_weights(smoke_config):
    decoder = build_decoder(smoke_config)
    optimizer = build_optimizer(decoder, 0.1)
    decoder.token_head.weight.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(NonFiniteLoss):
        training_step(decoder, optimizer, training_batches(smoke_config, 0, smoke_config.task), 1e-3, smoke_config)
    assert all(torch.isfinite(parameter).all() for parameter in decoder.parameters())


def test_batches_are_a_pure_function_of_seed_and_step(smoke_config):
    config = replace(smoke_config, lengths_per_batch=4)
    for step in (0, 7, 7000):
        first, again = training_batches(config, step, config.task), training_batches(config, step, config.task)
        assert all(torch.equal(a.token_ids, b.token_ids) for a, b in zip(first, again, strict=True))
        assert all(torch.equal(a.position_ids, b.position_ids) for a, b in zip(first, again, strict=True))
    later = training_batches(config, 8, config.task)
    assert [batch.token_ids.tolist() for batch in first] != [batch.token_ids.tolist() for batch in later]


def test_groups_weigh_targets_alike(smoke_config):
    """Two groups in one step give the gradient of the mean over all their targets, not the mean of two means."""
    batches = training_batches(replace(smoke_config, lengths_per_batch=2), 3, smoke_config.task)
    assert batches[0].target_tokens.shape != batches[1].target_tokens.shape
    decoder = build_decoder(smoke_config)
    loss, _ = training_step(decoder, build_optimizer(decoder, 0.0), batches, 0.0, smoke_config)
    losses, counts = [], []
    for batch in batches:
        alone, _ = training_step(decoder, build_optimizer(decoder, 0.0), [batch], 0.0, smoke_config)
        losses.append(alone)
        counts.append(batch.target_tokens.numel())
    assert loss == pytest.approx(np.average(losses, weights=counts), rel=1e-5)
    assert loss != pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_twenty_golden_losses(smoke_config, precision):
    """A refactor shows identical losses. `python tests/train/test_loop.py` rewrites them when numerics shall change."""
    measured = twenty_losses(replace(smoke_config, precision=precision))
    tolerance = 1e-5 if precision == "fp32" else 5e-3  # what kernels of other CPU generations round differently
    assert measured == pytest.approx(json.loads(GOLDEN.read_text())[precision], rel=tolerance)


def test_golden_losses_can_fail(smoke_config):
    measured = twenty_losses(replace(smoke_config, learning_rate=1.01e-3))
    assert measured != pytest.approx(json.loads(GOLDEN.read_text())["fp32"], rel=1e-5)


def twenty_losses(config) -> list[float]:
    decoder = build_decoder(config)
    optimizer = build_optimizer(decoder, config.weight_decay)
    return [
        training_step(decoder, optimizer, training_batches(config, step, config.task), config.learning_rate, config)[0]
        for step in range(20)
    ]


def test_the_record_says_what_was_run(smoke_config, tmp_path):
    folder = RunFolder(tmp_path / "run")
    train(smoke_config, folder, quiet=True)
    record = folder.read_run()
    assert config_from_dict(record["config"]) == smoke_config
    assert record["versions"]["torch"] == torch.__version__
    assert record["commit"] is None or len(record["commit"].removesuffix("-changed")) == 40
    assert record["wall_seconds"] > 0
    assert any(folder.events_folder.iterdir())
    steps = [json.loads(line)["step"] for line in folder.metrics_file.read_text().splitlines()]
    assert steps == sorted(steps)
    assert steps[-1] == smoke_config.steps


def test_the_record_tells_what_a_run_went_on_with(smoke_config, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(record, "source_commit", lambda: "a" * 40)
        interrupt_after(patch, 17, MemoryError)
        with pytest.raises(MemoryError):
            train(smoke_config, folder, quiet=True)
    monkeypatch.setattr(record, "source_commit", lambda: "b" * 40)
    train(smoke_config, folder, resume=True, quiet=True)
    run = folder.read_run()
    assert run["commit"] == "b" * 40
    (before,) = run["before"]
    assert (before["commit"], before["until_step"]) == ("a" * 40, 10)


def test_a_change_anywhere_in_the_package_marks_its_commit(tmp_path):
    """In a copy of the package: its folder is asked, not the file's that asks."""
    package = Path(record.__file__).parents[1]
    shutil.copytree(package, tmp_path / "lengen", ignore=shutil.ignore_patterns("__pycache__"))

    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t", *arguments], cwd=tmp_path, check=True)

    def commit_of_the_copy():
        command = [sys.executable, "-c", "from lengen.train.record import source_commit; print(source_commit())"]
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "a copy")
    assert "-changed" not in commit_of_the_copy()
    with (tmp_path / "lengen" / "tasks" / "base.py").open("a") as file:
        file.write("# changed\n")
    assert commit_of_the_copy().strip().endswith("-changed")


def test_compiled_training_gives_the_same_losses(smoke_config, tmp_path):
    """In processes of their own: the tests' shape checks cannot be compiled."""

    def losses(*flags):
        folder = RunFolder(tmp_path / "-".join(["run", *flags]))
        arguments = ["--preset", "fig2-jump1", "--scale", "smoke", "--steps", "2", "--log-every", "1", *flags]
        arguments += ["--min-length", "10", "--max-length", "10", "--eval-lengths", "10"]  # one shape: one compilation
        command = [sys.executable, "-m", "lengen", "train", *arguments, "--out", str(folder.path)]
        subprocess.run(command, check=True, capture_output=True)
        return [json.loads(line)["loss"] for line in folder.metrics_file.read_text().splitlines()]

    assert losses("--compile") == pytest.approx(losses(), rel=1e-4)


def test_a_curriculum_resumes_bit_for_bit(tmp_path, monkeypatch):
    sparse = preset_config("fig7-k4", "smoke")
    config = replace(
        sparse, curriculum_threshold=0.2, steps=30, eval_lengths=(20,)
    )  # chance passes: stages must change
    whole, broken = RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "broken")
    train(config, whole, quiet=True)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 17, MemoryError)
        with pytest.raises(MemoryError):
            train(config, broken, quiet=True)
    train(config, broken, resume=True, quiet=True)
    assert same(weights(whole), weights(broken))
    stages = [json.loads(line).get("stage") for line in whole.metrics_file.read_text().splitlines()]
    assert len({stage for stage in stages if stage}) > 1


def test_a_curriculum_begins_with_the_easiest_stage():
    task = SparseParity(k_train=3)
    config = replace(preset_config("fig7-k4", "smoke"), task=task, curriculum_threshold=0.95)
    curriculum = Curriculum.start(config)
    assert curriculum.task(config) == SparseParity(k_train=1)
    for _ in range(200):
        curriculum = curriculum.after_step(0.9, config)
    assert curriculum.stage == 1  # not good enough
    for _ in range(60):
        curriculum = curriculum.after_step(1.0, config)
    assert curriculum.stage == 2
    for _ in range(200):
        curriculum = curriculum.after_step(1.0, config)
    assert curriculum.task(config) == task
    assert Curriculum.start(replace(config, curriculum_threshold=0.0)).task(config) == task


def test_training_never_draws_from_the_setting_of_a_test():
    config = replace(preset_config("fig7-k4", "smoke"), task=SparseParity(k_train=4, k_test=25), eval_lengths=(100,))
    assert config.training_lengths == preset_config("fig7-k4", "smoke").training_lengths
    curriculum = Curriculum.start(config)
    assert curriculum.task(config) == SparseParity(k_train=4)
    for batch in training_batches(config, 0, curriculum.task(config)):
        markers = batch.token_ids[:, 1 : batch.prompt_len - 1 : 2] - FIRST_MARKER + 1
        assert set((markers <= 10).sum(1).tolist()) <= {1, 2, 3, 4}


@pytest.mark.parametrize("threshold", [1.0, 95.0])
def test_a_threshold_that_cannot_be_passed_is_refused(threshold):
    with pytest.raises(ValueError, match="cannot be passed"):
        replace(preset_config("fig7-k4", "smoke"), curriculum_threshold=threshold)


def test_configs_survive_json(smoke_config):
    record = json.loads(json.dumps(config_to_dict(smoke_config)))
    assert config_from_dict(record) == smoke_config
    assert config_from_dict(record).arm == smoke_config.arm
    assert replace(smoke_config, seed=3).arm == smoke_config.arm
    assert replace(smoke_config, learning_rate=1e-4).arm != smoke_config.arm


if __name__ == "__main__":
    base = preset_config("fig2-jump1", "smoke")
    torch.set_num_threads(1)
    golden = {precision: twenty_losses(replace(base, precision=precision)) for precision in ("fp32", "bf16")}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
