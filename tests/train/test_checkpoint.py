"""A damaged checkpoint is named as such, and writing one is all or nothing."""

import os
from itertools import pairwise

import pytest
import torch

from lengen.results import RunFolder
from lengen.results.store import append_jsonl, read_jsonl, write_atomically
from lengen.train.checkpoint import load_checkpoint
from lengen.train.loop import load_decoder, train
from lengen.train.schedule import learning_rate_at


@pytest.fixture
def folder(smoke_config, tmp_path):
    folder = RunFolder(tmp_path / "run")
    train(smoke_config, folder, quiet=True)
    return folder


def test_a_truncated_checkpoint_is_refused(folder):
    content = folder.checkpoint_file.read_bytes()
    folder.checkpoint_file.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is damaged"):
        load_decoder(folder)


def test_garbage_is_refused(folder):
    folder.checkpoint_file.write_bytes(b"not a checkpoint at all" * 100)
    with pytest.raises(ValueError, match="is damaged"):
        load_decoder(folder)


def test_a_checkpoint_of_another_shape_is_refused(folder, smoke_config):
    from dataclasses import replace

    from lengen.model.config import ModelConfig
    from lengen.train.loop import build_decoder

    wider = build_decoder(replace(smoke_config, model=ModelConfig(1, 2, 64)))
    with pytest.raises(ValueError, match="has shape"):
        load_checkpoint(folder.checkpoint_file, wider)


def test_a_pickle_is_never_opened(folder):
    torch.save({"model": 1}, folder.checkpoint_file)
    with pytest.raises(ValueError, match="is damaged"):
        load_decoder(folder)


def test_a_missing_checkpoint_is_named(folder):
    folder.checkpoint_file.unlink()
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        load_decoder(folder)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, "replace", _fail)
    with pytest.raises(OSError, match="disk"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]  # no temporary file either


def _fail(source, target):
    raise OSError("disk is full")


def test_a_line_cut_short_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "rows.jsonl"
    append_jsonl(path, [{"a": 1}])
    with path.open("ab") as file:
        file.write(b'{"a": 2')  # the crash
    append_jsonl(path, [{"a": 3}])
    assert list(read_jsonl(path)) == [{"a": 1}, {"a": 3}]


def test_the_schedule_warms_up_and_decays():
    rates = [learning_rate_at(step, 1.0, 4, 20, "linear") for step in range(20)]
    assert rates[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert rates[4] == 1.0
    assert all(later < earlier for earlier, later in pairwise(rates[4:]))
    assert rates[-1] == pytest.approx(1 / 16)
    cosine = [learning_rate_at(step, 1.0, 4, 20, "cosine") for step in range(20)]
    assert cosine[12] == pytest.approx(0.5)
    assert cosine[6] > rates[6]
