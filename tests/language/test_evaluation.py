"""Perplexity of the same tokens at each context length equals an explicit loop; intervals are over documents."""

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lengen.cli import main
from lengen.evaluate.intervals import over_documents
from lengen.language.documents import Document
from lengen.language.evaluation import Request, check_tokenizer, evaluate_run, measure
from lengen.language.held_out import documents_in_both
from lengen.language.losses import token_losses
from lengen.language.packed import PackedCorpus
from lengen.language.prepare import prepare
from lengen.language.presets import language_preset
from lengen.language.targets import choose_targets, context_windows, document_windows
from lengen.language.trained import load_language_run
from lengen.language.training import train_language
from lengen.results import RunFolder
from lengen.results.perplexity import append_perplexity_rows, read_perplexity_rows

from .conftest import shakespeare_documents

PUBLISHED = Path(__file__).parents[2] / "results" / "cpu" / "table1.jsonl"
REQUEST = Request((8, 16, 32), "train", 5, 3, 0)


@pytest.fixture(scope="module")
def run(corpus: PackedCorpus, tmp_path_factory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("evaluated") / "run")
    train_language(language_preset("short", "smoke", corpus.stamp), corpus, folder, quiet=True)
    return folder


@torch.no_grad()
def loss_by_hand(decoder, history: list[int], target: int) -> float:
    """One target, one context, ids 1, 2, …, nothing shared."""
    ids = torch.arange(1, len(history) + 1)[None]
    logits = decoder(torch.tensor([history]), ids).token_logits[0, -1].double()
    return float(torch.logsumexp(logits, 0) - logits[target])


def test_the_same_targets_as_an_explicit_loop(corpus, run):
    decoder, tokens = load_language_run(run)[1], corpus.split("train")
    groups = choose_targets(tokens, 32, 5, 3, 0)
    assert [len(group) for group in groups] == [3] * 5
    found = {
        length: (sums, counts)
        for name, length, sums, counts in measure(decoder, tokens, groups, REQUEST.lengths)
        if name == "same-targets"
    }
    for length in REQUEST.lengths:
        for group, loss in zip(groups, found[length][0], strict=True):
            by_hand = 0.0
            for target in group:
                document = tokens.document(target.document).tolist()
                by_hand += loss_by_hand(decoder, document[target.place - length : target.place], document[target.place])
            assert loss == pytest.approx(by_hand, abs=1e-4)
    assert found[8][0] != pytest.approx(found[16][0], abs=1e-4)  # the context matters, so the check can fail


def test_all_positions_as_an_explicit_loop(corpus, run):
    decoder, tokens = load_language_run(run)[1], corpus.split("train")
    groups = choose_targets(tokens, 32, 5, 3, 0)
    found = [
        (sums, counts)
        for name, length, sums, counts in measure(decoder, tokens, groups, REQUEST.lengths)
        if (name, length) == ("all-positions", 16)
    ]
    document = tokens.document(groups[0][0].document).tolist()
    by_hand = sum(
        loss_by_hand(decoder, document[start : start + place], document[start + place])
        for start in (0, 16)
        for place in range(1, 17)
    )
    assert found[0][0][0] == pytest.approx(by_hand, abs=1e-3)
    assert found[0][1] == [32] * 5


def test_contexts_stay_within_a_document(corpus):
    tokens = corpus.split("train")
    groups = choose_targets(tokens, 32, 100, 4, 0)
    windows = context_windows(tokens, [target for group in groups for target in group], 32)
    assert not (windows == corpus.stamp.end_of_text).any()
    for group in groups[:10]:
        assert not (document_windows(tokens, group[0].document, 8, 32) == corpus.stamp.end_of_text).any()
    assert (np.asarray(tokens.tokens) == corpus.stamp.end_of_text).any()


def test_how_many_at_a_time_changes_nothing(corpus, run, monkeypatch):
    from lengen.language import losses

    decoder, tokens = load_language_run(run)[1], corpus.split("train")
    windows = context_windows(tokens, [t for group in choose_targets(tokens, 32, 5, 3, 0) for t in group], 32)
    together = token_losses(decoder, windows, 1)
    monkeypatch.setattr(losses, "TOKENS_AT_A_TIME", 40)
    assert torch.allclose(token_losses(decoder, windows, 1), together, atol=1e-5)


def test_rows_say_what_was_measured(corpus, run, tmp_path):
    rows = evaluate_run(run, REQUEST, None)
    assert len(rows) == 6
    assert {(row.preset, row.scale, row.step, row.corpus) for row in rows} == {("short", "smoke", 20, "shakespeare")}
    assert {(row.num_tokens, row.trained_on) for row in rows} == {(20 * 8 * 64, "shakespeare")}
    assert len({row.targets for row in rows}) == 1
    path = tmp_path / "rows.jsonl"
    append_perplexity_rows(path, rows)
    append_perplexity_rows(path, rows)
    assert read_perplexity_rows(path) == rows
    assert rows[0].perplexity == pytest.approx(math.exp(sum(rows[0].losses) / sum(rows[0].counts)))
    path.write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="no row of perplexity"):
        read_perplexity_rows(path)


def test_rows_of_other_texts_stand_beside_each_other(run, tmp_path):
    """Corpora may share a name, and a text can be measured at more documents."""
    few, more = evaluate_run(run, REQUEST, None), evaluate_run(run, replace(REQUEST, num_documents=6), None)
    assert few[0].corpus == more[0].corpus
    append_perplexity_rows(tmp_path / "rows.jsonl", [*few, *more])
    assert read_perplexity_rows(tmp_path / "rows.jsonl") == [*few, *more]


def test_interpolation_at_test_time(corpus, run):
    encoder = load_language_run(run)[0].scheme.encoder
    plain, same = evaluate_run(run, REQUEST, None), evaluate_run(run, REQUEST, None, replace(encoder, factor=1.0))
    assert [row.losses for row in plain] == [row.losses for row in same]
    halved = evaluate_run(run, REQUEST, None, replace(encoder, interpolation="linear", factor=2.0))
    assert halved[0].losses != plain[0].losses
    assert halved[0].label == "short+linear"
    assert halved[0].overrides == {"encoder.interpolation": "linear", "encoder.factor": 2.0}


def test_a_label_names_every_number_but_the_usual_ones(corpus, run):
    encoder = load_language_run(run)[0].scheme.encoder
    rows = evaluate_run(run, REQUEST, None, replace(encoder, interpolation="ntk", factor=4.0))
    assert rows[0].label == "short+ntk+factor=4"
    assert replace(rows[0], overrides={"encoder.base": 1e6}).label == "short+base=1e+06"
    published = {row.label for row in read_perplexity_rows(PUBLISHED)}
    assert {label for label in published if "+" in label} == {
        "short-no-pose+linear",
        "short-no-pose+ntk",
        "short-no-pose+yarn",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interpolation": "ntk"}, r"interpolation ntk changes nothing with factor=1; add --encoder.factor 2"),
        ({"interpolation": "yarn", "factor": 2.0}, r"saw 128 at most; add --encoder.trained_max_id 64"),
        ({"factor": 2.0}, r"--encoder.factor 2 changes nothing without an interpolation"),
        ({"trained_max_id": 64}, r"--encoder.trained_max_id 64 changes nothing without an interpolation"),
    ],
)
def test_an_interpolation_has_to_be_one(changes, message, run):
    encoder = load_language_run(run)[0].scheme.encoder
    with pytest.raises(ValueError, match=message):
        evaluate_run(run, REQUEST, None, replace(encoder, **changes))


# Another corpus than the one trained on


@pytest.fixture
def part(corpus, tmp_path) -> PackedCorpus:
    """Some documents of the corpus, prepared anew: its bounds, and so its test documents, are others."""
    train = corpus.split("train")
    documents = [Document(corpus.tokenizer().decode(train.document(i).tolist()), "test") for i in range(4)]
    new = [Document("A text that nobody was trained on. " * 30, "test"), Document("and one more", "train")]
    return prepare("part", lambda: [*documents, *new], tmp_path / "part", tokenizer=corpus.tokenizer(), licences={})


def test_documents_that_were_trained_on_are_left_out(corpus, run, part):
    said: list[str] = []
    rows = evaluate_run(run, replace(REQUEST, split="test"), part.folder, say=said.append)
    assert [len(row.losses) for row in rows] == [1] * 6
    assert said == [f"4 of 5 documents of {part.folder} were trained on; they are left out"]
    assert documents_in_both(part.split("test"), corpus.split("train")) == {0, 1, 2, 3}
    assert documents_in_both(corpus.split("test"), corpus.split("train")) == set()


def test_nothing_is_said_of_the_run_s_own_corpus(run):
    said: list[str] = []
    assert evaluate_run(run, REQUEST, None, say=said.append)
    assert said == []


def test_where_all_were_trained_on_there_is_nothing_to_test(run, part):
    with pytest.raises(ValueError, match="was trained on; use another --corpus"):
        choose_targets(part.split("test"), 32, 5, 3, 0, left_out=frozenset(range(5)))


def test_if_the_corpus_trained_on_is_gone_a_warning_is_given(run, part, tmp_path):
    moved = RunFolder(tmp_path / "moved")
    shutil.copytree(run.path, moved.path)
    moved.write_run(moved.read_run() | {"corpus_folder": str(tmp_path / "gone")})
    said: list[str] = []
    rows = evaluate_run(moved, replace(REQUEST, split="test"), part.folder, say=said.append)
    assert [len(row.losses) for row in rows] == [5] * 6
    assert len(said) == 1
    assert "may have been trained on" in said[0]


def test_a_run_without_its_tokenizer_is_one_sentence(corpus, run, tmp_path):
    bare = RunFolder(tmp_path / "bare")
    shutil.copytree(run.path, bare.path, ignore=shutil.ignore_patterns("tokenizer.json"))
    with pytest.raises(ValueError, match=r"tokenizer.json is missing; copy it from the corpus"):
        evaluate_run(bare, REQUEST, None)


@pytest.mark.parametrize("command", ["evaluate", "attention"])
def test_commands_of_tasks_refuse_a_language_model(run, command, capsys):
    assert main([command, str(run.path), "--lengths", "10"]) == 2
    assert "use `lengen lm` or `lengen context`" in capsys.readouterr().err


def test_another_tokenizer_is_refused(run, tmp_path):
    other = prepare("other", shakespeare_documents, tmp_path / "c", vocab_size=500, licences={})
    with pytest.raises(ValueError, match="has another tokenizer than"):
        check_tokenizer(run, other)


def test_bad_requests_are_one_sentence(corpus):
    with pytest.raises(ValueError, match="no document of this split has more than 100000 tokens"):
        choose_targets(corpus.split("train"), 100_000, 5, 3, 0)
    for changes in ({"lengths": (0, 8)}, {"num_documents": 0}, {"targets_per_document": 0}):
        with pytest.raises(ValueError, match="is too small; use at least 1"):
            replace(REQUEST, **changes)


def test_the_interval_over_documents_agrees_with_a_bootstrap():
    rng = np.random.default_rng(0)
    counts = rng.integers(5, 60, size=200)
    sums = counts * (3.0 + 0.3 * rng.standard_normal(200)) + np.sqrt(counts) * rng.standard_normal(200)
    value, low, high = over_documents(sums.tolist(), counts.tolist())
    picks = rng.integers(0, 200, size=(4000, 200))
    means = sums[picks].sum(1) / counts[picks].sum(1)
    assert value == pytest.approx(sums.sum() / counts.sum())
    assert (low, high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.01)
    tokens_alone = 2 * 1.96 * np.std(sums / counts) / math.sqrt(counts.sum())  # as if all tokens were independent
    assert high - low > 2 * tokens_alone
    assert over_documents([6.0], [2]) == (3.0, -math.inf, math.inf)
    with pytest.raises(ValueError, match="needs a sum and a count"):
        over_documents([], [])
