"""Whether the method holds for a model: tried out with a few passes at the length that is asked for, before any row.

An argument that a model accepts may still be ignored, attention may look ahead or only so far back, and a cache may not
be kept: each gives influences that look like any others. Our own decoder needs no such trial: tests compare it with the
obvious loop.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lengen.context.causal_model import CausalModel, Prefix
from lengen.context.hf_model import HuggingFaceModel
from lengen.context.window import Window
from lengen.seeding import rng_for

LARGEST_SHARE = 0.01  # of what masking changes: rounding is far below it, a window, a slot or a mask ignored far above
LARGEST_LEAK = 1e-5  # of a token's effect on its own keys and values: what cannot see it gives the same bits, mostly
ROUNDING = 1e-5  # of the largest logit


def check_method(model: CausalModel, window: Window) -> None:
    """Refuse a model that cannot read the window, or for which leaving a token out is not masking it, ids kept."""
    if model.max_tokens is not None and model.max_tokens < window.num_inputs:
        asked = f"--long {window.long}"
        if window.num_targets > 1:
            asked += f" with --num-targets {window.num_targets}"
        raise ValueError(
            f"the model {model.name} reads {model.max_tokens} tokens at most, and {asked} needs {window.num_inputs}; "
            f"use {window.num_inputs - model.max_tokens} fewer"
        )
    if isinstance(model, HuggingFaceModel):
        _Probe(model, window).check()


class _Probe:
    def __init__(self, model: HuggingFaceModel, window: Window) -> None:
        self.model, self.window = model, window
        # Random tokens: where all are alike, ids make no difference.
        drawn = rng_for(0, "context/probe").integers(0, model.vocab_size, window.num_inputs)
        self.tokens = torch.from_numpy(drawn)[None]
        self.ids = model.position_ids(window.num_inputs)[None]

    def check(self) -> None:
        everything = self.model.last_logits(self.tokens, self.ids)
        if not everything.isfinite().all():
            raise ValueError(
                f"the model {self.model.name} gives logits that are no numbers; are its weights whole? Try another copy"
            )
        prefix = self._check_cache()
        self._check_ids(everything)
        for num_read, kept in self._cases():
            self._check_masking(prefix, everything, num_read, kept)

    def _cases(self) -> Sequence[tuple[int, Bool[Tensor, " T"]]]:
        """(tokens read before, tokens kept): far tokens left out by the half as subsets are, and two one at a time."""
        num_far, slots = self.window.num_far, torch.arange(self.window.num_inputs)
        by_half = (slots >= num_far) | (slots % 2 == 1)
        return [(0, by_half), *((far, slots != far) for far in (num_far // 2, num_far - 1))]

    def _check_cache(self) -> Prefix:
        """What was read has to be kept, and not to change with what comes after it."""
        other = self.tokens.clone()
        other[:, -1] = (other[:, -1] + 1) % self.model.vocab_size
        one, two = (self.model.read(tokens, self.ids) for tokens in (self.tokens, other))
        states = (*one.keys, *one.values)
        if not states or any(state.shape[-2] != self.window.num_inputs for state in states):
            raise self._refusal(f"keeps no cache of keys and values for {self.window.num_inputs} tokens")
        for state, changed in zip(states, (*two.keys, *two.values), strict=True):
            change = (state - changed).abs()
            if not change[..., :-1, :].max() <= LARGEST_LEAK * change[..., -1, :].max():
                raise self._refusal("lets tokens see later ones")
        return one

    def _check_masking(
        self, prefix: Prefix, everything: Float[Tensor, "1 V"], num_read: int, kept: Bool[Tensor, " T"]
    ) -> None:
        masked = self.model.masked_logits(self.tokens, self.ids, kept[None].long())
        later = kept & (torch.arange(len(kept)) >= num_read)
        left_out = self.model.last_logits(
            self.tokens[:, later], self.ids[:, later], prefix.select(torch.tensor([0]), num_read)
        )
        bound = LARGEST_SHARE * (masked - everything).abs().max() + ROUNDING * everything.abs().max()
        if not (masked - left_out).abs().max() <= bound:
            raise self._refusal(
                f"does not heed a mask and position ids at {self.window.num_inputs} tokens, as with attention to "
                "neighbours alone: masking a token differs from leaving it out"
            )

    def _check_ids(self, everything: Float[Tensor, "1 V"]) -> None:
        """A model that takes distances from slots, or knows none, gives the same whatever the ids."""
        if torch.equal(everything, self.model.last_logits(self.tokens, self.ids.roll(1, dims=1))):
            raise self._refusal("ignores position ids, so that they cannot be kept when a token is masked")

    def _refusal(self, reason: str) -> ValueError:
        kind = type(self.model.model).__name__
        return ValueError(
            f"the model {self.model.name} ({kind}) {reason}; choose a model with plain causal attention (Llama, "
            "GPT-NeoX, GPT-2, OLMo, …)"
        )
