"""`lengen context`: a whole analysis on a tiny model, resumed, shown and drawn; and one sentence for bad input."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
)

from lengen.cli import main
from lengen.context import analysis as analysis_module
from lengen.context.show import pieces_of
from lengen.context.sources import Sources
from lengen.context.text import read_text
from lengen.evaluate.agreement import Agreement
from lengen.evaluate.intervals import Interval
from lengen.results.context import ORDERS, read_analysis

WORDS = [f"word{number}" for number in range(40)]
SMALL = ["--short", "6", "--long", "16", "--num-influential", "3", "--num-greedy", "2"]


def save_model(folder: Path, seed: int = 0, vocab_size: int = 50, max_tokens: int = 32) -> Path:
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=vocab_size,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=max_tokens,
        initializer_range=0.5,
        bos_token_id=0,
        eos_token_id=0,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def save_tokenizer(folder: Path, **more_tokens: int) -> None:
    ids = {"?": 0, **{word: i for i, word in enumerate(WORDS, 1)}, **more_tokens}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?").save_pretrained(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    generator = torch.Generator().manual_seed(3)
    numbers = torch.randint(0, len(WORDS), (400,), generator=generator).tolist()
    path = tmp_path_factory.mktemp("texts") / "words.txt"
    path.write_text(" <b>& ".join(WORDS[number] for number in numbers[:5]) + " ")
    with path.open("a") as file:
        file.write(" ".join(WORDS[number] for number in numbers))
    return path


@pytest.fixture
def analysis(model, text, tmp_path, capsys) -> Path:
    out = tmp_path / "analysis"
    assert main(["context", "analyze", *arguments(model, text, out)]) == 0
    capsys.readouterr()
    return out


def arguments(model: Path, text: Path, out: Path, num_examples: int = 10) -> list[str]:
    return ["--model", str(model), "--text", str(text), "--out", str(out), "--num-examples", str(num_examples), *SMALL]


def test_rows_hold_what_the_paper_defines(analysis):
    found = read_analysis(analysis)
    assert found.settings.curve == (0, 1, 2, 3, 5, 9)
    assert len(found.rows) == 10
    for row in found.rows:
        assert len(row.influence) == found.settings.num_far == 9
        assert sorted(row.influential, key=lambda token: -row.influence[token]) == row.influential
        assert max(row.influence) == row.influence[row.influential[0]]
        for order in ORDERS:
            assert row.losses[order][0] == row.loss_short
            assert row.losses[order][-1] == row.loss_long
        assert (row.greedy is not None) == (row.example < 2)
        if row.greedy is not None:
            assert len(set(row.greedy.tokens)) == len(row.greedy.losses) == 3
            assert row.greedy.losses[0] <= min(row.losses[order][1] for order in ORDERS) + 1e-4
    assert "word" not in (analysis / "rows.jsonl").read_text().replace("words.txt", "")
    assert str(analysis.parent) not in (analysis / "rows.jsonl").read_text()


def test_the_full_curve_has_every_point(model, text, tmp_path, capsys):
    code = main(["context", "analyze", *arguments(model, text, tmp_path / "a", 2), "--curve", "full", "--json"])
    assert code == 0
    assert read_analysis(tmp_path / "a").settings.curve == tuple(range(10))
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["order"] for record in records] == [*ORDERS, "greedy"]
    assert {"correlation", "correlation_low", "slope", "recovered_high", "mean_loss_long"} <= set(records[0])


def test_what_is_no_number_is_null(model, text, analysis, monkeypatch, strictly_read):
    """Where no far token gives anything, gains are constant, and nothing correlates with them."""
    nowhere = Interval(math.nan, -math.inf, math.inf)
    monkeypatch.setattr("lengen.context.summary.agreement", lambda *_: Agreement(10, *[nowhere] * 4))
    assert main(["context", "analyze", *arguments(model, text, analysis), "--json"]) == 0
    for record in strictly_read():
        assert (record["correlation"], record["slope_low"], record["recovered_high"]) == (None, None, None)


def test_an_interrupted_analysis_goes_on(model, text, analysis, tmp_path, capsys, monkeypatch):
    out, real, calls = tmp_path / "again", analysis_module._rows_of, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(analysis_module, "_rows_of", interrupted)
    assert main(["context", "analyze", *arguments(model, text, out)]) == 130
    with (out / "rows.jsonl").open("a") as file:
        file.write('{"example": 4, "sta')  # a line cut short
    monkeypatch.setattr(analysis_module, "_rows_of", real)
    assert len(read_analysis(out).rows) == 4
    assert main(["context", "analyze", *arguments(model, text, out)]) == 0
    assert read_analysis(out) == read_analysis(analysis)
    before = (out / "rows.jsonl").read_bytes()
    assert main(["context", "analyze", *arguments(model, text, out)]) == 0  # nothing left to do
    assert (out / "rows.jsonl").read_bytes() == before


def test_where_model_and_text_are_is_written_once_and_at_once(model, text, tmp_path, monkeypatch):
    out, there = tmp_path / "out", []
    real_write, real_rows = Sources.write, analysis_module._rows_of

    def write(sources, folder):
        there.append("written")
        real_write(sources, folder)

    def rows_of(*args):
        there.append((out / "sources.json").is_file())
        return real_rows(*args)

    monkeypatch.setattr(Sources, "write", write)
    monkeypatch.setattr(analysis_module, "_rows_of", rows_of)
    assert main(["context", "analyze", *arguments(model, text, out)]) == 0
    assert there == ["written", True, True, True]


def test_fewer_examples_are_the_first_of_many(model, text, analysis, tmp_path):
    assert main(["context", "analyze", *arguments(model, text, tmp_path / "few", 3)]) == 0
    few, many = read_analysis(tmp_path / "few"), read_analysis(analysis)
    assert few.rows == many.rows[:3]


def test_an_analysis_goes_on_with_more_examples(model, text, analysis, tmp_path, capsys):
    out = tmp_path / "growing"
    assert main(["context", "analyze", *arguments(model, text, out, 3)]) == 0
    first_rows = (out / "rows.jsonl").read_text().splitlines()[1:]
    assert main(["context", "analyze", *arguments(model, text, out, 10)]) == 0
    assert read_analysis(out) == read_analysis(analysis)
    assert (out / "rows.jsonl").read_text().splitlines()[1:4] == first_rows  # none was computed again
    lines = [
        main(["context", "analyze", *arguments(model, text, tmp_path / "g", n), "--num-greedy", "5"]) for n in (3, 9)
    ]
    assert lines == [0, 0]
    greedy = [row.greedy is not None for row in read_analysis(tmp_path / "g").rows]
    assert greedy == [*[True] * 5, *[False] * 4]
    assert "num_examples=10, and this one has num_examples=3" in failure(
        capsys, "analyze", *arguments(model, text, out, 3)
    )


def test_several_targets_of_a_window_are_examples_of_their_own(model, text, tmp_path, capsys):
    """The second target of each window: the same as an analysis whose only target is that token."""
    out = tmp_path / "several"
    assert main(["context", "analyze", *arguments(model, text, out), "--num-targets", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["num_windows"] == 5
    found = read_analysis(out)
    assert (len(found.rows), found.counted()) == (10, "10 examples in 5 windows")
    assert [row.start for row in found.rows[::2]] == [row.start for row in found.rows[1::2]]
    assert [row.greedy is not None for row in found.rows] == [True, True, *[False] * 8]
    alone = ["--short", "7", "--long", "17", "--num-influential", "3", "--num-examples", "5", "--num-greedy", "1"]
    sources = ["--model", str(model), "--text", str(text), "--out", str(tmp_path / "alone")]
    assert main(["context", "analyze", *sources, *alone]) == 0
    for row, one in zip(found.rows[1::2], read_analysis(tmp_path / "alone").rows, strict=True):
        assert (row.start, row.influential) == (one.start, one.influential)
        assert row.influence == pytest.approx(one.influence, abs=2e-4)
        for order in ORDERS:
            assert row.losses[order] == pytest.approx(one.losses[order], abs=2e-4)
    assert found.rows[0].influence != pytest.approx(found.rows[1].influence, abs=0.01)


def test_a_window_that_is_not_written_whole_is_written_again(model, text, tmp_path):
    out = tmp_path / "several"
    flags = [*arguments(model, text, out), "--num-targets", "2"]
    assert main(["context", "analyze", *flags]) == 0
    whole, lines = read_analysis(out), (out / "rows.jsonl").read_text().splitlines(keepends=True)
    (out / "rows.jsonl").write_text("".join(lines[:-1]))
    assert read_analysis(out).rows == whole.rows[:-2]
    assert main(["context", "analyze", *flags]) == 0
    assert read_analysis(out) == whole


def test_show_ends_with_the_token_that_is_predicted(model, text, tmp_path, capsys):
    out = tmp_path / "several"
    assert main(["context", "analyze", *arguments(model, text, out), "--num-targets", "2"]) == 0
    found = read_analysis(out)
    first, second = ([*pieces_of(found, row, out, model, text)] for row in found.rows[:2])
    assert [piece.part for piece in first] == [*["far"] * 9, *["recent"] * 6, "predicted"]
    assert [piece.part for piece in second] == [*["far"] * 9, *["recent"] * 7, "predicted"]
    capsys.readouterr()
    assert main(["context", "show", str(out), "--example", "1"]) == 0
    assert "from the 7 recent ones" in capsys.readouterr().out


def test_another_model_may_select(model, text, analysis, tmp_path):
    other = save_model(tmp_path / "other", seed=1)
    for out, flags in (("cross", ["--select-with", str(other)]), ("same", ["--select-with", str(model)])):
        assert main(["context", "analyze", *arguments(model, text, tmp_path / out), *flags]) == 0
    plain, cross, same = (read_analysis(path) for path in (analysis, tmp_path / "cross", tmp_path / "same"))
    assert same.rows == plain.rows
    assert [row.loss_long for row in cross.rows] == [row.loss_long for row in plain.rows]
    assert [row.influential for row in cross.rows] != [row.influential for row in plain.rows]
    assert main(["context", "analyze", *arguments(other, text, tmp_path / "theirs")]) == 0
    theirs = read_analysis(tmp_path / "theirs")
    for row, one in zip(cross.rows, theirs.rows, strict=True):  # all that is chosen, and what it is chosen by
        assert (row.influential, row.influence) == (one.influential, one.influence)
        assert (row.greedy and row.greedy.tokens) == (one.greedy and one.greedy.tokens)
    assert [row.greedy and row.greedy.tokens for row in plain.rows] != [
        row.greedy and row.greedy.tokens for row in cross.rows
    ]
    assert [row.losses["attended"] for row in cross.rows] != [row.losses["attended"] for row in plain.rows]
    assert [row.losses["recent"] for row in cross.rows] == [row.losses["recent"] for row in plain.rows]


def test_every_window_has_random_tokens_of_its_own(model, text, tmp_path, monkeypatch):
    drawn, at_random = [], analysis_module.at_random

    def remembered(num_far, seed, window):
        drawn.append((seed, window))
        return at_random(num_far, seed, window)

    monkeypatch.setattr(analysis_module, "at_random", remembered)
    flags = [*arguments(model, text, tmp_path / "several"), "--num-targets", "2", "--seed", "4"]
    assert main(["context", "analyze", *flags]) == 0
    assert drawn == [(4, window) for window in range(5) for _ in range(2)]


def test_show(analysis, capsys, tmp_path):
    assert main(["context", "show", str(analysis), "--example", "3"]) == 0
    shown = capsys.readouterr().out
    row = read_analysis(analysis).rows[3]
    assert f"(token {row.influential[0]}): loss {row.influence[row.influential[0]]:+.3f} without it" in shown
    assert len(shown.splitlines()[0]) > 80  # a text without line feeds is a line, however wide the screen
    page = tmp_path / "page.html"
    start = next(row.example for row in read_analysis(analysis).rows)
    assert main(["context", "show", str(analysis), "--example", str(start), "--html", str(page)]) == 0
    html = page.read_text()
    assert html.count('class="far influential"') == 3
    assert html.count("<span") == 16
    assert "<script" not in html
    assert "http" not in html
    assert main(["context", "show", str(analysis), "--html", str(page)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_what_is_shown_is_the_text_with_its_spaces(model, text, analysis):
    """This tokenizer counts no space to any token, as GPT-NeoX's with trimmed offsets."""
    found = read_analysis(analysis)
    for row in found.rows:
        shown = "".join(piece.text for piece in pieces_of(found, row, analysis, model, text))
        assert " " in shown
        assert shown in text.read_text()


def test_a_page_escapes_the_text(model, text, tmp_path, capsys):
    """All windows, so that the one with tags is among them."""
    out = tmp_path / "all"
    assert main(["context", "analyze", *arguments(model, text, out, 25)]) == 0
    first = next(row.example for row in read_analysis(out).rows if row.start == 0)
    assert main(["context", "show", str(out), "--example", str(first), "--html", str(tmp_path / "p.html")]) == 0
    page = (tmp_path / "p.html").read_text()
    assert "&lt;" in page
    assert "<b>" not in page


def test_show_refuses_another_text(analysis, tmp_path, capsys):
    other = tmp_path / "other.txt"
    other.write_text("word1 word2")
    assert main(["context", "show", str(analysis), "--text", str(other)]) == 2
    assert "checksum differs" in capsys.readouterr().err
    assert main(["context", "show", str(analysis), "--example", "77"]) == 2
    assert "it has 10 examples" in capsys.readouterr().err


def test_copies_are_found_in_the_words_of_the_text(model, text, tmp_path, capsys):
    """An independent look at the words, for windows of several targets."""
    out = tmp_path / "several"
    assert (
        main(["context", "analyze", *arguments(model, text, out, 30), "--num-targets", "3", "--num-greedy", "0"]) == 0
    )
    capsys.readouterr()
    words = re.findall(r"\w+|[^\w\s]+", text.read_text())
    gains: dict[str, list[float]] = {"far": [], "recent": [], "nowhere": []}
    for row in read_analysis(out).rows:
        window = words[row.start : row.start + 16 + row.example % 3]
        place = "recent" if window[-1] in window[9:-1] else "far" if window[-1] in window[:9] else "nowhere"
        gains[place].append(row.gain_long)
    assert all(gains.values())
    of_all = sum(map(sum, gains.values()))
    assert main(["context", "copies", str(out), "--json"]) == 0
    records = {record["place"]: record for record in map(json.loads, capsys.readouterr().out.splitlines())}
    for place, values in gains.items():
        assert records[place]["num_examples"] == len(values)
        assert records[place]["gain"] == pytest.approx(sum(values) / len(values))
        assert records[place]["share_of_gain"] == pytest.approx(sum(values) / of_all)
    assert main(["context", "copies", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("30 examples in 10 windows")
    assert f"among the far tokens alone  {len(gains['far'])} (" in shown


def test_copies_refuse_another_text_and_a_single_window(model, text, analysis, tmp_path, capsys):
    other = tmp_path / "other.txt"
    other.write_text("word1 word2")
    assert "checksum differs" in failure(capsys, "copies", str(analysis), "--text", str(other))
    rows = (analysis / "rows.jsonl").read_text().splitlines()
    (analysis / "rows.jsonl").write_text("\n".join(rows[:2]) + "\n")
    assert "need two windows of text" in failure(capsys, "copies", str(analysis))


def test_figures_need_no_torch(analysis, tmp_path):
    script = (
        "import sys; sys.modules['torch'] = None; from lengen.cli import main; "
        f"code = main(['context', 'figure', {str(analysis)!r}, {str(analysis / 'rows.jsonl')!r}, "
        f"'--out', {str(tmp_path / 'a.png')!r}]); "
        f"sys.exit(code or main(['context', 'figure', '--masks', '--out', {str(tmp_path / 'b.svg')!r}]))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "b.svg").read_text()


# Bad input: one sentence, exit 2, nothing written


def failure(capsys, *flags: str) -> str:
    capsys.readouterr()  # what making the models has printed
    assert main(["context", *flags]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1, error
    assert error.startswith("lengen context: error: ")
    return error


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"word1 word2 word3", "has 3 tokens in a row, fewer than the 16 of a window (--long 16); give a longer text"),
        (b"  \n ", "is empty"),
        (b"caf\xe9 word1", "is not UTF-8 (byte 3)"),
        (b"word1 " * 40, "--num-examples 10 needs 10 windows of 16 tokens, and bad.txt has 2; use at most 2"),
    ],
)
def test_bad_texts(content, message, model, tmp_path, capsys):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    assert message in failure(capsys, "analyze", *arguments(model, path, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--num-influential", "10"], "--num-influential 10 is more than the 9 far tokens"),
        (["--num-influential", "0"], "--num-influential 0 is too few"),
        (["--long", "7"], "--long 7 leaves no far token"),
        (["--long", "40"], "reads 32 tokens at most, and --long 40 needs 39; use 7 fewer"),
        (["--text", "nowhere.txt"], "there is no text nowhere.txt"),
        (["--model", "nowhere"], "nowhere is no model"),
        (["--model", "nowhere.gguf"], "there is no model nowhere.gguf"),
        (["--max-batch-tokens", "0"], "--max-batch-tokens 0 is too few"),
        (["--num-examples", "1"], "--num-examples 1 is too few"),
        (["--num-greedy", "-5"], "--num-greedy -5 is too few; use at least 0"),
        (["--num-targets", "0"], "--num-targets 0 is too few"),
        (["--num-targets", "10"], "--num-examples 10 is too few; use at least 20"),
        (["--num-targets", "3"], "--num-examples 10 is no multiple of --num-targets 3; use 12"),
        (["--num-targets", "5"], "--num-greedy 2 is no multiple of --num-targets 5; use 5"),
        (["--num-targets", "2", "--long", "33"], "and --long 33 with --num-targets 2 needs 33; use 1 fewer"),
    ],
)
def test_bad_settings(flags, message, model, text, tmp_path, capsys):
    assert message in failure(capsys, "analyze", *arguments(model, text, tmp_path / "out"), *flags)
    assert not (tmp_path / "out").exists()


def test_the_longest_context_that_fits_is_taken(model, text, tmp_path):
    assert main(["context", "analyze", *arguments(model, text, tmp_path / "out", 2), "--long", "33"]) == 0


def test_a_tokenizer_too_large_for_its_model(text, tmp_path, capsys):
    small = save_model(tmp_path / "small", vocab_size=30)
    error = failure(capsys, "analyze", *arguments(small, text, tmp_path / "out"))
    assert "the tokenizer of small has tokens up to 40 and the model ends at 29" in error


def test_a_tokenizer_with_gaps_is_measured_by_its_largest_id(text, tmp_path, capsys):
    gaps = save_model(tmp_path / "gaps")
    save_tokenizer(gaps, word7=70)
    error = failure(capsys, "analyze", *arguments(gaps, text, tmp_path / "out"))
    assert "has tokens up to 70 and the model ends at 49" in error
    assert not (tmp_path / "out").exists()


def test_a_model_that_only_looks_at_neighbours(text, tmp_path, capsys):
    kinds = [[["local"], 2]]
    config = GPTNeoConfig(
        vocab_size=50, hidden_size=16, num_layers=2, num_heads=2, attention_types=kinds, window_size=8
    )
    GPTNeoForCausalLM(config).save_pretrained(tmp_path / "neo")
    save_tokenizer(tmp_path / "neo")
    capsys.readouterr()
    error = failure(capsys, "analyze", *arguments(tmp_path / "neo", text, tmp_path / "out"))
    assert "the model neo (GPTNeoForCausalLM) does not heed a mask and position ids at 15 tokens" in error
    assert not (tmp_path / "out").exists()


def test_a_model_without_position_ids(text, tmp_path, capsys):
    config = BloomConfig(vocab_size=50, hidden_size=16, n_layer=1, n_head=2)
    BloomForCausalLM(config).save_pretrained(tmp_path / "bloom")
    save_tokenizer(tmp_path / "bloom")
    capsys.readouterr()
    error = failure(capsys, "analyze", *arguments(tmp_path / "bloom", text, tmp_path / "out"))
    assert "the model bloom (BloomForCausalLM) takes no position_ids" in error


def test_a_model_that_lacks_weights(text, tmp_path, capsys):
    """transformers only warns, and goes on with random ones."""
    lacking = save_model(tmp_path / "lacking")
    weights = load_file(lacking / "model.safetensors")
    del weights["transformer.h.1.mlp.c_fc.weight"]
    save_file(weights, lacking / "model.safetensors", metadata={"format": "pt"})
    message = failure(capsys, "analyze", *arguments(lacking, text, tmp_path / "out"))
    assert "lacks 1 of the model's weights (transformer.h.1.mlp.c_fc.weight, …); give a whole copy of it" in message


def test_weights_that_are_no_numbers(text, tmp_path, capsys):
    broken = save_model(tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights["transformer.ln_f.weight"].fill_(math.nan)
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    error = failure(capsys, "analyze", *arguments(broken, text, tmp_path / "out"))
    assert "the model broken gives logits that are no numbers" in error


@pytest.mark.parametrize("kind", ["pickle", "code"])
def test_a_model_that_would_run_code(kind, text, tmp_path, capsys):
    """Pickled weights and code of the folder: refused, and not run."""
    unsafe = save_model(tmp_path / "unsafe")
    config = json.loads((unsafe / "config.json").read_text())
    if kind == "pickle":
        torch.save(load_file(unsafe / "model.safetensors"), unsafe / "pytorch_model.bin")
        (unsafe / "model.safetensors").unlink()
    else:
        (unsafe / "own.py").write_text("raise SystemExit('code of the folder was run')")
        config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}}
    (unsafe / "config.json").write_text(json.dumps(config))
    assert "transformers cannot load" in failure(capsys, "analyze", *arguments(unsafe, text, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_sliding_window_that_is_too_narrow(text, tmp_path, capsys):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    config = MistralConfig(vocab_size=50, intermediate_size=16, sliding_window=8, **sizes)
    MistralForCausalLM(config).save_pretrained(tmp_path / "sliding")
    save_tokenizer(tmp_path / "sliding")
    error = failure(capsys, "analyze", *arguments(tmp_path / "sliding", text, tmp_path / "out"))
    assert "the model sliding reads 8 tokens at most, and --long 16 needs 15" in error


def test_a_damaged_model(model, text, tmp_path, capsys):
    broken = save_model(tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert "transformers cannot load" in failure(capsys, "analyze", *arguments(broken, text, tmp_path / "out"))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x03\x00\x00\x00", b"something else"])
def test_a_damaged_gguf(content, text, tmp_path, capsys):
    path = tmp_path / "cut.gguf"
    path.write_bytes(content)
    error = failure(capsys, "analyze", *arguments(path, text, tmp_path / "out"))
    assert f"transformers cannot load {path} (" in error
    assert "give a whole copy of it, or another" in error


def test_other_settings_do_not_mix(model, text, analysis, capsys):
    error = failure(capsys, "analyze", *arguments(model, text, analysis), "--seed", "1")
    assert "holds an analysis with seed=0, and this one has seed=1; choose another --out" in error


def test_another_model_of_the_same_name_does_not_go_on(model, text, analysis, tmp_path, capsys):
    same_name = save_model(tmp_path / "moved" / model.name, seed=1)
    capsys.readouterr()
    error = failure(capsys, "analyze", *arguments(same_name, text, analysis))
    assert "holds an analysis of another model named tiny (its weights differ); choose another --out" in error
    cross = tmp_path / "cross"
    assert main(["context", "analyze", *arguments(model, text, cross, 2), "--select-with", str(model)]) == 0
    capsys.readouterr()
    error = failure(capsys, "analyze", *arguments(model, text, cross, 2), "--select-with", str(same_name))
    assert "another selecting model named tiny" in error
    save_tokenizer(same_name, word39=41)
    (same_name / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes())
    error = failure(capsys, "analyze", *arguments(same_name, text, analysis))
    assert "the same text cut into other tokens (the tokenizer differs)" in error
    assert "has other tokens than when it was analysed" in failure(
        capsys, "show", str(analysis), "--model", str(same_name)
    )


def test_an_analysis_begun_before_there_were_digests_goes_on(model, text, analysis, capsys):
    rows_file = analysis / "rows.jsonl"
    first, *lines = rows_file.read_text().splitlines(keepends=True)
    header = json.loads(first)
    assert set(header.pop("digests")) == {"model", "select_with", "tokens"}
    rows_file.write_text(json.dumps(header) + "\n" + "".join(lines[:4]))
    assert main(["context", "analyze", *arguments(model, text, analysis)]) == 0
    assert len(read_analysis(analysis).rows) == 10
    assert main(["context", "show", str(analysis), "--model", str(model)]) == 0


def test_published_rows_stay_readable():
    files = sorted((Path(__file__).parents[2] / "results" / "cpu" / "context").glob("*.jsonl"))
    assert files
    assert all(read_analysis(path).rows for path in files)


def test_no_analysis(tmp_path, capsys):
    assert "holds no analysis" in failure(capsys, "show", str(tmp_path))
    (tmp_path / "rows.jsonl").write_text('{"settings": {}}\n')
    assert "is no analysis of this version" in failure(capsys, "figure", str(tmp_path), "--out", "a.png")
    assert "give analyses to draw, or --masks" in failure(capsys, "figure", "--out", "a.png")
    (tmp_path / "rows.jsonl").write_text("")
    assert "is no analysis of this version" in failure(capsys, "figure", str(tmp_path), "--out", "a.png")
    assert "there is no analysis nowhere; give" in failure(capsys, "figure", "nowhere", "--out", "a.png")


# Our own models and corpora: from text to a page, with nothing in place of anything


@pytest.fixture(scope="module")
def language(plays, tmp_path_factory) -> Path:
    """A prepared corpus and a run that was trained on it for a second."""
    folder = tmp_path_factory.mktemp("language")
    prepare = ["--files", str(plays), "--vocab-size", "400", "--out", str(folder / "corpus")]
    assert main(["corpus", "prepare", *prepare]) == 0
    train = ["--scale", "smoke", "--corpus", str(folder / "corpus"), "--out", str(folder / "h_short")]
    assert main(["lm", "train", "--preset", "short", *train]) == 0
    return folder


def test_our_models_on_our_corpora(language, tmp_path, capsys):
    """Beyond the 128 ids of training, too: rotary ids have no table that ends."""
    run, corpus = language / "h_short", language / "corpus"
    out = tmp_path / "out"
    assert main(["context", "analyze", *arguments(run, corpus, out, 2), "--short", "100", "--long", "140"]) == 0
    found = read_analysis(out)
    assert (found.settings.model, found.settings.text, len(found.rows)) == ("h_short", "files", 2)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("run.json", "tokenizer.json"):  # text is shown without weights
        (moved / name).write_bytes((run / name).read_bytes())
    capsys.readouterr()
    assert main(["context", "show", str(out), "--model", str(moved)]) == 0
    shown = capsys.readouterr().out
    document = read_text(corpus).documents[0]
    assert shown.split()[3] in document
    assert f"{found.rows[0].loss_long:.3f} with all 39" in shown
