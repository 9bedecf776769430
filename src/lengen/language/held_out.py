"""Which documents of another corpus a run was trained on.

The split of a document without one of its own follows from its text and from the bounds of its corpus: a document that
`gutenberg` tests on may be trained on in `english`, of which it is a part.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lengen.language.config import LanguageConfig
from lengen.language.packed import PackedCorpus, TokenFile


def trained_on(
    config: LanguageConfig, own_folder: Path, corpus: PackedCorpus, tokens: TokenFile, say: Callable[[str], None]
) -> frozenset[int]:
    """The documents of a split of `corpus` that the run's own corpus, if it is still there, has for training."""
    if corpus.stamp.digest == config.corpus.digest:
        return frozenset()
    try:
        own = PackedCorpus.open(own_folder)
    except ValueError:
        own = None
    if own is None or own.stamp.digest != config.corpus.digest:
        say(
            f"warning: some documents of {corpus.folder} may have been trained on; that cannot be told, since the "
            f"run's own corpus is not in {own_folder}"
        )
        return frozenset()
    found = documents_in_both(tokens, own.split("train"))
    if found:
        say(f"{len(found)} of {tokens.stamp.documents} documents of {corpus.folder} were trained on; they are left out")
    return found


def documents_in_both(tokens: TokenFile, train: TokenFile) -> frozenset[int]:
    """Documents of `tokens` that `train` has as well: with one tokenizer, equal texts have equal tokens."""
    by_digest: dict[bytes, list[int]] = defaultdict(list)
    for index in range(tokens.stamp.documents):
        by_digest[_digest(tokens, index)].append(index)
    of_such_a_size = np.flatnonzero(np.isin(np.diff(train.starts), np.diff(tokens.starts)))
    return frozenset(
        index for candidate in of_such_a_size.tolist() for index in by_digest.get(_digest(train, candidate), ())
    )


def _digest(tokens: TokenFile, index: int) -> bytes:
    return hashlib.sha256(tokens.document(index).tobytes()).digest()
