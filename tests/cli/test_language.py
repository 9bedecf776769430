"""`lengen corpus` and `lengen lm`: from text to a table, and every mistake as one sentence with exit 2."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from lengen.cli import main
from lengen.language.corpora import CORPORA, Corpus, Source
from lengen.language.documents import utf8_text
from lengen.language.fetch import Package


@pytest.fixture(scope="module")
def folder(plays, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("language-cli")
    (folder / "plays.jsonl").write_bytes(plays.read_bytes())
    assert main(prepare(folder, "corpus")) == 0
    assert main(train(folder, "short", "run")) == 0
    return folder


def prepare(folder: Path, out: str, *more: str) -> list[str]:
    files = ["--files", str(folder / "plays.jsonl"), "--vocab-size", "400"]
    return ["corpus", "prepare", *files, "--out", str(folder / out), *more]


def train(folder: Path, preset: str, out: str, *more: str) -> list[str]:
    where = ["--corpus", str(folder / "corpus"), "--out", str(folder / out)]
    return ["lm", "train", "--preset", preset, "--scale", "smoke", *where, *more]


def test_from_text_to_a_table(folder, capsys):
    assert main(train(folder, "short-no-pose", "branched", "--from", str(folder / "run"), "--json")) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 20
    rows = ["--lengths", "16,32", "--split", "test", "--out", str(folder / "rows.jsonl")]
    assert main(["lm", "evaluate", str(folder / "run"), str(folder / "branched"), *rows, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        f"evaluating {run} at length {length} ({number} of 2)"
        for run in ("run", "branched")
        for number, length in ((1, 16), (2, 32))
    ]
    records = [json.loads(line) for line in captured.out.splitlines()]
    assert [record["arm"] for record in records] == ["short"] * 4 + ["short-no-pose"] * 4
    assert all(record["low"] <= record["perplexity"] for record in records)
    assert all(record["high"] is None for record in records)  # the test split is one document
    more = ["--encoder.interpolation", "ntk", "--encoder.factor", "2"]
    assert main(["lm", "evaluate", str(folder / "branched"), *rows, *more]) == 0
    assert "short-no-pose+ntk" in capsys.readouterr().out
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 12


def test_a_bound_that_is_infinite_is_null(folder, strictly_read, tmp_path):
    rows = ["--lengths", "16", "--num-documents", "1", "--out", str(tmp_path / "rows.jsonl")]
    assert main(["lm", "evaluate", str(folder / "run"), *rows, "--json"]) == 0
    records = strictly_read()
    assert [record["high"] for record in records] == [None, None]
    assert all(record["perplexity"] > 1 for record in records)


def test_a_finished_run_is_resumed_to_itself(folder, capsys):
    before = (folder / "run" / "checkpoint.safetensors").read_bytes()
    where = ["--corpus", str(folder / "corpus"), "--out", str(folder / "run")]
    assert main(["lm", "train", "--resume", *where]) == 0
    assert (folder / "run" / "checkpoint.safetensors").read_bytes() == before


def test_what_a_model_is_made_with_is_the_same_in_both_phases(folder):
    assert main(train(folder, "pose-yarn", "based", "--encoder.base", "1e6", "--encoder.factor", "4")) == 0
    config = json.loads((folder / "based" / "run.json").read_text())["config"]
    assert [config[scheme]["encoder"]["base"] for scheme in ("first_scheme", "scheme")] == [1e6, 1e6]
    assert [config[scheme]["encoder"]["factor"] for scheme in ("first_scheme", "scheme")] == [1.0, 4.0]


def test_your_own_files_may_have_a_name(folder, tmp_path, capsys):
    for flags, name in (([], "files"), (["--name", "plays"], "plays")):
        capsys.readouterr()
        assert main(prepare(folder, str(tmp_path / name), *flags, "--json")) == 0
        manifest = json.loads(capsys.readouterr().out)
        assert (manifest["corpus"]["name"], manifest["licences"]) == (name, {name: "your own"})


def test_what_takes_long_is_said_before_it_begins(tmp_path, monkeypatch, capsys):
    def download(package, folder):
        """Stands for pip: a package with one book in it."""
        with zipfile.ZipFile(folder / "words-1.0.whl", "w") as wheel:
            wheel.writestr("words/book.txt", "to be or not to be " * 20)

    monkeypatch.setattr("lengen.language.fetch._download", download)
    monkeypatch.setattr("lengen.language.fetch._check", lambda *_: None)
    words = Source(Package("pypi", "words", "1.0", "checksum"), "words/*.txt", utf8_text)
    monkeypatch.setitem(CORPORA, "words", Corpus("a book", "public domain", 0.1, (words,)))
    places = ["--out", str(tmp_path / "words"), "--cache", str(tmp_path / "cache")]
    assert main(["corpus", "prepare", "words", "--vocab-size", "300", *places]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "words: public domain",
        "[words] reading the documents, to choose those to test on",
        "[words] fetching words 1.0 (pypi)",
        "[words] training a BPE of 300 tokens",
        "[words] cutting the documents into tokens",
        "[words] fewer than three documents: all are for training, none is left to test on",
    ]


def test_a_missing_library_is_said_before_anything_is_fetched(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setattr("lengen.language.fetch._download", lambda *_: pytest.fail("fetched"))
    places = ["--out", str(tmp_path / "english"), "--cache", str(tmp_path / "cache")]
    assert main(["corpus", "prepare", "english", *places]) == 2
    assert "needs tokenizers, which is not installed" in capsys.readouterr().err


def test_c4_is_streamed_once(folder, tmp_path, monkeypatch):
    asked = []

    def stream(source, split):
        asked.append(split)
        return ({"text": f"document {number} of {split}"} for number in range(200))

    monkeypatch.setattr("lengen.language.c4._stream", stream)
    tokenizer = ["--tokenizer", str(folder / "corpus" / "tokenizer.json")]
    assert main(["corpus", "prepare", "c4", "--num-documents", "20", *tokenizer, "--out", str(tmp_path / "c4")]) == 0
    assert asked == ["train", "validation"]


def test_what_is_known_by_name(capsys):
    assert main(["corpus", "list", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"wikitext-2", "english", "c4"} <= {record["name"] for record in records}
    assert all(record["licence"] for record in records)
    assert main(["lm", "presets"]) == 0
    assert "pose-from-scratch" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["corpus", "prepare", "--out", "x"], "which corpus? give either a NAME"),
        (["corpus", "prepare", "wikitext", "--out", "x"], "did you mean 'wikitext-2'"),
        (["corpus", "prepare", "c4", "--out", "x"], "say how many with --num-documents"),
        (["corpus", "prepare", "english", "--name", "mine", "--out", "x"], "--name mine is for --files alone"),
        (["corpus", "prepare", "--files", "{}/plays.jsonl", "--name", "c4", "--out", "{}/y"], "a corpus known by name"),
        (
            ["corpus", "prepare", "english", "--num-documents", "5", "--out", "{}/y"],
            "--num-documents 5 is for c4 alone",
        ),
        (
            ["corpus", "prepare", "--files", "{}/plays.jsonl", "--num-documents", "5", "--out", "{}/y"],
            "--num-documents 5 is for c4 alone",
        ),
        (
            ["corpus", "prepare", "english", "--tokenizer", "gpt-neox", "--vocab-size", "300", "--out", "{}/y"],
            "--tokenizer gpt-neox has its own vocabulary; drop --vocab-size 300",
        ),
        (
            ["lm", "train", "--resume", "--scale", "smoke", "--corpus", "{}/corpus", "--out", "{}/run"],
            "--scale smoke is that of a --preset",
        ),
        (
            ["lm", "train", "--resume", "--from", "{}/run", "--corpus", "{}/corpus", "--out", "{}/run"],
            "from where it is; drop --from",
        ),
        (["corpus", "prepare", "--files", "{}/none*.txt", "--out", "x"], "names no text"),
        (["corpus", "prepare", "--files", "{}/plays.jsonl", "--out", "{}/corpus"], "exists already"),
        (["corpus", "prepare", "--files", "{}/plays.jsonl", "--vocab-size", "9", "--out", "{}/y"], "--vocab-size 9"),
        (["corpus", "prepare", "--files", "{}/plays.jsonl", "--tokenizer", "no", "--out", "{}/y"], "does not exist"),
        (["lm", "train", "--preset", "short", "--corpus", "{}", "--out", "{}/y"], "is no prepared corpus"),
        (["lm", "train", "--preset", "shrt", "--corpus", "{}/corpus", "--out", "{}/y"], "did you mean 'short'"),
        (["lm", "train", "--corpus", "{}/corpus", "--out", "{}/y"], "nothing to train"),
        (["lm", "train", "--preset", "short", "--scale", "cpus", "--corpus", "{}/corpus", "--out", "y"], "'cpu'"),
        (["lm", "train", "--preset", "short", "--corpus", "{}/corpus", "--out", "{}/run"], "already holds a run"),
        (
            ["lm", "train", "--preset", "long", "--corpus", "{}/corpus", "--task.jump", "2", "--out", "{}/y"],
            "no meaning",
        ),
        (
            ["lm", "train", "--preset", "long", "--corpus", "{}/corpus", "--model.width", "30", "--out", "{}/y"],
            "multiple",
        ),
        (["lm", "train", "--resume", "--corpus", "{}/corpus", "--out", "{}/corpus"], "is no run"),
        (["lm", "evaluate", "{}/corpus", "--out", "{}/r.jsonl"], "is no run"),
        (["lm", "evaluate", "{}/run", "--lengths", "9000", "--out", "{}/r.jsonl"], "more than 9000 tokens"),
        (["lm", "evaluate", "{}/run", "--model.width", "9", "--out", "{}/r.jsonl"], "only --encoder"),
        (["lm", "evaluate", "{}/run", "--lengths", "16", "--out", "{}/no/r.jsonl"], "make it first"),
        (["corpus", "prepare", "english", "--text-field", "body", "--out", "{}/x"], "is for --files alone"),
        (["lm", "evaluate", "{}/run", "--lengths", "16", "--out", "{}"], "is a folder; give a file in it"),
        (
            ["lm", "evaluate", "{}/run", "--lengths", "16", "--encoder.interpolation", "ntk", "--out", "{}/r.jsonl"],
            "changes nothing with factor=1",
        ),
        (["corpus", "prepare", "--files", "{}/plays.jsonl", "--overwrite", "--out", "{}"], "is no prepared corpus"),
        (
            ["corpus", "prepare", "--files", "{}/plays.jsonl", "--overwrite", "--out", "{}/plays.jsonl"],
            "is no prepared corpus",
        ),
    ],
)
def test_mistakes_are_one_sentence(arguments, message, folder, capsys):
    assert main([argument.replace("{}", str(folder)) for argument in arguments]) == 2
    err = capsys.readouterr().err.strip()
    assert message in err
    assert err.splitlines()[-1].startswith(f"lengen {arguments[0]}: error: ")
    assert "Traceback" not in err
    assert not (folder / "y").exists()
    assert not (folder / "r.jsonl").exists()
