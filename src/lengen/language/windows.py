"""Training windows: cut from the stream of documents, each once an epoch, in an order that follows from the seed.

Documents stand one after the other with an end-of-text token between them, and a window may span that token, as in the
OLMo code the paper trained with. The order is a permutation that is computed, not stored, so it costs no memory however
large the corpus; the cuts move by a new offset each epoch.
"""

import numpy as np
from jaxtyping import Int

from lengen.language.packed import TokenFile
from lengen.seeding import rng_for

ROUNDS = 4


def permuted(indices: Int[np.ndarray, " n"], size: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """Where a random permutation of range(size) sends these indices.

    A Feistel network permutes the smallest range of 4^k that holds `size`; what falls outside walks on until it is
    back inside, which keeps the map one to one.
    """
    half = np.uint64(max((size - 1).bit_length() + 1, 2) // 2)
    mask = (np.uint64(1) << half) - np.uint64(1)
    keys = rng.integers(0, 1 << 63, size=ROUNDS, dtype=np.uint64)
    values = indices.astype(np.uint64)
    outside = np.ones(len(values), dtype=bool)
    while outside.any():
        left, right = values[outside] >> half, values[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right + key) & mask)
        values[outside] = (left << half) | right
        outside = values >= size
    return values.astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """splitmix64: every bit of the input reaches every bit of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def num_windows(num_tokens: int, context: int) -> int:
    """Windows of `context` inputs and as many targets, whatever the offset; neighbours share one token."""
    return (num_tokens - 1 - (context - 1)) // context


def check_size(tokens: TokenFile, context: int) -> None:
    if num_windows(len(tokens.tokens), context) < 1:
        raise ValueError(
            f"the corpus has {len(tokens.tokens)} tokens, too few for one window of {context}; use a larger corpus"
        )


def training_windows(
    tokens: TokenFile, context: int, batch_size: int, seed: int, step: int
) -> Int[np.ndarray, "B window"]:
    """The windows of one step, a pure function of (seed, step): `context` inputs and the token after them."""
    total = num_windows(len(tokens.tokens), context)
    places = np.arange(step * batch_size, (step + 1) * batch_size)
    windows = np.empty((batch_size, context + 1), dtype=np.int64)
    for epoch in np.unique(places // total):
        rng = rng_for(seed, "windows", int(epoch))
        offset = int(rng.integers(context))
        of_epoch = places // total == epoch
        firsts = offset + context * permuted(places[of_epoch] % total, total, rng)
        windows[of_epoch] = tokens.tokens[firsts[:, None] + np.arange(context + 1)]
    return windows
