"""C4 (Raffel et al., 2020), the paper's corpus, streamed through `datasets`: nothing is downloaded as a whole."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lengen.language.documents import Document, Split
from lengen.language.extra import language_module
from lengen.language.files import read_files

HUB: dict[str, Any] = {"path": "allenai/c4", "name": "en"}
# C4's own validation set is cut in two, so that a test set is left that nothing was tuned on.
VALIDATION_IN_TEST = 2  # every second document


def c4_documents(
    num_documents: int, files: Sequence[Path] = (), text_field: str = "text", source: dict[str, Any] = HUB
) -> Iterator[Document]:
    """The first `num_documents` of C4's English training set, then a hundredth as many of its validation set.

    `source` is what `datasets` is to load. With `files`, local json.gz files of C4's schema instead (their split is
    drawn from the text).
    """
    if files:
        yield from islice(read_files(files, text_field), num_documents)
        return
    for record in islice(_stream(source, "train"), num_documents):
        yield Document(record["text"], "train")
    num_held_out = max(num_documents // 100, 100)
    for index, record in enumerate(islice(_stream(source, "validation"), num_held_out)):
        split: Split = "test" if index % VALIDATION_IN_TEST else "valid"
        yield Document(record["text"], split)


def _stream(source: dict[str, Any], split: str) -> Iterator[dict[str, str]]:
    datasets = language_module("datasets")
    try:
        yield from datasets.load_dataset(**source, split=split, streaming=True)
    except (ConnectionError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"cannot stream {source['path']} ({reason}); check the network, or give local files"
        ) from error
