"""What the README shows works: its Python example runs, its commands parse, its links and figures exist."""

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from torch.distributed.run import parse_args as parse_launch

from lengen.cli import COMMANDS, Parser
from lengen.cli.overrides import read_dotted_flags

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```\n(.*?)```", README, flags=re.DOTALL)
    for line in block.replace("\\\n", "").splitlines()  # a command may go on in the next line
    if line.startswith(("lengen ", "torchrun "))
]


def test_the_python_example_is_short_and_runs(tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len([line for line in example.splitlines() if line]) <= 5
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "'joint'" in done.stdout
    assert (tmp_path / "runs" / "jump2" / "run.json").exists()


@pytest.mark.parametrize("line", SHOWN)
def test_shown_commands_parse(line):
    program, *words = shlex.split(line)
    if program == "torchrun":
        launch = parse_launch(words)
        assert launch.module
        assert launch.training_script == "lengen"
        words = launch.training_script_args
    name, *arguments = words
    assert name in COMMANDS
    command = importlib.import_module(f"lengen.cli.{name}")
    parser = Parser(prog=name, allow_abbrev=False)
    command.configure(parser)
    if getattr(command, "TAKES_OVERRIDES", False):
        _, arguments = read_dotted_flags(arguments)
    parser.parse_args(arguments)


def test_both_commands_are_shown():
    assert len(SHOWN) > 5
    assert any(line.startswith("torchrun ") for line in SHOWN)
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    for path in re.findall(r"`((?:src|tests|docs|results|benchmarks)/[\w./-]+\.\w+)`", page.read_text()):
        assert "your_" in path or (ROOT / path).exists(), path
