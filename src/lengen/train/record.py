"""What a run writes besides its checkpoint: run.json, metrics as JSON lines, TensorBoard events."""

import json
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lengen
from lengen.results.store import RunFolder, append_jsonl, read_jsonl, write_atomically
from lengen.train.settings import Settings


def new_run_record(config: Settings, described: dict[str, Any], threads: int) -> dict[str, Any]:
    return {
        "run": config.run_id,
        "arm": config.arm,
        "seed": config.seed,
        "status": "running",
        "step": 0,
        "wall_seconds": 0.0,
        **described,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **_provenance(threads),
    }


def resumed_run_record(record: dict[str, Any], threads: int) -> dict[str, Any]:
    """The record says what a run goes on with; what it had before, if that was another, is kept under `before`."""
    now = _provenance(threads)
    had = {name: record.get(name) for name in now}
    if had == now:
        return record
    return record | now | {"before": [*record.get("before", []), {"until_step": record["step"], **had}]}


def _provenance(threads: int) -> dict[str, Any]:
    return {
        "threads": threads,
        "commit": source_commit(),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("lengen", "torch", "numpy", "safetensors")},
        },
    }


def source_commit() -> str | None:
    """The commit of the checkout this code runs from, with a mark if it was changed; None for an installed copy."""
    package = Path(lengen.__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=package, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        # An installed copy may lie inside someone else's repository; only a tracked file says that it is ours.
        git("ls-files", "--error-unmatch", __file__)
        return git("rev-parse", "HEAD") + ("-changed" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


class MetricsLog:
    """metrics.jsonl and TensorBoard events, continued at a step: what a lost stretch had written is dropped first.

    Of the processes that train one model, all but one are silent.
    """

    def __init__(self, folder: RunFolder, first_step: int, silent: bool = False) -> None:
        self._silent = silent
        if silent:
            return
        from torch.utils.tensorboard import SummaryWriter  # slow to import: only a training run pays for it

        self._file = folder.metrics_file
        kept = [r for r in read_jsonl(self._file) if r["step"] <= first_step] if self._file.exists() else []
        write_atomically(self._file, "".join(json.dumps(record) + "\n" for record in kept).encode())
        self._events = SummaryWriter(str(folder.events_folder), purge_step=first_step + 1)

    def write(self, step: int, values: dict[str, float]) -> None:
        if self._silent:
            return
        append_jsonl(self._file, [{"step": step, **values}])
        for name, value in values.items():
            self._events.add_scalar(name, value, step)

    def close(self) -> None:
        if not self._silent:
            self._events.close()
