"""Which tokens of held-out text are predicted, and from what."""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from lengen.language.packed import TokenFile
from lengen.seeding import rng_for


@dataclass(frozen=True)
class Target:
    document: int
    place: int  # of the token within its document


def choose_targets(
    tokens: TokenFile,
    longest: int,
    num_documents: int,
    per_document: int,
    seed: int,
    left_out: frozenset[int] = frozenset(),
) -> list[list[Target]]:
    """For each chosen document some of the tokens that have `longest` others of the same document before them."""
    sizes = np.diff(tokens.starts) - 1
    able = np.flatnonzero(sizes > longest)
    if not len(able):
        raise ValueError(f"no document of this split has more than {longest} tokens; use shorter --lengths")
    able = np.setdiff1d(able, np.array(sorted(left_out), dtype=able.dtype))
    if not len(able):
        raise ValueError(
            f"every document of this split with more than {longest} tokens was trained on; use another --corpus"
        )
    chosen = np.sort(rng_for(seed, "documents").permutation(able)[:num_documents])
    targets = []
    for document in chosen.tolist():
        places = rng_for(seed, "targets", document).permutation(np.arange(longest, sizes[document]))[:per_document]
        targets.append([Target(document, place) for place in np.sort(places).tolist()])
    return targets


def digest_of(targets: list[list[Target]], corpus_digest: str) -> str:
    places = [(target.document, target.place) for group in targets for target in group]
    return hashlib.sha256(f"{corpus_digest}{places}".encode()).hexdigest()[:12]


def context_windows(tokens: TokenFile, targets: list[Target], length: int) -> Int[np.ndarray, "n window"]:
    """Each target with exactly the `length` tokens before it."""
    ends = np.array([tokens.starts[target.document] + target.place for target in targets])
    return tokens.tokens[ends[:, None] + np.arange(-length, 1)].astype(np.int64)


def document_windows(tokens: TokenFile, document: int, length: int, num_tokens: int) -> Int[np.ndarray, "n window"]:
    """The beginning of a document, `num_tokens` targets in windows of `length`; neighbours share one token."""
    firsts = tokens.starts[document] + np.arange(0, num_tokens - length + 1, length)
    return tokens.tokens[firsts[:, None] + np.arange(length + 1)].astype(np.int64)
