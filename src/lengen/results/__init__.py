"""Results on disk: append-only rows and run.json."""

from lengen.results.schema import METRICS, Mode, Row
from lengen.results.store import RunFolder, read_jsonl, refuse_to_replace, write_atomically

__all__ = ["METRICS", "Mode", "Row", "RunFolder", "read_jsonl", "refuse_to_replace", "write_atomically"]
