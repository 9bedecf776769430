"""Digests that tell apart what has one name: two models in folders of one name, two tokenizers of one text."""

import hashlib
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import nn


def weights_digest(module: nn.Module) -> str:
    """Of all parameters, and of the buffers besides: RoPE's frequencies are no weights, but decide what comes out."""
    digest = hashlib.sha256()
    named = dict(chain(module.named_parameters(), module.named_buffers()))
    for name, tensor in sorted(named.items(), key=lambda item: item[0]):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def tokens_digest(documents: Sequence[Sequence[int]]) -> str:
    """Of a text as a tokenizer cuts it: tokenizers that cut it alike are the same to an analysis."""
    digest = hashlib.sha256()
    for document in documents:
        digest.update(f"{len(document)}\n".encode())
        digest.update(np.array(document, dtype="<u4").tobytes())
    return digest.hexdigest()
