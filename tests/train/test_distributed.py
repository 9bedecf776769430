"""Two processes equal one, and a run goes on with another number of them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lengen.model.config import ModelConfig
from lengen.positions import scheme_named
from lengen.results import RunFolder
from lengen.train.checkpoint import latest_checkpoint
from lengen.train.distributed import ALONE, Processes
from lengen.train.loop import build_decoder, load_decoder, train, training_batches

sys.path.insert(0, str(Path(__file__).parent))
from ranks import train_until_lost, uneven_config

pytestmark = pytest.mark.xdist_group("processes")  # they share a slow fixture: one worker, one start


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """The same run in one process and in two, in every way; started once, because starting takes longest."""
    out = tmp_path_factory.mktemp("ranks")
    train(uneven_config(), RunFolder(out / "one"), quiet=True)
    for name in ("one-then-copies", "one-then-slices"):
        train_until_lost(RunFolder(out / name), ALONE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = Path(__file__).with_name("ranks.py")
    address = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), str(out)],
            env=os.environ | address | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [rank.communicate(timeout=120)[1] for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0, 0], errors
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    train(uneven_config(), RunFolder(out / "two-then-one"), resume=True, quiet=True)
    return out


def metrics(path: Path) -> list[list[float]]:
    records = [json.loads(line) for line in RunFolder(path).metrics_file.read_text().splitlines()]
    return [[record["step"], record["loss"], record["accuracy"]] for record in records if "loss" in record]


def distance(left: Path, right: Path) -> float:
    """Of the weights after the last step, relative to their size.

    AdamW makes whole steps of gradients that are rounding alone (a key's bias has no other), so this is not 1e-6.
    """
    (_, one, _), (_, other, _) = load_decoder(RunFolder(left)), load_decoder(RunFolder(right))
    vectors = [torch.nn.utils.parameters_to_vector(decoder.parameters()) for decoder in (one, other)]
    return ((vectors[0] - vectors[1]).norm() / vectors[0].norm()).item()


@pytest.mark.parametrize("name", ["copies", "slices"])
def test_two_processes_equal_one(runs, name):
    alone = metrics(runs / "one")
    assert len(alone) == 20
    assert metrics(runs / name) == [pytest.approx(record, rel=1e-6) for record in alone]
    assert distance(runs / "one", runs / name) < 1e-4
    assert RunFolder(runs / name).read_rows() == RunFolder(runs / "one").read_rows()


def test_normalising_per_rank_would_be_noticed(runs):
    assert distance(runs / "one", runs / "per-rank") > 1e-3


@pytest.mark.parametrize("name", ["two-then-one", "one-then-copies", "one-then-slices"])
def test_another_number_of_processes_goes_on(runs, name):
    assert metrics(runs / name) == [pytest.approx(record, rel=1e-6) for record in metrics(runs / "one")]
    assert distance(runs / "one", runs / name) < 1e-4
    assert RunFolder(runs / name).read_run()["status"] == "finished"


@pytest.mark.parametrize(("name", "processes"), [("two-then-one", 1), ("one-then-slices", 2)])
def test_one_checkpoint_is_left_in_the_form_of_the_last_process(runs, name, processes):
    folder = RunFolder(runs / name)
    assert folder.read_run()["processes"] == processes
    assert folder.checkpoint_file.exists() == (processes == 1)
    assert folder.all_shards_folders() == ([] if processes == 1 else [folder.shards_folder(20)])


def test_a_missing_shard_is_noticed(runs):
    folder = RunFolder(runs / "per-rank")
    first = min(latest_checkpoint(folder).glob("*.safetensors"))
    content = first.read_bytes()
    first.unlink()
    with pytest.raises(ValueError, match=r"is damaged.*is missing"):
        load_decoder(folder)
    first.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is damaged"):
        load_decoder(folder)
    first.write_bytes(content)
    load_decoder(folder)


def test_shards_that_were_not_finished_are_ignored(runs):
    folder = RunFolder(runs / "copies")
    folder.shards_folder(99).mkdir()
    assert latest_checkpoint(folder) == folder.shards_folder(20)


def test_slices_make_up_the_batch():
    config = uneven_config()
    for batch in training_batches(config, 0, config.task):
        slices = [Processes(rank, 3).slice(batch) for rank in range(3)]
        assert torch.equal(torch.cat([part.token_ids for part in slices]), batch.token_ids)
        assert torch.equal(torch.cat([part.position_ids for part in slices]), batch.position_ids)


def test_what_cannot_be_shared_is_refused(tmp_path):
    config = uneven_config()
    with pytest.raises(ValueError, match="4 processes cannot share groups of 3 examples"):
        train(config, RunFolder(tmp_path / "run"), processes=Processes(0, 4))
    with pytest.raises(ValueError, match="start several processes"):
        train(config, RunFolder(tmp_path / "run"), sharding="full")
    with pytest.raises(ValueError, match=r"cannot slice the scalar encoder\.log_scale"):
        Processes(0, 2).spread(build_decoder(replace(config, scheme=scheme_named("ppc-fire"))), "full")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("victim", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_killed_rank_ends_the_job_and_resume_goes_on(tmp_path, start_torchrun, victim):
    folder = RunFolder(tmp_path / "run")
    config = replace(uneven_config(), model=ModelConfig(1, 2, 16), steps=400, log_every=20, eval_every=400)
    arguments = ["--preset", "fig2-jump1", "--scale", "smoke", "--batch-size", "9", "--lengths-per-batch", "3"]
    arguments += ["--model.width", "16", "--steps", "400", "--log-every", "20", "--eval-every", "400"]
    launcher = start_torchrun(2, "train", *arguments, "--checkpoint-every", "20", "--out", str(folder.path))
    deadline = time.monotonic() + 60
    while not latest_checkpoint(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(workers_of(launcher.pid)[victim], signal.SIGKILL)
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 1
    assert "another process of this run has ended; its last checkpoint is kept: continue with --resume" in err
    assert folder.read_run()["status"] == "running"
    lost_at = load_decoder(folder)[2].step
    assert 0 < lost_at < config.steps
    assert train(config, folder, resume=True, quiet=True).status == "finished"
    assert len(metrics(folder.path)) == 20, "no line is lost or doubled"


def workers_of(launcher: int) -> list[int]:
    """By rank: torchrun starts them in that order."""
    return [int(pid) for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()]
