"""From a text to examples: the tokens of each document cut into windows, some of which are drawn."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from lengen.context.window import Window
from lengen.language.packed import PackedCorpus
from lengen.seeding import rng_for


class Text(NamedTuple):
    name: str
    documents: tuple[str, ...]  # no window crosses from one to the next

    @property
    def sha256(self) -> str:
        return hashlib.sha256("\0".join(self.documents).encode()).hexdigest()


class Examples(NamedTuple):
    """Windows of text; each has as many examples as targets."""

    starts: Int[Tensor, " W"]  # the first token of each, counted from the text's first
    tokens: Int[Tensor, "W L"]


def read_text(path: Path) -> Text:
    """A UTF-8 file as one document, or the test documents of a folder made by `lengen corpus prepare`."""
    if path.is_dir():
        corpus = PackedCorpus.open(path)
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


def encodings_of(tokenizer: Any, text: Text) -> list[Any]:
    """Of the `tokenizers` library, one a document: ids, with none added at its ends, and the characters of each."""
    return list(tokenizer.encode_batch(list(text.documents), add_special_tokens=False))


def encode(tokenizer: Any, text: Text) -> list[list[int]]:
    """The tokens of each document."""
    return [encoding.ids for encoding in encodings_of(tokenizer, text)]


def draw_examples(documents: list[list[int]], text_name: str, window: Window, num_examples: int, seed: int) -> Examples:
    """Windows that do not overlap, in random order: the first of many examples are those of few."""
    length, num_windows = window.num_tokens, window.num_windows("--num-examples", num_examples)
    firsts = np.cumsum([0, *map(len, documents)])
    windows = [
        first + offset
        for first, document in zip(firsts, documents, strict=False)
        for offset in range(0, len(document) - length + 1, length)
    ]
    if not windows:
        longest = max(map(len, documents), default=0)
        raise ValueError(
            f"{text_name} has {longest} tokens in a row, fewer than the {length} of a window (--long {window.long}); "
            "give a longer text"
        )
    if num_windows > len(windows):
        raise ValueError(
            f"--num-examples {num_examples} needs {num_windows} windows of {length} tokens, and {text_name} has "
            f"{len(windows)}; use at most {len(windows) * window.num_targets}, or a longer text"
        )
    order = rng_for(seed, "context/examples").permutation(len(windows))[:num_windows]
    starts = torch.tensor([int(windows[index]) for index in order])
    stream = torch.tensor([token for document in documents for token in document])
    return Examples(starts, stream[starts[:, None] + torch.arange(length)])
