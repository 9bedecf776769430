"""Where the model and the text of an analysis were: kept beside its rows, never in them, since paths are private."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lengen.results.store import write_atomically

FILE_NAME = "sources.json"


@dataclass(frozen=True)
class Sources:
    model: str
    text: str

    def write(self, folder: Path) -> None:
        write_atomically(folder / FILE_NAME, (json.dumps(asdict(self), indent=2) + "\n").encode())

    @classmethod
    def read(cls, folder: Path) -> "Sources":
        try:
            return cls(**json.loads((folder / FILE_NAME).read_text(encoding="utf-8")))
        except (OSError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(
                f"{folder} does not say where its model and text are ({error}); give --model and --text"
            ) from error
