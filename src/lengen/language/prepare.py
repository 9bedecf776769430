"""From documents to a packed corpus: split, tokenize, write. A document, and every copy of it, is in one split only."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lengen.language.documents import Document, Split
from lengen.language.packed import FILES, MANIFEST, SPLITS, TOKENIZER_FILE, PackedCorpus, SplitStamp, manifest_of
from lengen.language.pretrained import for_whole_texts
from lengen.language.tokenizer import end_of_text_id, train_bpe

HELD_OUT = {"valid": 0.01, "test": 0.02}  # shares of the documents of a corpus without splits of its own
DOCUMENTS_AT_A_TIME = 256  # tokenized together


@dataclass(frozen=True)
class Splitter:
    """A document's own split, or one that follows from its text: no copy of a test document can be trained on."""

    test_below: float
    valid_below: float

    @classmethod
    def of(cls, documents: Iterable[Document]) -> "Splitter":
        """Bounds that hold out the wanted shares, and at least one document each where there are three or more."""
        places = sorted({_place(document) for document in documents if document.split is None})
        if len(places) < 3:
            return cls(0.0, 0.0)
        num_test, num_valid = (max(1, round(HELD_OUT[split] * len(places))) for split in ("test", "valid"))
        return cls(places[num_test], places[num_test + num_valid])

    def __call__(self, document: Document) -> Split:
        if document.split is not None:
            return document.split
        place = _place(document)
        return "test" if place < self.test_below else "valid" if place < self.valid_below else "train"


OWN_SPLITS = Splitter(0.0, 0.0)  # of documents that all have one; they need not be read to find bounds


def _place(document: Document) -> float:
    """A number in [0, 1) that follows from the text."""
    return int.from_bytes(hashlib.sha256(document.text.encode()).digest()[:8], "big") / 2**64


def cleaned(documents: Iterable[Document]) -> Iterator[Document]:
    """Line ends as \\n; no empty documents."""
    for document in documents:
        text = document.text.replace("\r\n", "\n").strip()
        if text:
            yield Document(text, document.split)


def check_out(out: Path, overwrite: bool) -> None:
    """Only a corpus may be replaced, and only if nothing else is in its folder."""
    if not out.exists():
        return
    if not overwrite:
        raise ValueError(f"{out} exists already; replace it with --overwrite or choose another --out")
    if not (out / MANIFEST).is_file():
        raise ValueError(f"{out} is no prepared corpus, so --overwrite leaves it alone; choose another --out")
    others = sorted({path.name for path in out.iterdir()} - FILES)
    if others:
        raise ValueError(
            f"{out} holds more than a corpus ({others[0]}), so --overwrite leaves it alone; choose another --out"
        )


def prepare(
    name: str,
    documents: Callable[[], Iterable[Document]],
    out: Path,
    *,
    tokenizer: Any = None,
    vocab_size: int = 8192,
    split_of: Splitter | None = None,
    licences: dict[str, str],
    overwrite: bool = False,
    say: Callable[[str], None] = lambda message: None,
) -> PackedCorpus:
    """Write the corpus to `out`: whole, or nothing. `documents` is read again for bounds and for a tokenizer."""
    check_out(out, overwrite)
    if split_of is None:
        say("reading the documents, to choose those to test on")
        split_of = Splitter.of(cleaned(documents()))
    if tokenizer is None:
        say(f"training a BPE of {vocab_size} tokens")
        tokenizer = train_bpe((d.text for d in cleaned(documents()) if split_of(d) == "train"), vocab_size)
    tokenizer = for_whole_texts(tokenizer)
    size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1  # ids may have gaps
    dtype = "uint16" if size <= 1 << 16 else "uint32"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    except OSError as error:
        raise ValueError(f"cannot write beside {out} ({error.strerror}); choose another --out") from error
    try:
        say("cutting the documents into tokens")
        splits = _write_tokens(cleaned(documents()), split_of, tokenizer, dtype, staging, say)
        if not splits["train"].documents:
            raise ValueError(f"{name} holds no text to train on; give other files")
        if not splits["test"].documents:
            say("fewer than three documents: all are for training, none is left to test on")
        text = tokenizer.to_str()
        (staging / TOKENIZER_FILE).write_text(text, encoding="utf-8")
        manifest = manifest_of(name, size, end_of_text_id(tokenizer), dtype, text, licences, splits)
        (staging / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        staging.chmod(0o755)
        _put_in_place(staging, out)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return PackedCorpus.open(out)


def _put_in_place(staging: Path, out: Path) -> None:
    """Rename, and delete an old corpus last: whenever this is stopped, one of the two is whole and in its place."""
    if not out.exists():
        os.replace(staging, out)
        return
    aside = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    old = aside / out.name
    try:
        os.replace(out, old)
        os.replace(staging, out)
    finally:
        if not out.exists():
            os.replace(old, out)
        shutil.rmtree(aside, ignore_errors=True)


def _groups(documents: Iterator[Document]) -> Iterator[list[Document]]:
    while group := list(islice(documents, DOCUMENTS_AT_A_TIME)):
        yield group


def _write_tokens(
    documents: Iterator[Document],
    split_of: Splitter,
    tokenizer: Any,
    dtype: str,
    folder: Path,
    say: Callable[[str], None],
) -> dict[Split, SplitStamp]:
    end = end_of_text_id(tokenizer)
    files = {split: (folder / f"{split}.tokens").open("wb") for split in SPLITS}
    digests = {split: hashlib.sha256() for split in SPLITS}
    starts: dict[Split, list[int]] = {split: [0] for split in SPLITS}
    words = dict.fromkeys(SPLITS, 0)
    try:
        for number, group in enumerate(_groups(documents)):
            encodings = tokenizer.encode_batch_fast([d.text for d in group], add_special_tokens=False)
            for document, encoding in zip(group, encodings, strict=True):
                split = split_of(document)
                content = np.array([*encoding.ids, end], dtype=dtype).tobytes()
                files[split].write(content)
                digests[split].update(content)
                starts[split].append(starts[split][-1] + len(encoding.ids) + 1)
                words[split] += len(document.text.split())
            if number % 16 == 15:
                say(f"{sum(words.values()) / 1e6:.1f} million words")
    finally:
        for file in files.values():
            file.close()
    for split in SPLITS:
        np.array(starts[split], dtype=np.uint64).tofile(folder / f"{split}.starts")
        digests[split].update(np.array(starts[split], dtype=np.uint64).tobytes())
    return {
        split: SplitStamp(len(starts[split]) - 1, words[split], starts[split][-1], digests[split].hexdigest())
        for split in SPLITS
    }
