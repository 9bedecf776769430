"""Text for the commands: what a user would hand in as a file of documents."""

import json
from pathlib import Path

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
