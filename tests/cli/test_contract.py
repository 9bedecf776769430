"""The command line that scripts rely on: outputs, exit codes, one-sentence errors."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lengen.cli import COMMANDS, main
from lengen.results import RunFolder

SMOKE = [
    "--steps",
    "20",
    "--batch-size",
    "4",
    "--model.width",
    "16",
    "--model.num_layers",
    "1",
    "--model.num_heads",
    "2",
]
SMALL_EVAL = ["--eval-lengths", "10,20", "--eval-examples", "8", "--log-every", "10", "--checkpoint-every", "10"]


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(list(arguments))
    except SystemExit as exit_:  # argparse's way out
        code = int(exit_.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def json_lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def smoke_run(tmp_path, capsys) -> Path:
    path = tmp_path / "run"
    code, _, err = run(capsys, "train", "parity-scratchpad", "--scheme", "ppc", "--out", str(path), *SMOKE, *SMALL_EVAL)
    assert code == 0, err
    return path


@pytest.mark.parametrize("command", ["tasks", "schemes", "presets"])
def test_catalogues_list_one_line_each(capsys, command):
    code, out, _ = run(capsys, command)
    assert code == 0
    code, as_json, _ = run(capsys, command, "--json")
    names = [(record.get("kind"), record["name"]) for record in json_lines(as_json)]
    tables = [table.splitlines() for table in out.split("\n\n")]
    assert all("name" in headings.split() for headings, *_ in tables)
    assert sum(len(lines) for _, *lines in tables) == len(names)
    assert len(set(names)) == len(names)


def test_every_task_and_scheme_is_listed(capsys):
    _, tasks, _ = run(capsys, "tasks")
    for name in ("sparse-parity", "parity-scratchpad", "variable-assignment", "string-reversal", "copy"):
        assert name in tasks
    for name in ("kgram-retrieval", "addition"):
        assert name in tasks
    _, schemes, _ = run(capsys, "schemes")
    for name in ("ppc", "coupled", "shifted-ape", "pose-rope", "randomized", "fire", "alibi", "nope"):
        assert name in schemes


def test_sample_json(capsys):
    code, out, _ = run(
        capsys,
        "sample",
        "parity-scratchpad",
        "--length",
        "8",
        "--num-examples",
        "3",
        "--seed",
        "5",
        "--task.jump",
        "2",
        "--json",
    )
    records = json_lines(out)
    assert code == 0
    assert len(records) == 3
    for record in records:
        assert set(record) == {"tokens", "token_ids", "coupled_ids", "prompt_len", "length"}
        assert record["coupled_ids"] == [0, 1, 1, 2, 2, 0, 1, 2]
        assert (record["prompt_len"], record["length"]) == (6, 8)
        assert record["tokens"][0] == "<BOS>"
        assert record["tokens"][5] == "<SEP>"
    _, again, _ = run(
        capsys,
        "sample",
        "parity-scratchpad",
        "--length",
        "8",
        "--num-examples",
        "3",
        "--seed",
        "5",
        "--task.jump=2",
        "--json",
    )
    assert again == out


def test_sample_for_a_person(capsys):
    _, out, _ = run(capsys, "sample", "addition", "--length", "3")
    tokens, ids = out.splitlines()
    assert tokens.startswith("tokens <BOS>")
    assert ids.split() == ["ids", "0", "3", "2", "1", "0", "3", "2", "1", "0", "|", "1", "2", "3", "4"]
    assert tokens.index("|") == ids.index("|")


def test_train_evaluate_decode_plot(capsys, smoke_run, tmp_path):
    folder = str(smoke_run)
    code, out, _ = run(
        capsys, "evaluate", folder, "--lengths", "20:40:10", "--num-examples", "16", "--seed", "1", "--json"
    )
    assert code == 0
    rows = json_lines(out)
    assert {row["length"] for row in rows} == {20, 30, 40}
    assert {row["metric"] for row in rows} == {"last-token", "exact-tokens", "joint"}
    assert all(row["total"] == 16 and 0 <= row["low"] <= row["correct"] / 16 <= row["high"] <= 1 for row in rows)
    _, decoded, _ = run(
        capsys, "evaluate", folder, "--lengths", "20:40:10", "--num-examples", "16", "--seed", "1", "--json", "--decode"
    )
    key = ("length", "metric", "correct", "total")
    assert [[row[k] for k in key] for row in rows] == [[row[k] for k in key] for row in json_lines(decoded)]

    code, out, err = run(capsys, "evaluate", folder, "--lengths", "20,40")
    assert err.splitlines() == ["evaluating at length 20 (1 of 2)", "evaluating at length 40 (2 of 2)"]
    assert code == 0
    assert out.splitlines()[0].split() == ["length", "last-token", "exact-tokens", "joint"]

    code, out, _ = run(capsys, "decode", folder, "--length", "10", "--seed", "3")
    assert code == 0
    assert "of 5 steps right" in out
    code, out, _ = run(capsys, "decode", folder, "--length", "10", "--seed", "3", "--json")
    steps = json_lines(out)
    assert [step["slot"] for step in steps] == [7, 8, 9, 10, 11]
    assert [step["true_position_id"] for step in steps] == [1, 2, 3, 4, 5]

    figure = tmp_path / "figures" / "curves.png"
    code, out, _ = run(capsys, "plot", folder, "--out", str(figure))
    assert code == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    code, _, err = run(capsys, "plot", folder, "--out", str(figure))
    assert code == 2
    assert "exists already" in err


def test_any_assigner_with_any_encoder(capsys, tmp_path):
    out_folder = str(tmp_path / "pair")
    code, _, err = run(capsys, "train", "copy", "--scheme", "predicted+fire", "--out", out_folder, *SMOKE, *SMALL_EVAL)
    assert code == 0, err
    assert RunFolder(Path(out_folder)).read_run()["config"]["scheme"]["encoder"]["name"] == "fire"


def test_presets_train(capsys, tmp_path):
    out_folder = str(tmp_path / "preset")
    arguments = ("train", "--preset", "fig3a-depth2", "--scale", "smoke", "--out", out_folder, "--steps", "4", "--json")
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    assert json_lines(out)[0]["step"] == 4


def test_settings_may_stand_anywhere(capsys, tmp_path):
    out_folder = str(tmp_path / "preset")
    code, _, err = run(
        capsys,
        "train",
        "--assigner.shift_reserved",
        "false",
        "--preset",
        "fig2-jump1",
        "--model.width",
        "16",
        "--scale",
        "smoke",
        "--out",
        out_folder,
        "--steps",
        "2",
    )
    assert code == 0, err
    config = RunFolder(Path(out_folder)).read_run()["config"]
    assert config["scheme"]["assigner"]["shift_reserved"] is False
    assert config["model"]["width"] == 16


def test_resume_needs_nothing_but_the_folder(capsys, smoke_run):
    code, _, _ = run(capsys, "train", "--resume", "--out", str(smoke_run))
    assert code == 0
    code, _, err = run(capsys, "train", "--resume", "--out", str(smoke_run), "--seed", "9")
    assert code == 2
    assert "seed is 0 in the run and 9 here" in err


def test_tests_may_differ_from_training_in_settings_without_weights(capsys, tmp_path):
    folder = str(tmp_path / "sparse")
    small = ["--steps", "2", "--batch-size", "4", "--model.width", "32", "--model.num_layers", "1"]
    code, _, err = run(
        capsys,
        "train",
        "sparse-parity",
        "--scheme",
        "pose-rope",
        "--out",
        folder,
        *small,
        "--eval-lengths",
        "20",
        "--eval-examples",
        "8",
    )
    assert code == 0, err
    code, out, err = run(
        capsys, "evaluate", folder, "--lengths", "20,40", "--task.k_test", "6", "--num-examples", "8", "--json"
    )
    assert code == 0, err
    assert all(row["overrides"] == {"task.k_test": 6} for row in json_lines(out))
    code, out, err = run(
        capsys,
        "evaluate",
        folder,
        "--lengths",
        "20",
        "--encoder.interpolation",
        "linear",
        "--encoder.factor",
        "2",
        "--json",
    )
    assert code == 0, err
    code, _, err = run(capsys, "evaluate", folder, "--lengths", "20", "--task.num_markers", "30")
    assert code == 2
    assert "vocabulary" in err
    # A setting that is the run's own is none that differs.
    _, out, _ = run(capsys, "evaluate", folder, "--lengths", "20", "--encoder.factor", "1.0", "--json")
    assert json_lines(out)[0]["overrides"] == {}


def test_a_test_need_not_fit_the_lengths_of_training(capsys, smoke_run):
    """Jump 24 has no length up to 40; the model was trained at jump 1 on 10–40."""
    code, out, err = run(
        capsys, "evaluate", str(smoke_run), "--lengths", "96", "--task.jump", "24", "--num-examples", "4", "--json"
    )
    assert code == 0, err
    assert {row["length"] for row in json_lines(out)} == {96}


def test_a_run_s_curve_is_of_its_last_step_and_its_own_settings(capsys, tmp_path):
    out = str(tmp_path / "run")
    train = ["train", "parity-scratchpad", "--scheme", "ppc", "--out", out, *SMOKE, *SMALL_EVAL]
    assert run(capsys, *train, "--steps", "2")[0] == 0
    earlier = RunFolder(tmp_path / "run").latest_rows()
    assert run(capsys, "evaluate", out, "--lengths", "30", "--num-examples", "4")[0] == 0
    assert run(capsys, "evaluate", out, "--lengths", "10", "--num-examples", "4", "--model.sharpness", "3")[0] == 0
    code, printed, err = run(capsys, "train", "--resume", "--out", out, "--json")
    assert code == 0, err
    rows = json_lines(printed)
    assert {row["length"] for row in rows} == {10, 20, 30}
    assert all(row["overrides"] == {} for row in rows)
    RunFolder(tmp_path / "run").append_rows([replace(row, step=3) for row in earlier])  # as if it had gone on
    assert {row.step for row in RunFolder(tmp_path / "run").latest_rows()} == {3}


BAD_USAGE = {
    "unknown command": (["trian"], "did you mean 'train'"),
    "unknown flag": (["tasks", "--jsn"], "did you mean '--json'"),
    "unknown flag of a command within one": (
        ["lm", "train", "--corpus", "x", "--out", "{tmp}/x", "--prest", "short"],
        "did you mean '--preset'; see `lengen lm train --help`",
    ),
    "unknown task": (["sample", "party-scratchpad", "--length", "8"], "did you mean 'parity-scratchpad'"),
    "unknown scheme": (["train", "copy", "--scheme", "pcc", "--out", "{tmp}/x"], "did you mean 'ppc'"),
    "unknown assigner": (
        ["train", "copy", "--scheme", "predictd+fire", "--out", "{tmp}/x"],
        "did you mean 'predicted'",
    ),
    "unknown preset": (["train", "--preset", "fig2-jmp1", "--out", "{tmp}/x"], "did you mean 'fig2-jump1'"),
    "unknown scale": (
        ["train", "--preset", "fig2-jump1", "--scale", "papr", "--out", "{tmp}/x"],
        "did you mean 'paper'",
    ),
    "unknown task setting": (
        ["sample", "parity-scratchpad", "--length", "8", "--task.jmp", "2"],
        "did you mean 'jump'",
    ),
    "setting of nothing": (["sample", "addition", "--length", "8", "--task.jump", "2"], "addition has no settings"),
    "setting without value": (["sample", "parity-scratchpad", "--length", "8", "--task.jump"], "needs a value"),
    "flag for a value": (["sample", "parity-scratchpad", "--task.jump", "--length", "8"], "needs a value"),
    "not a number": (
        ["sample", "parity-scratchpad", "--length", "8", "--task.jump", "two"],
        "'two' is not a whole number",
    ),
    "length is no number": (["sample", "copy", "--length", "x"], "invalid int value: 'x'"),
    "odd length": (["sample", "parity-scratchpad", "--length", "9"], "try 8 or 10"),
    "short length": (["sample", "variable-assignment", "--length", "4"], "use a length from 6 to"),
    "no examples": (["sample", "copy", "--length", "4", "--num-examples", "0"], "use at least 1"),
    "negative seed": (["sample", "copy", "--length", "4", "--seed", "-1"], "seed=-1"),
    "no scheme": (["train", "copy", "--out", "{tmp}/x"], "add --scheme"),
    "nothing to train": (["train", "--out", "{tmp}/x"], "nothing to train"),
    "no out": (["train", "copy", "--scheme", "ppc"], "--out"),
    "task and preset": (
        ["train", "copy", "--preset", "fig2-jump1", "--out", "{tmp}/x"],
        "a preset has its task already",
    ),
    "training beyond the table": (
        ["train", "copy", "--scheme", "ape", "--assigner.max_position_id", "10", "--out", "{tmp}/x"],
        "--assigner.max_position_id to at least",
    ),
    "evaluation beyond the table": (
        ["train", "copy", "--scheme", "ppc", "--eval-lengths", "500", "--out", "{tmp}/x"],
        "beyond the position table",
    ),
    "width and heads": (
        ["train", "copy", "--scheme", "ppc", "--model.width", "30", "--out", "{tmp}/x"],
        "width=30 is not a multiple of num_heads=4",
    ),
    "bad choice": (["train", "copy", "--scheme", "ppc", "--precision", "fp8", "--out", "{tmp}/x"], "fp32, bf16"),
    "bad device": (["train", "copy", "--scheme", "ppc", "--device", "abacus", "--out", "{tmp}/x"], "use cpu"),
    "test length that does not fit": (
        ["train", "parity-scratchpad", "--scheme", "ppc", "--task.jump", "8", "--out", "{tmp}/x"],
        "of the lengths to be tested at (eval_lengths)",
    ),
    "scale of no preset": (["train", "copy", "--scheme", "ppc", "--scale", "cpu", "--out", "{tmp}/x"], "add --preset"),
    "scheme of a run that has one": (
        ["train", "--resume", "--scheme", "rope", "--out", "{run}"],
        "has its scheme already; drop --scheme rope",
    ),
    "resume and overwrite": (["train", "--resume", "--overwrite", "--out", "{run}"], "give one of the two"),
    "one figure of two unknown": (["figure", "all", "fig22", "--out", "{tmp}/x"], "did you mean 'fig2'"),
    "no such page": (["results", "--page", "{tmp}/none.md"], "none.md: No such file or directory"),
    "not a run": (["evaluate", "{tmp}", "--lengths", "10"], "is no run"),
    "decode of nothing": (["decode", "{tmp}/nothing", "--length", "10"], "is no run"),
    "plot of nothing": (["plot", "{tmp}", "--out", "{tmp}/x.png"], "is no run"),
    "bad lengths": (["evaluate", "{run}", "--lengths", "20-200"], "write 20:200:20"),
    "backward lengths": (["evaluate", "{run}", "--lengths", "200:20:20"], "START ≤ STOP"),
    "too long": (["evaluate", "{run}", "--lengths", "20,2000"], "beyond the position table"),
    "misfit length": (["evaluate", "{run}", "--lengths", "21"], "odd"),
    "decode too long": (["decode", "{run}", "--length", "2000"], "beyond the position table"),
    "figure format": (["plot", "{run}", "--out", "{tmp}/x.gif"], "end it in .png"),
    "existing run": (["train", "copy", "--scheme", "ppc", "--out", "{run}"], "--overwrite"),
    "resume of nothing": (
        ["train", "copy", "--scheme", "ppc", "--resume", "--out", "{tmp}/none"],
        "holds no run to resume",
    ),
    "resume with another scheme": (
        ["train", "parity-scratchpad", "--scheme", "coupled", "--resume", "--out", "{run}", *SMOKE],
        "cannot resume",
    ),
    "out is a file": (
        ["train", "copy", "--scheme", "ppc", "--out", "{run}/run.json"],
        "cannot write to the output folder",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage_is_one_sentence_and_exit_2(capsys, smoke_run, tmp_path, arguments, expected):
    empty = tmp_path / "empty"
    empty.mkdir()
    code, out, err = run(capsys, *(part.format(run=smoke_run, tmp=empty) for part in arguments))
    assert code == 2
    assert out == ""
    assert expected in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
    assert not list(empty.iterdir()), "nothing is left behind by a refused command"


def test_damaged_files_are_named(capsys, smoke_run):
    (smoke_run / "checkpoint.safetensors").write_bytes(b"x" * 100)
    code, _, err = run(capsys, "evaluate", str(smoke_run), "--lengths", "10")
    assert code == 2
    assert "is damaged" in err
    (smoke_run / "run.json").write_text("{")
    code, _, err = run(capsys, "evaluate", str(smoke_run), "--lengths", "10")
    assert code == 2
    assert "is damaged" in err


def test_an_unwritable_folder_is_refused(capsys, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):  # root may write anywhere, so permissions alone would not show it
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    code, _, err = run(capsys, "train", "copy", "--scheme", "ppc", "--out", str(tmp_path / "run"))
    assert code == 2
    assert "cannot write to the output folder" in err
    assert "Permission denied" in err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    _, shown = re.split(
        r"^examples?:\n", out, flags=re.MULTILINE
    )  # what comes before has the command in its usage line
    assert f"  lengen {'train --preset' if command == 'presets' else command}" in shown


@pytest.mark.parametrize(
    "names",
    [
        f"{command} {name}"
        for command, names in {
            "corpus": ("list", "prepare"),
            "lm": ("train", "evaluate", "presets"),
            "context": ("analyze", "show", "figure"),
            "theory": ("list", "check", "plot"),
        }.items()
        for name in names
    ],
)
def test_so_has_every_command_within_one(capsys, names):
    code, out, _ = run(capsys, *names.split(), "--help")
    assert code == 0
    assert f"example:\n  lengen {names}" in out


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_resume_continues(tmp_path, start_lengen, number, expected):
    folder = RunFolder(tmp_path / "run")
    num_steps = 400  # half a second of work at least: the signal comes in the middle of it
    arguments = ["train", "parity-scratchpad", "--scheme", "ppc", "--out", str(folder.path), *SMOKE, *SMALL_EVAL]
    child = start_lengen(*arguments, "--steps", str(num_steps), "--checkpoint-every", str(num_steps))
    deadline = time.monotonic() + 60
    while not (folder.metrics_file.exists() and folder.metrics_file.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == expected
    assert "saved; continue with --resume" in err
    record = folder.read_run()
    assert record["status"] == "interrupted"
    assert 0 < record["step"] < num_steps
    assert folder.checkpoint_file.exists()

    logged = folder.metrics_file.read_text()
    resumed = start_lengen("train", "--resume", "--out", str(folder.path))
    _, err = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, err
    assert (folder.read_run()["status"], folder.read_run()["step"]) == ("finished", num_steps)
    assert folder.metrics_file.read_text().startswith(logged), "steps already taken are not taken again"
    steps = [record["step"] for record in json_lines(folder.metrics_file.read_text()) if "loss" in record]
    assert steps == list(range(10, num_steps + 1, 10))
    assert {row.length for row in folder.read_rows()} == {10, 20}


def test_help_and_sample_do_not_import_torch():
    code = (
        "import sys; from lengen.cli import main\n"
        "for arguments in {}:\n"
        "    try: main(arguments)\n"
        "    except SystemExit: pass\n"
        "    assert 'torch' not in sys.modules, arguments"
    )
    commands = [
        ["--help"],
        ["tasks"],
        ["schemes"],
        ["presets"],
        ["sample", "copy", "--length", "4"],
        *([command, "--help"] for command in COMMANDS),
    ]
    done = subprocess.run([sys.executable, "-c", code.format(commands)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
