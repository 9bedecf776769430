"""A run whose worker dies goes on from its last checkpoint; nothing is lost or doubled, whatever the engine."""

import json
import multiprocessing
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lengen.results import RunFolder
from lengen.stopped import ProcessLost
from lengen.train.engines import LocalPool, RayCluster
from lengen.train.launch import Job, run_side_by_side
from lengen.train.loop import train

sys.path.insert(0, str(Path(__file__).parent))
from dying import die_always, die_once


@pytest.fixture
def jobs(tmp_path, smoke_config):
    configs = [replace(smoke_config, seed=seed) for seed in range(3)]
    return [Job(f"seed {config.seed}", config, RunFolder(tmp_path / str(config.seed))) for config in configs]


def check_survival(jobs, engine, tmp_path):
    finished = [job.config.seed for job, _ in run_side_by_side(jobs, die_once, engine)]
    assert sorted(finished) == [0, 1, 2], "each once"
    assert (tmp_path / "1.died").exists()
    for job in jobs:
        whole = RunFolder(tmp_path / f"whole-{job.label}")
        train(job.config, whole, quiet=True)
        assert job.folder.read_rows() == whole.read_rows()
        assert job.folder.metrics_file.read_text() == whole.metrics_file.read_text()
        assert json.loads(job.folder.run_file.read_text())["status"] == "finished"


def test_a_pool_survives_a_dying_worker(jobs, tmp_path):
    check_survival(jobs, LocalPool(2), tmp_path)
    assert not multiprocessing.active_children()


def test_stopping_a_pool_stops_its_workers_alone():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        pool = LocalPool(1)
        pool.wait([pool.submit(abs, 1)], seconds=60.0)
        pool.stop()
        assert multiprocessing.active_children() == [other]
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Ray's own
def test_ray_survives_a_dying_worker(jobs, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))  # where `dying` is
    check_survival(jobs, RayCluster(2, None), tmp_path)


@pytest.mark.slow
def test_a_run_that_always_dies_is_given_up(jobs):
    with pytest.raises(ProcessLost, match="has lost its worker 4 times"):
        list(run_side_by_side(jobs[:1], die_always, LocalPool(1)))
    assert not multiprocessing.active_children()
