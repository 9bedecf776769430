"""From a text to examples: the tokens of each document cut into windows, some of which are drawn."""

import hashlib
import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lengen.seeding import rng_for


class Text(NamedTuple):
    name: str
    documents: tuple[str, ...]  # no window crosses from one to the next

    @property
    def sha256(self) -> str:
        return hashlib.sha256("\0".join(self.documents).encode()).hexdigest()


class Examples(NamedTuple):
    starts: Int[Tensor, " E"]  # the first token of each, counted from the text's first
    tokens: Int[Tensor, "E L"]


def read_text(path: Path) -> Text:
    """A UTF-8 file as one document, or the test documents of a folder made by `lengen corpus prepare`."""
    if path.is_dir():
        packed = importlib.import_module("lengen.language.packed")  # it needs extras that a plain file does not
        corpus = packed.PackedCorpus.open(path)
        test, tokenizer = corpus.split("test"), corpus.tokenizer()
        return Text(corpus.stamp.name, tuple(tokenizer.decode(test.document(i)) for i in range(test.stamp.documents)))
    try:
        content = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise ValueError(f"there is no text {path}; give a UTF-8 file or a prepared corpus folder") from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 (byte {error.start}); convert it first, e.g. `iconv -f latin1 -t utf-8`"
        ) from error
    if not content.strip():
        raise ValueError(f"{path} is empty; give a text with words in it")
    return Text(path.name, (content,))


def encode(tokenizer: Any, text: Text) -> list[list[int]]:
    """The tokens of each document, with none added at its ends."""
    return [encoding.ids for encoding in tokenizer.encode_batch(list(text.documents), add_special_tokens=False)]


def draw_examples(documents: list[list[int]], text_name: str, length: int, num_examples: int, seed: int) -> Examples:
    """Windows that do not overlap, in random order: the first of many examples are those of few."""
    firsts = np.cumsum([0, *map(len, documents)])
    windows = [
        first + offset
        for first, document in zip(firsts, documents, strict=False)
        for offset in range(0, len(document) - length + 1, length)
    ]
    if not windows:
        longest = max(map(len, documents), default=0)
        raise ValueError(f"{text_name} has {longest} tokens in a row, fewer than --long {length}; give a longer text")
    if num_examples > len(windows):
        raise ValueError(
            f"--num-examples {num_examples} is more than the {len(windows)} windows of {length} tokens in {text_name}; "
            f"use at most {len(windows)}, or a longer text"
        )
    order = rng_for(seed, "context/examples").permutation(len(windows))[:num_examples]
    starts = torch.tensor([int(windows[index]) for index in order])
    stream = torch.tensor([token for document in documents for token in document])
    return Examples(starts, stream[starts[:, None] + torch.arange(length)])
