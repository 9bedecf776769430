"""What the pages say of the theory is so: the example runs, and every name in the map exists."""

import re
from pathlib import Path

import pytest

from lengen.theory.checks import CHECKS

ROOT = Path(__file__).parents[2]


def test_the_worked_example_prints_what_the_page_shows(capsys):
    page = (ROOT / "docs" / "theory.md").read_text()
    code, output = re.findall(r"```(?:python)?\n(.*?)```", page, flags=re.DOTALL)[:2]
    assert len([line for line in code.splitlines() if line]) <= 10
    exec(compile(code, "docs/theory.md", "exec"), {})
    assert capsys.readouterr().out == output


def test_every_command_in_the_map_exists_and_every_check_is_in_the_map():
    page = (ROOT / "docs" / "paper_map.md").read_text()
    page = page.partition("## Sections 3 and 4")[2].partition("\n## ")[0]
    commands = {
        name
        for row in page.splitlines()
        for name in re.findall(r"`([^`]+)`", row.split("|")[3] if row.count("|") == 5 else "")
    }
    named = {command.removesuffix(" --L --L-bar") for command in commands} - {"counterexample-*"}
    assert named == {check.name for check in CHECKS}


@pytest.mark.parametrize("page", ["theory.md", "paper_map.md", "interpretations.md"])
def test_named_tests_exist(page):
    text = (ROOT / "docs" / page).read_text()
    sources = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    for row in text.splitlines():
        file = ""
        for reference in re.findall(r"`((?:test_\w+\.py)?(?:::)?(?:test_\w+)?\*?)`", row):
            if ".py" in reference:
                file = reference.split("::")[0]
                assert file in sources, reference
            name = reference.split("::")[-1].removesuffix("*")
            if name and ".py" not in name:
                assert f"def {name}" in sources[file], reference


def test_figures_of_the_page_exist():
    text = (ROOT / "docs" / "theory.md").read_text()
    figures = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert len(figures) == 5
    assert all((ROOT / "docs" / figure).is_file() for figure in figures)
