"""One forward pass and real decoding give the same rows, on a model that is sometimes right and sometimes wrong."""

from dataclasses import replace

import pytest

from lengen.batch import sample_batch
from lengen.evaluate import length_curve as module
from lengen.evaluate.length_curve import length_curve, right_throughout, teacher_forced_verdict
from lengen.experiments.presets import preset_config
from lengen.model.cache import KVCache
from lengen.positions import SCHEMES, scheme_named
from lengen.results import RunFolder
from lengen.seeding import rng_for
from lengen.train.loop import build_decoder, load_decoder, training_batches
from lengen.train.update import build_optimizer, training_step

LENGTHS = (4, 8, 12, 16, 20, 24, 28)


pytestmark = pytest.mark.xdist_group("trained run")  # they share a model that takes seconds to train


@pytest.fixture(scope="module")
def trained(trained_run):
    config, decoder, _ = load_decoder(RunFolder(trained_run))
    return config.task, decoder


def test_one_pass_equals_decoding(trained):
    task, decoder = trained
    one_pass = list(length_curve(decoder, task, LENGTHS, 96, seed=3))
    decoded = list(length_curve(decoder, task, LENGTHS, 96, seed=3, mode="decode"))
    assert one_pass == decoded
    rates = [m.correct / m.total for m in one_pass if m.metric == "joint"]
    assert any(rate == 1 for rate in rates)
    assert any(0 < rate < 1 for rate in rates), "nothing is shown by a model that is always right or always wrong"


def test_a_measure_that_there_is_not_is_refused(trained):
    task, decoder = trained
    with pytest.raises(ValueError, match="'exact' is no measure of this decoder; use one of: last-token"):
        list(length_curve(decoder, task, [4], 8, seed=0, only="exact"))


def test_reading_only_what_is_right_so_far_equals_reading_all(trained):
    task, decoder = trained
    for length in (20, 24, 28):
        batch = sample_batch(task, decoder.scheme, rng_for(5, "evaluate", length), 96, length, training=False)
        everything = teacher_forced_verdict(decoder, batch).measures(True)["joint"]
        assert right_throughout(decoder, batch).tolist() == everything.tolist()
        assert 0 < everything.sum() < 96


def test_reading_only_what_is_right_so_far_can_fail(trained, monkeypatch):
    """The cache of an example that was dropped must not be taken for that of another."""
    task, decoder = trained
    batch = sample_batch(task, decoder.scheme, rng_for(5, "evaluate", 24), 96, 24, training=False)
    before = right_throughout(decoder, batch)
    keep = KVCache.keep
    monkeypatch.setattr(KVCache, "keep", lambda self, examples: keep(self, examples.roll(1)))
    assert right_throughout(decoder, batch).tolist() != before.tolist()


def test_teacher_forcing_alone_would_not_do(trained):
    """The sibling: counting teacher-forced last tokens, as is often done, disagrees with decoding."""
    task, decoder = trained
    length = 28
    decoded = {m.metric: m.correct for m in length_curve(decoder, task, [length], 96, seed=3, mode="decode")}
    batch = sample_batch(task, decoder.scheme, rng_for(3, "evaluate", length), 96, length, training=False)
    naive = {name: int(right.sum()) for name, right in teacher_forced_verdict(decoder, batch).measures(True).items()}
    assert naive["joint"] == decoded["joint"]
    assert naive["last-token"] != decoded["last-token"]


@pytest.mark.parametrize("name", SCHEMES)
def test_one_pass_equals_decoding_for_every_scheme(name):
    config = replace(preset_config("fig2-jump1", "smoke"), scheme=scheme_named(name), min_length=2, max_length=6)
    config = replace(config, eval_lengths=(2, 4, 6), batch_size=16)
    decoder = build_decoder(config)
    optimizer = build_optimizer(decoder, config.weight_decay)
    for step in range(60):  # a little training: right now and then on two or three bits
        training_step(decoder, optimizer, training_batches(config, step, config.task), 3e-3, config)
    one_pass = list(length_curve(decoder, config.task, config.eval_lengths, 128, seed=0))
    assert one_pass == list(length_curve(decoder, config.task, config.eval_lengths, 128, seed=0, mode="decode"))
    assert any(0 < m.correct < m.total for m in one_pass)


def test_chunking_does_not_change_what_is_measured(trained, monkeypatch):
    task, decoder = trained
    whole = list(length_curve(decoder, task, (12, 20), 50, seed=1))
    monkeypatch.setattr(module, "EXAMPLES_AT_A_TIME", 7)
    assert list(length_curve(decoder, task, (12, 20), 50, seed=1)) == whole


def test_only_one_measure(trained):
    task, decoder = trained
    everything = list(length_curve(decoder, task, (12, 20), 50, seed=1))
    for metric in ("last-token", "exact-tokens", "joint"):
        assert list(length_curve(decoder, task, (12, 20), 50, seed=1, only=metric)) == [
            m for m in everything if m.metric == metric
        ]


def test_lengths_beyond_the_table_are_refused_before_any_work(trained):
    task, decoder = trained
    with pytest.raises(ValueError, match=r"beyond the position table \(max_position_id=40\)"):
        next(length_curve(decoder, task, (4, 100), 8, seed=0))
