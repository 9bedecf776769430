"""Documents from local files: text (a file is a document), JSON lines and parquet (a record is one), gzipped or not."""

import glob
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lengen.language.documents import Document
from lengen.language.extra import language_module

SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can escape one without its other half; no UTF-8 can hold it
SUFFIXES = (".txt", ".md", ".jsonl", ".json", ".parquet")


def find_files(patterns: Sequence[str]) -> list[Path]:
    """Files, all readable files below folders, and globs; it is a mistake if one of them names nothing."""
    found: list[Path] = []
    for pattern in patterns:
        path = Path(pattern)
        if path.is_file():
            matches = [path]  # whatever its name: "a[1].txt" is a file here, not a pattern
        elif path.is_dir():
            matches = sorted(file for file in path.rglob("*") if file.is_file() and _suffix(file) in SUFFIXES)
        else:
            matches = sorted(Path(match) for match in glob.glob(pattern, recursive=True))
        if not matches:
            raise ValueError(
                f"--files {pattern} names no text; give .txt, .jsonl or .parquet files, a folder or a glob"
            )
        found += matches
    return list(dict.fromkeys(found))


def read_files(paths: Sequence[Path], text_field: str = "text") -> Iterator[Document]:
    for path in paths:
        suffix = _suffix(path)
        if suffix == ".parquet":
            yield from _parquet(path, text_field)
        elif suffix in (".jsonl", ".json"):
            yield from _json_lines(path, text_field)
        else:
            yield Document(_text_of(path))


def _suffix(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    return suffixes[-1].lower() if suffixes else ""


def _lines_of(path: Path) -> Iterator[bytes]:
    """Cut at \\n alone: inside a text, JSON allows other characters that end lines (U+2028, U+0085)."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is truncated or damaged ({error}); restore it") from error
    except OSError as error:
        raise ValueError(f"cannot read {path} ({error.strerror}); check the path") from error


def _text_of(path: Path) -> str:
    try:
        return b"".join(_lines_of(path)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 (byte {error.start}); convert it, e.g. `iconv -f latin1 -t utf-8`"
        ) from error


def _json_lines(path: Path, text_field: str) -> Iterator[Document]:
    for number, line in enumerate(_lines_of(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"line {number} of {path} is not UTF-8; convert it, e.g. `iconv -f latin1 -t utf-8`"
            ) from error
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number} of {path} is no JSON ({error.msg}); repair it") from error
        if not isinstance(record, dict) or not isinstance(record.get(text_field), str):
            raise ValueError(f"line {number} of {path} has no text in {text_field!r}; name the field with --text-field")
        text = record[text_field]
        if SURROGATE.search(text):
            raise ValueError(f"line {number} of {path} has half a character (a lone surrogate); repair it")
        yield Document(text)


def _parquet(path: Path, text_field: str) -> Iterator[Document]:
    parquet = language_module("pyarrow.parquet")
    arrow_error = language_module("pyarrow").ArrowException
    try:
        with parquet.ParquetFile(path) as file:
            if text_field not in file.schema_arrow.names:
                raise ValueError(
                    f"{path} has no column {text_field!r} but {', '.join(file.schema_arrow.names)}; "
                    "name it with --text-field"
                )
            for batch in file.iter_batches(batch_size=1024, columns=[text_field]):
                for text in batch.column(0).to_pylist():
                    if text is not None and not isinstance(text, str):
                        raise ValueError(
                            f"the column {text_field!r} of {path} holds no text but {text!r:.40}; "
                            "name another with --text-field"
                        )
                    yield Document(text or "")
    except (arrow_error, OSError) as error:
        raise ValueError(f"{path} is no whole parquet file ({str(error).splitlines()[0]}); restore it") from error
