"""For the commands: text as a user would hand it in, and a reader of what they print."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest

EXCERPT = Path(__file__).parents[1] / "language" / "tiny_shakespeare.txt"


@pytest.fixture(scope="session")
def plays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of JSON lines, twelve speeches a document."""
    speeches = EXCERPT.read_text(encoding="utf-8").split("\n\n")
    file = tmp_path_factory.mktemp("plays") / "plays.jsonl"
    file.write_text(
        "\n".join(json.dumps({"text": "\n\n".join(speeches[i : i + 12])}) for i in range(0, len(speeches), 12))
    )
    return file


@pytest.fixture
def strictly_read(capsys: pytest.CaptureFixture[str]):
    """Reads what was printed as JSON lines; Infinity and NaN, which Python would take, are no JSON."""

    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is no JSON")

    def read() -> list[dict[str, Any]]:
        return [json.loads(line, parse_constant=refuse) for line in capsys.readouterr().out.splitlines()]

    return read
