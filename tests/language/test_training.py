"""Language runs are pure functions of their config: resumed, branched off, in groups or in processes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from lengen.language import load_language_model, training
from lengen.language.config import config_from_dict, config_to_dict
from lengen.language.cost import PAPER_CORPUS
from lengen.language.documents import Document
from lengen.language.evaluation import preset_of
from lengen.language.prepare import prepare
from lengen.language.presets import LANGUAGE_PRESETS, language_preset
from lengen.language.training import build_language_model, train_language, view_through
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.positions.assign import Contiguous, Pose, Predicted
from lengen.positions.scheme import Alibi, Fire, LearnedAbsolute, Rope, Scheme
from lengen.results import RunFolder

from .conftest import shakespeare_documents


def weights(folder: RunFolder) -> dict[str, torch.Tensor]:
    return load_file(folder.checkpoint_file)


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def contents(folder: RunFolder) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def short(corpus, tmp_path_factory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("language") / "short")
    train_language(language_preset("short", "smoke", corpus.stamp), corpus, folder, quiet=True)
    return folder


def losses(folder: RunFolder) -> list[float]:
    return [r["loss"] for r in map(json.loads, folder.metrics_file.read_text().splitlines()) if "loss" in r]


def test_training_learns(short):
    assert losses(short)[-1] < losses(short)[0] - 0.3


@pytest.mark.parametrize("die_at", [3, 12, 17])
def test_resumed_equals_uninterrupted(die_at, corpus, short, tmp_path, monkeypatch):
    folder, config = RunFolder(tmp_path / "broken"), language_preset("short", "smoke", corpus.stamp)
    real, calls = training.training_step, iter(range(die_at))

    def dying(*args):
        if next(calls, None) is None:
            raise MemoryError
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(training, "training_step", dying)
        with pytest.raises(MemoryError):
            train_language(config, corpus, folder, quiet=True)
    train_language(config, corpus, folder, resume=True, quiet=True)
    assert same(weights(short), weights(folder))
    assert short.metrics_file.read_text() == folder.metrics_file.read_text()


@pytest.mark.parametrize("preset", ["short-no-pose", "pose-yarn"])
def test_branching_off_equals_training_straight_through(preset, corpus, short, tmp_path):
    config = language_preset(preset, "smoke", corpus.stamp)
    straight, branched = RunFolder(tmp_path / "straight"), RunFolder(tmp_path / "branched")
    train_language(config, corpus, straight, quiet=True)
    train_language(config, corpus, branched, start_from=short.path, quiet=True)
    assert same(weights(straight), weights(branched))
    assert losses(straight) == losses(branched)
    assert branched.read_run()["first_phase_of"] == short.read_run()["run"]
    assert branched.read_run()["run"] == config.run_id
    assert not same(weights(straight), weights(short))  # the last phase matters


def test_starting_from_the_end_would_be_noticed(corpus, short, tmp_path):
    """The sibling: the last checkpoint instead of the one between the phases gives other weights."""
    wrong = RunFolder(tmp_path / "wrong")
    (tmp_path / "source" / "milestone").mkdir(parents=True)
    for name in ("run.json", "metrics.jsonl"):
        (tmp_path / "source" / name).write_bytes((short.path / name).read_bytes())
    record = json.loads((tmp_path / "source" / "run.json").read_text())
    RunFolder(tmp_path / "source").milestone.checkpoint_file.write_bytes(short.checkpoint_file.read_bytes())
    assert record["status"] == "finished"
    config = language_preset("short-no-pose", "smoke", corpus.stamp)
    train_language(config, corpus, wrong, start_from=tmp_path / "source", quiet=True)
    straight = RunFolder(tmp_path / "straight")
    train_language(config, corpus, straight, quiet=True)
    assert not same(weights(straight), weights(wrong))


def test_only_runs_with_the_same_first_phase_can_be_branched_off(corpus, short, tmp_path):
    config = replace(language_preset("short-no-pose", "smoke", corpus.stamp), learning_rate=0.1)
    with pytest.raises(ValueError, match=r"learning_rate is 0\.005 in the run and 0\.1 here; its first phase is not"):
        train_language(config, corpus, RunFolder(tmp_path / "run"), start_from=short.path)
    scratch = RunFolder(tmp_path / "scratch")
    train_language(language_preset("pose-from-scratch", "smoke", corpus.stamp), corpus, scratch, quiet=True)
    assert not scratch.milestone.path.exists()
    with pytest.raises(ValueError, match="first_steps is 0"):
        train_language(
            language_preset("short", "smoke", corpus.stamp), corpus, RunFolder(tmp_path / "r"), start_from=scratch.path
        )
    unfinished = RunFolder(tmp_path / "unfinished")
    unfinished.create()
    unfinished.run_file.write_bytes(short.run_file.read_bytes())
    with pytest.raises(ValueError, match="has not finished its first phase"):
        train_language(
            language_preset("short", "smoke", corpus.stamp),
            corpus,
            RunFolder(tmp_path / "r"),
            start_from=unfinished.path,
        )


@pytest.mark.parametrize("is_branched", [False, True])
def test_a_run_that_is_refused_replaces_nothing(is_branched, corpus, short, tmp_path):
    """One process has nobody to share a model with: known only once the model is spread."""
    old = RunFolder(Path(shutil.copytree(short.path, tmp_path / "old")))
    before = contents(old)
    other = prepare("other", shakespeare_documents, tmp_path / "c", vocab_size=401, licences={})
    text = corpus if is_branched else other
    config = language_preset("short-no-pose", "smoke", text.stamp)
    source = short.path if is_branched else None
    with pytest.raises(ValueError, match="--sharding full has nothing to share"):
        train_language(config, text, old, start_from=source, overwrite=True, quiet=True, sharding="full")
    assert contents(old) == before
    train_language(config, text, old, start_from=source, overwrite=True, quiet=True)
    assert old.read_run()["run"] == config.run_id
    assert (old.path / "tokenizer.json").read_text() == text.tokenizer().to_str()


def test_a_run_is_not_replaced_by_one_that_starts_from_it(corpus, short):
    before = contents(short)
    with pytest.raises(ValueError, match=r"cannot start from .*short and write the new run over it; use another --out"):
        train_language(
            language_preset("short-no-pose", "smoke", corpus.stamp),
            corpus,
            short,
            start_from=short.path,
            overwrite=True,
        )
    assert contents(short) == before


def test_another_corpus_is_refused(corpus, short, tmp_path):
    config = language_preset("short", "smoke", replace(corpus.stamp, digest="other"))
    with pytest.raises(ValueError, match="the run was made for corpus other"):
        train_language(config, corpus, RunFolder(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_microbatches_give_the_gradient_of_the_batch(corpus, short, tmp_path):
    config = replace(language_preset("short", "smoke", corpus.stamp), microbatch_size=3)
    folder = RunFolder(tmp_path / "groups")
    train_language(config, corpus, folder, quiet=True)
    assert losses(folder) == pytest.approx(losses(short), rel=1e-5)
    assert config.arm == language_preset("short", "smoke", corpus.stamp).arm


def test_a_language_model_is_loaded_with_its_tokenizer(corpus, short):
    decoder, tokenizer, config = load_language_model(short.path)
    assert config == language_preset("short", "smoke", corpus.stamp)
    assert tokenizer.decode(tokenizer.encode("to be").ids) == "to be"
    stored = weights(short)
    assert all(torch.equal(parameter, stored[f"model.{name}"]) for name, parameter in decoder.named_parameters())
    assert isinstance(decoder.scheme.assigner, Pose)
    with pytest.raises(ValueError, match="is no run"):
        load_language_model(short.path / "milestone")


def test_the_paper_scale_is_table_5():
    short, long = (language_preset(name, "paper", PAPER_CORPUS) for name in ("short", "long"))
    with torch.device("meta"):
        decoder = Decoder(short.model, short.scheme, short.corpus.vocab_size)
    assert 1.25e9 < decoder.num_parameters() < 1.35e9
    assert decoder.blocks[0].mlp_in.weight.shape == (8192, 2048)
    assert (short.model.num_layers, short.model.num_heads, short.corpus.vocab_size) == (24, 32, 32_000)
    assert (short.batch_size, short.context, short.first_steps, short.steps) == (8192, 64, 34_000, 49_000)
    assert (long.batch_size, long.context, long.first_steps, long.steps) == (4096, 128, 0, 48_000)
    for config in (short, long):
        assert (config.learning_rate, config.schedule, config.warmup_steps) == (1e-3, "cosine", 5_000)
        assert config.weight_decay == 0
        assert config.steps * config.batch_size * config.context == pytest.approx(25e9, rel=0.05)
    assert (short.microbatch_size, long.microbatch_size) == (256, 128)
    assert isinstance(short.scheme.assigner, Pose)
    assert (short.scheme.assigner.num_chunks, short.scheme.assigner.max_position_id) == (2, 128)
    assert config_to_dict(long)["scheme"]["assigner"]["name"] == "contiguous"


def test_paper_settings_train_sharded_over_two_processes_at_reduced_width(corpus, tmp_path, start_torchrun):
    arguments = ["lm", "train", "--preset", "short", "--scale", "paper", "--corpus", str(corpus.folder)]
    arguments += ["--model.width", "32", "--model.num_heads", "2", "--model.num_layers", "2", "--precision", "fp32"]
    arguments += ["--batch-size", "10", "--microbatch-size", "3", "--first-steps", "2", "--steps", "4"]
    arguments += ["--warmup-steps", "2", "--log-every", "1", "--eval-every", "3", "--eval-windows", "4"]
    launcher = start_torchrun(2, *arguments, "--sharding", "full", "--out", str(tmp_path / "two"))
    _, err = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, err
    config = config_from_dict(RunFolder(tmp_path / "two").read_run()["config"])
    assert (config.learning_rate, config.scheme.assigner.max_position_id) == (1e-3, 128)
    train_language(config, corpus, RunFolder(tmp_path / "one"), quiet=True)
    two, one = losses(RunFolder(tmp_path / "two")), losses(RunFolder(tmp_path / "one"))
    assert two == pytest.approx(one, rel=1e-5)
    other = replace(config, seed=1)
    train_language(other, corpus, RunFolder(tmp_path / "other"), quiet=True)
    assert losses(RunFolder(tmp_path / "other")) != pytest.approx(one, rel=1e-5)
    branched = replace(config, scheme=config.first_scheme)  # from the shards that two processes have kept
    train_language(branched, corpus, RunFolder(tmp_path / "branched"), start_from=tmp_path / "two", quiet=True)
    assert losses(RunFolder(tmp_path / "branched"))[:2] == two[:2]


@pytest.mark.parametrize("name", LANGUAGE_PRESETS)
@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
def test_presets_survive_json_and_are_recognised(name, scale, corpus):
    config = language_preset(name, scale, corpus.stamp)
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config
    assert preset_of(replace(config, seed=3)) == (name, scale)
    assert preset_of(replace(config, learning_rate=0.5)) == ("custom", "")
    longer = {"steps": 3 * config.steps, "first_steps": 3 * config.first_steps, "batch_size": 2 * config.batch_size}
    assert preset_of(replace(config, **longer)) == (name, scale)
    assert preset_of(replace(config, **longer | {"first_steps": config.steps})) == ("custom", "")  # less PoSE
    assert len({language_preset(other, scale, corpus.stamp).arm for other in LANGUAGE_PRESETS}) == len(LANGUAGE_PRESETS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_steps": 21}, "first_steps=21 is beyond steps=20"),
        ({"context": 128}, "no room to shift 128 tokens"),
        ({"scheme": Scheme(Pose(), Alibi())}, "the encoder cannot change from rope to alibi"),
        ({"scheme": Scheme(Predicted(), Rope())}, "text has no coupled ids"),
        (
            {
                "first_scheme": Scheme(Contiguous(), LearnedAbsolute()),
                "scheme": Scheme(Pose(max_position_id=192), LearnedAbsolute()),
            },
            "ape has learned weights, which would be lost between the phases; use nope, rope or alibi",
        ),
        ({"first_scheme": Scheme(Pose(), Fire()), "scheme": Scheme(Pose(), Fire())}, "fire has learned weights"),
        ({"batch_size": 0}, "batch_size=0 is too small"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 is not positive"),
    ],
)
def test_bad_settings_are_one_sentence(changes, message, corpus):
    with pytest.raises(ValueError, match=message):
        replace(language_preset("short", "smoke", corpus.stamp), **changes)


def test_another_view_changes_angles_and_no_weights(corpus):
    config = language_preset("pose-linear", "smoke", corpus.stamp)
    decoder = build_language_model(config, config.first_scheme)
    before = {name: parameter.clone() for name, parameter in decoder.named_parameters()}
    ids = torch.arange(1, 9)[None]
    plain = decoder.encoder.rotation(2 * ids).cos
    view_through(decoder, config.scheme)
    assert torch.allclose(decoder.encoder.rotation(4 * ids).cos, plain)  # linear: ids count half
    assert not torch.allclose(decoder.encoder.rotation(2 * ids).cos, plain)
    assert all(torch.equal(before[name], parameter) for name, parameter in decoder.named_parameters())


def test_a_run_can_be_moved_without_its_corpus(short, tmp_path):
    moved = Path(shutil.copytree(short.path, tmp_path / "moved"))
    load_language_model(moved)
    (moved / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="is missing; copy it from the corpus"):
        load_language_model(moved)


def test_a_single_document_leaves_nothing_to_validate_on(tmp_path):
    said = []
    text = "\n".join(document.text for document in shakespeare_documents())
    one = prepare("one", lambda: [Document(text)], tmp_path / "c", vocab_size=300, licences={}, say=said.append)
    assert "none is left to test on" in said[-1]
    folder = RunFolder(tmp_path / "run")
    train_language(language_preset("short", "smoke", one.stamp), one, folder, quiet=True)
    assert "valid_loss" not in folder.metrics_file.read_text()


def test_models_of_other_shapes_are_refused(corpus, short):
    record = short.read_run()
    config = replace(config_from_dict(record["config"]), model=ModelConfig(2, 2, 64))
    from lengen.train.checkpoint import load_checkpoint

    with pytest.raises(ValueError, match="has shape"):
        load_checkpoint(short.checkpoint_file, build_language_model(config))
