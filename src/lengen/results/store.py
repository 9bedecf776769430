"""A run on disk: run.json (what was run), rows.jsonl (what came out, append-only), metrics.jsonl, the checkpoint.

Standard library only, so that figures can be drawn where torch is not installed.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengen.results.schema import Row


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def run_file(self) -> Path:
        return self.path / "run.json"

    @property
    def rows_file(self) -> Path:
        return self.path / "rows.jsonl"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoint_file(self) -> Path:
        return self.path / "checkpoint.safetensors"

    def shards_folder(self, step: int) -> Path:
        """The checkpoint of a run that several processes train."""
        return self.path / f"checkpoint-{step:08d}"

    def all_shards_folders(self) -> list[Path]:
        return sorted(path for path in self.path.glob("checkpoint-*") if path.is_dir())

    @property
    def lock_file(self) -> Path:
        """Locked while a process trains the run."""
        return self.path / ".lock"

    @property
    def events_folder(self) -> Path:
        return self.path / "tensorboard"

    @property
    def milestone(self) -> "RunFolder":
        """A checkpoint on the way that other runs start from."""
        return RunFolder(self.path / "milestone")

    def exists(self) -> bool:
        return self.run_file.exists()

    def create(self) -> None:
        """Make the folder, and make sure that it can be written to before any work is spent."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise ValueError(
                f"cannot write to the output folder {self.path} ({error.strerror}); choose another --out"
            ) from error

    def read_run(self) -> dict[str, Any]:
        if not self.run_file.is_file():
            raise ValueError(
                f"{self.path} is no run: it has no run.json; give the --out of a `lengen train` or `lengen lm train`"
            )
        try:
            record = json.loads(self.run_file.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{self.run_file} is damaged ({error}); restore it or train again") from error
        if not isinstance(record, dict) or not {"config", "run"} <= set(record):
            raise ValueError(
                f"{self.run_file} is no run record; give the --out of a `lengen train` or `lengen lm train`"
            )
        return record

    def write_run(self, record: dict[str, Any]) -> None:
        write_atomically(self.run_file, (json.dumps(record, indent=2) + "\n").encode())

    def append_rows(self, rows: Iterable[Row]) -> None:
        append_jsonl(self.rows_file, (row.to_dict() for row in rows))

    def read_rows(self) -> list[Row]:
        return [Row.from_dict(record) for record in read_jsonl(self.rows_file)] if self.rows_file.exists() else []

    def latest_rows(self, overrides: dict[str, Any] | None = None) -> list[Row]:
        """One row for each length, metric and setting: the newest measurement of the last step stands for it.

        With `overrides`, those alone that were measured under these settings; {} for the settings of training.
        """
        rows = self.read_rows()
        last_step = max((row.step for row in rows), default=0)
        kept = [row for row in rows if row.step == last_step and overrides in (None, row.overrides)]
        return list({row.place: row for row in kept}.values())


def refuse_to_replace(path: Path, flag: str = "--out") -> None:
    if path.exists():
        raise ValueError(f"{path} exists already; choose another {flag} or add --overwrite")


def write_atomically(path: Path, content: bytes) -> None:
    """Whole or not at all: written beside the target, flushed to disk, then renamed over it."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:  # of the file that was asked for, not of the one beside it
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's 0600 would hide results from colleagues
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def append_jsonl(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Append whole lines in one write; a line that a crash cut short before is ended first."""
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                lines = b"\n" + lines
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file. A line that a crash cut short is skipped: its measurement can be made again."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            yield record


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
