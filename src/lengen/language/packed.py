"""A prepared corpus on disk: tokens of each split in one memory-mapped file, and where each document begins.

corpus.json          what it is; written last, so a folder without it is not whole
tokenizer.json       the tokenizer of all splits
train.tokens         documents one after the other, each ended by the end-of-text token; uint16 or uint32
train.starts         the index of each document's first token, uint64, and the number of tokens at the end
(valid and test likewise)
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Integer

from lengen.language.documents import Split
from lengen.language.extra import language_module

FORMAT = "lengen-corpus-1"
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
MANIFEST = "corpus.json"
TOKENIZER_FILE = "tokenizer.json"
MAX_CHECKED_BYTES = 1 << 30  # a larger split takes long to read at every start: its size alone is checked
FILES = {MANIFEST, TOKENIZER_FILE, *(f"{split}.{kind}" for split in SPLITS for kind in ("tokens", "starts"))}


@dataclass(frozen=True)
class SplitStamp:
    documents: int
    words: int
    tokens: int  # end-of-text tokens among them
    sha256: str


@dataclass(frozen=True)
class CorpusStamp:
    """What a prepared corpus is. The digest stands for all its tokens, so it identifies the data of a run."""

    name: str
    vocab_size: int
    end_of_text: int
    digest: str


class TokenFile:
    """The tokens of one split, read from disk as they are asked for."""

    def __init__(self, folder: Path, split: Split, dtype: str, stamp: SplitStamp) -> None:
        tokens_file, starts_file = folder / f"{split}.tokens", folder / f"{split}.starts"
        expected = stamp.tokens * np.dtype(dtype).itemsize
        for path, size in ((tokens_file, expected), (starts_file, 8 * (stamp.documents + 1))):
            if not path.is_file() or path.stat().st_size != size:
                raise ValueError(f"{path} is missing or truncated; prepare the corpus again")
        if expected <= MAX_CHECKED_BYTES and _sha256(tokens_file, starts_file) != stamp.sha256:
            raise ValueError(f"{tokens_file} or {starts_file.name} was changed; prepare the corpus again")
        self.stamp = stamp
        self.tokens: Integer[np.ndarray, " N"] = (
            np.memmap(tokens_file, dtype=dtype, mode="r") if expected else np.zeros(0, dtype=dtype)
        )
        self.starts: Int[np.ndarray, " E"] = np.fromfile(starts_file, dtype=np.uint64).astype(np.int64)

    def document(self, index: int) -> Int[np.ndarray, " n"]:
        """A document's tokens without the end of text."""
        return self.tokens[self.starts[index] : self.starts[index + 1] - 1].astype(np.int64)


@dataclass(frozen=True)
class PackedCorpus:
    folder: Path
    stamp: CorpusStamp
    splits: dict[Split, SplitStamp]
    dtype: str
    tokenizer_sha256: str

    @classmethod
    def open(cls, folder: Path) -> "PackedCorpus":
        path = folder / MANIFEST
        if not path.is_file():
            raise ValueError(f"{folder} is no prepared corpus: it has no {MANIFEST}; run `lengen corpus prepare` first")
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if manifest["format"] != FORMAT:
                raise ValueError(f"{path} was written by another version; prepare the corpus again")
            splits = {split: SplitStamp(**manifest["splits"][split]) for split in SPLITS}
            stamp = CorpusStamp(**manifest["corpus"])
            return cls(folder, stamp, splits, manifest["dtype"], manifest["tokenizer_sha256"])
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is damaged ({error}); prepare the corpus again") from error

    def split(self, split: Split) -> TokenFile:
        return TokenFile(self.folder, split, self.dtype, self.splits[split])

    def tokenizer(self) -> Any:
        path = self.folder / TOKENIZER_FILE
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != self.tokenizer_sha256:
            raise ValueError(f"{path} is missing or was changed; prepare the corpus again")
        return language_module("tokenizers").Tokenizer.from_str(content.decode("utf-8"))


def _sha256(*files: Path) -> str:
    """Of one file after the other."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def manifest_of(
    name: str,
    vocab_size: int,
    end_of_text: int,
    dtype: str,
    tokenizer_json: str,
    licences: dict[str, str],
    splits: dict[Split, SplitStamp],
) -> dict[str, Any]:
    tokenizer_digest = hashlib.sha256(tokenizer_json.encode()).hexdigest()
    parts = [tokenizer_digest, *(splits[split].sha256 for split in SPLITS)]
    digest = hashlib.sha256("".join(parts).encode()).hexdigest()[:16]
    return {
        "format": FORMAT,
        "corpus": asdict(CorpusStamp(name, vocab_size, end_of_text, digest)),
        "dtype": dtype,
        "tokenizer_sha256": tokenizer_digest,
        "licences": licences,
        "splits": {split: asdict(stamp) for split, stamp in splits.items()},
    }
