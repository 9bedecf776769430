"""The only source of randomness: a generator that is a pure function of (seed, stream, step).

Nothing is drawn from a global generator and no generator state is ever saved, so a resumed run replays the batches of
an uninterrupted one, and how many processes share the work does not change the data.
"""

import hashlib

import numpy as np


def rng_for(seed: int, stream: str, step: int = 0) -> np.random.Generator:
    """The generator of one step of one named stream ("train", "evaluate", ...) under one seed."""
    for name, value in (("seed", seed), ("step", step)):
        if value < 0:
            raise ValueError(f"{name}={value} is negative; use 0 or more")
    return np.random.default_rng([seed, step, _stream_key(stream)])


def torch_seed_for(seed: int, stream: str) -> int:
    """A seed for a torch generator (weight initialisation), drawn from the same scheme."""
    return int(rng_for(seed, stream).integers(2**63 - 1))


def _stream_key(stream: str) -> int:
    # Python's own hash() differs between processes; a digest does not.
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little")
