"""Leave-one-out in batches with shared prefixes equals the obvious loop with a mask; each equality can fail."""

import pytest
import torch
from jaxtyping import Float, Int
from tiny_models import ARCHITECTURES, tiny_decoder, tiny_hf
from torch import Tensor
from transformers import PreTrainedModel

from lengen.bench.influence import masked_loop
from lengen.context.causal_model import losses_of
from lengen.context.decoder_model import DecoderModel
from lengen.context.hf_model import HuggingFaceModel
from lengen.context.identity import weights_digest
from lengen.context.influence import leave_one_out
from lengen.context.selection import most_attended
from lengen.context.subsets import subset_losses
from lengen.context.window import Window
from lengen.model.hf import to_hf

TOLERANCE = 1e-5
MANY_TOKENS = 10_000


@pytest.mark.parametrize("num_targets", [1, 4])
@pytest.mark.parametrize("max_batch_tokens", [1, 100, MANY_TOKENS])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_equals_the_obvious_loop(architecture, max_batch_tokens, num_targets, examples):
    model, window = tiny_hf(architecture), Window(short=9, long=24 - num_targets, num_targets=num_targets)
    fast = leave_one_out(HuggingFaceModel(model, architecture), examples, window, max_batch_tokens)
    torch.testing.assert_close(fast, masked_loop(model, examples, window), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_differs_when_the_ids_close_up(architecture, examples, window):
    """The sibling: without explicit ids, the tokens after the omitted one move by one."""
    model = tiny_hf(architecture)
    adapter = HuggingFaceModel(model, architecture)
    closed_up = torch.stack(
        [
            losses_of(
                adapter.last_logits(
                    torch.cat([examples[:, :far], examples[:, far + 1 : -1]], 1),
                    torch.arange(window.num_inputs - 1).expand(len(examples), -1),
                ),
                examples[:, -1],
            )
            for far in range(window.num_far)
        ],
        dim=1,
    )
    assert (closed_up - masked_loop(model, examples, window)).abs().max() > 100 * TOLERANCE


@pytest.mark.parametrize("architecture", ["gpt-neox", "llama"])
def test_without_a_mask_the_ids_cut_attention(architecture, examples, window):
    """Why every call passes a mask of ones; with one, leaving out equals masking."""
    model = tiny_hf(architecture)
    kept = torch.arange(window.num_inputs) != 4
    tokens, ids = examples[:, :-1][:, kept], torch.arange(window.num_inputs)[kept].expand(len(examples), -1)
    with torch.no_grad():
        silent = model(input_ids=tokens, position_ids=ids, use_cache=False).logits[:, -1]
    loop = masked_loop(model, examples, window)[:, 4]
    assert (losses_of(silent, examples[:, -1]) - loop).abs().max() > 100 * TOLERANCE


def test_ours_equals_the_obvious_loop_on_its_twin(examples, window):
    """The mask is GPT-NeoX's, since our decoder has none."""
    decoder = tiny_decoder()
    for max_batch_tokens in (1, 100, MANY_TOKENS):
        fast = leave_one_out(DecoderModel(decoder, "ours"), examples, window, max_batch_tokens)
        loop = masked_loop(to_hf(decoder), examples, window, first_position_id=1)
        torch.testing.assert_close(fast, loop, atol=TOLERANCE, rtol=0)


def test_ours_differs_from_the_loop_of_another_model(examples, window):
    decoder = tiny_decoder()
    fast = leave_one_out(DecoderModel(decoder, "ours"), examples, window, MANY_TOKENS)
    with torch.no_grad():
        decoder.blocks[0].attention.query.weight.mul_(1.1)
    assert (fast - masked_loop(to_hf(decoder), examples, window, first_position_id=1)).abs().max() > 100 * TOLERANCE


class Counting(DecoderModel):
    """Notes the size of every batch."""

    def __init__(self) -> None:
        super().__init__(tiny_decoder(), "counting")
        self.sizes: list[tuple[int, int, int]] = []
        self.reads: list[tuple[int, int]] = []

    def read(self, token_ids, position_ids):
        self.reads.append(tuple(token_ids.shape))
        return super().read(token_ids, position_ids)

    def attention(self, token_ids, position_ids, num_last):
        self.reads.append(tuple(token_ids.shape))
        return super().attention(token_ids, position_ids, num_last)

    def logits(self, token_ids, position_ids, num_last, prefix=None):
        num_read = 0 if prefix is None else prefix.position_ids.shape[1]
        self.sizes.append((*token_ids.shape, num_read))
        return super().logits(token_ids, position_ids, num_last, prefix)


@pytest.mark.parametrize("max_batch_tokens", [30, 66, 200])
def test_batches_are_bounded_and_what_is_before_a_token_is_not_computed_again(max_batch_tokens, examples, window):
    model = Counting()
    leave_one_out(model, examples, window, max_batch_tokens)
    assert all(rows * (tokens + read) <= max_batch_tokens for rows, tokens, read in model.sizes)
    most_attended(model, examples, window, max_batch_tokens)
    assert all(rows * tokens <= max_batch_tokens for rows, tokens in model.reads)
    assert sum(rows for rows, _, _ in model.sizes) == len(examples) * window.num_far
    computed = sum(rows * tokens for rows, tokens, _ in model.sizes)
    assert computed < 0.85 * len(examples) * window.num_far * window.num_inputs


def test_subsets_are_batched_within_bounds_and_computed_once(examples, window):
    model = Counting()
    subsets = [(row, frozenset(range(size))) for row in range(3) for size in (0, 5, 13, 5)]
    losses = subset_losses(model, examples, window, subsets, 60)
    assert all(rows * tokens <= 60 for rows, tokens, _ in model.sizes)
    assert sum(rows for rows, _, _ in model.sizes) == 9
    assert losses[1] == losses[3]


# Several targets of one window


def targets_apart(examples: Int[Tensor, "W L"], several: Window) -> list[tuple[Int[Tensor, "W L"], Window]]:
    """For each target: the text up to it, and a window of its own, with the same far tokens and more recent ones."""
    firsts = [(several.long + target, several.short + target) for target in range(several.num_targets)]
    return [(examples[:, :long], Window(short, long)) for long, short in firsts]


@pytest.mark.parametrize("max_batch_tokens", [1, 100, MANY_TOKENS])
@pytest.mark.parametrize("kind", ["llama", "ours"])
def test_targets_of_one_window_equal_windows_of_their_own(kind, max_batch_tokens, examples):
    model = DecoderModel(tiny_decoder(), kind) if kind == "ours" else HuggingFaceModel(tiny_hf(kind), kind)
    several = Window(short=6, long=20, num_targets=4)
    apart = targets_apart(examples, several)

    def by_example(values: list[Tensor]) -> Tensor:
        return torch.stack(values, 1).flatten(0, 1)

    together = leave_one_out(model, examples, several, max_batch_tokens)
    expected = by_example([leave_one_out(model, *one, max_batch_tokens) for one in apart])
    torch.testing.assert_close(together, expected, atol=TOLERANCE, rtol=0)
    assert (together - together.roll(1, 0)).abs().max() > 100 * TOLERANCE  # another target has other losses

    far = [frozenset[int](), frozenset({0, 3, 12}), frozenset(range(13))]
    subsets = [(example, seen) for example in range(12) for seen in far]
    found = subset_losses(model, examples, several, subsets, max_batch_tokens).view(12, 3)
    one_each = [(row, seen) for row in range(3) for seen in far]
    expected = by_example([subset_losses(model, *one, one_each, max_batch_tokens).view(3, 3) for one in apart])
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)

    attended = most_attended(model, examples, several, max_batch_tokens)
    orders = [most_attended(model, *one, max_batch_tokens) for one in apart]
    assert attended == [orders[target][row] for row in range(3) for target in range(4)]
    assert attended != [orders[0][row] for row in range(3) for _ in range(4)]


def test_targets_share_their_passes(examples):
    model, several = Counting(), Window(short=6, long=20, num_targets=4)
    leave_one_out(model, examples, several, MANY_TOKENS)
    assert sum(rows for rows, _, _ in model.sizes) == 3 * several.num_far
    model.sizes.clear()
    subset_losses(model, examples, several, [(example, frozenset({2})) for example in range(12)], MANY_TOKENS)
    assert sum(rows for rows, _, _ in model.sizes) == 3


# Masking against truncation


@torch.no_grad()
def hidden_of(model: PreTrainedModel, tokens: Int[Tensor, "B T"], seen_from: int) -> list[Float[Tensor, "B T D"]]:
    """The hidden states of all layers with the tokens before `seen_from` masked, ids kept."""
    mask = (torch.arange(tokens.shape[1]) >= seen_from).long().expand(tokens.shape)
    ids = torch.arange(tokens.shape[1]).expand(tokens.shape)
    return model(input_ids=tokens, attention_mask=mask, position_ids=ids, output_hidden_states=True).hidden_states


@torch.no_grad()
def truncated_hidden_of(
    model: PreTrainedModel, tokens: Int[Tensor, "B T"], seen_from: int
) -> list[Float[Tensor, "B T D"]]:
    ids = torch.arange(seen_from, tokens.shape[1]).expand(len(tokens), -1)
    ones = torch.ones_like(ids)
    return model(
        input_ids=tokens[:, seen_from:], attention_mask=ones, position_ids=ids, output_hidden_states=True
    ).hidden_states


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_masking_equals_truncation_at_the_positions_that_stay(architecture, num_layers, examples):
    """In every layer, at every slot that is not masked itself.

    Of float64: hidden states are large in these models, and how float32 rounds them is the processor's affair.
    """
    model = tiny_hf(architecture, num_layers).double()
    masked, truncated = hidden_of(model, examples, 8), truncated_hidden_of(model, examples, 8)
    for ours, theirs in zip(masked, truncated, strict=True):
        torch.testing.assert_close(ours[:, 8:], theirs, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_hiding_tokens_from_the_last_slot_alone_equals_truncation_in_one_layer_only(architecture, examples):
    """Why a token has to be masked out of *all* attention: in between, deeper layers pass it on."""

    @torch.no_grad()
    def last(num_layers: int) -> tuple[Tensor, Tensor]:
        model = tiny_hf(architecture, num_layers)
        num_tokens = examples.shape[1]
        visible = torch.ones(num_tokens, num_tokens).tril().bool()
        visible[-1, :8] = False
        mask = torch.zeros(num_tokens, num_tokens).masked_fill(~visible, torch.finfo(torch.float32).min)
        ids = torch.arange(num_tokens).expand(examples.shape)
        hidden = model(
            input_ids=examples, attention_mask=mask.expand(len(examples), 1, -1, -1), position_ids=ids
        ).logits[:, -1]
        ids = ids[:, 8:]
        return hidden, model(input_ids=examples[:, 8:], attention_mask=torch.ones_like(ids), position_ids=ids).logits[
            :, -1
        ]

    torch.testing.assert_close(*last(1), atol=TOLERANCE, rtol=0)
    masked, truncated = last(2)
    assert (masked - truncated).abs().max() > 100 * TOLERANCE


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_truncation_differs_when_ids_restart_only_for_absolute_positions(architecture, examples, window):
    """Rotary ids are relative, so that a shift of all changes nothing; GPT-2's are not."""
    model = HuggingFaceModel(tiny_hf(architecture), architecture)
    recent = examples[:, window.num_far : -1]
    kept, restarted = (
        model.last_logits(recent, torch.arange(first, first + window.short).expand(len(examples), -1))
        for first in (window.num_far, 0)
    )
    difference = (kept - restarted).abs().max()
    assert difference > 0.01 if architecture == "gpt-2" else difference < 1e-4


# Subsets


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_subset_losses_equal_masks(architecture, examples, window):
    model = tiny_hf(architecture)
    subsets = [(0, frozenset[int]()), (1, frozenset({0, 3, 12})), (2, frozenset(range(13))), (2, frozenset({5}))]
    losses = subset_losses(HuggingFaceModel(model, architecture), examples, window, subsets, 50)
    for loss, (row, far) in zip(losses, subsets, strict=True):
        mask = torch.tensor([[int(slot >= window.num_far or slot in far) for slot in range(window.num_inputs)]])
        ids = torch.arange(window.num_inputs)[None]
        with torch.no_grad():
            logits = model(input_ids=examples[row : row + 1, :-1], attention_mask=mask, position_ids=ids).logits[:, -1]
        assert float(loss) == pytest.approx(-float(logits.log_softmax(-1)[0, examples[row, -1]]), abs=TOLERANCE)
        wrong = mask.clone()
        wrong[0, 1] = 1 - wrong[0, 1]
        with torch.no_grad():
            logits = model(input_ids=examples[row : row + 1, :-1], attention_mask=wrong, position_ids=ids).logits[:, -1]
        assert abs(float(loss) + float(logits.log_softmax(-1)[0, examples[row, -1]])) > TOLERANCE


# Attention


@pytest.mark.parametrize("num_last", [1, 4])
def test_attention_is_the_same_both_ways(num_last, examples):
    decoder = tiny_decoder()
    ids = torch.arange(1, 24).expand(examples.shape)
    ours = DecoderModel(decoder, "ours").attention(examples, ids, num_last)
    twin = HuggingFaceModel(to_hf(decoder), "twin")
    torch.testing.assert_close(ours, twin.attention(examples, ids, num_last), atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(ours.sum(-1), torch.ones(3, num_last))
    wrong = DecoderModel(decoder, "ours").attention(examples, ids.flip(1), num_last)
    assert (ours - wrong).abs().max() > 100 * TOLERANCE


@pytest.mark.parametrize("num_last", [1, 4])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attention_equals_eager_over_everything(architecture, num_last, examples):
    model = tiny_hf(architecture)
    adapter = HuggingFaceModel(model, architecture)
    ids = torch.arange(23).expand(examples.shape)
    ours = adapter.attention(examples, ids, num_last)
    assert model.config._attn_implementation == "sdpa"
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(input_ids=examples, position_ids=ids, output_attentions=True).attentions
    theirs = torch.stack([layer[:, :, -num_last:].mean(1) for layer in weights]).mean(0)
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=0)
    elsewhere = adapter.attention(examples, ids.roll(1, dims=1), num_last)  # and it can fail
    assert (elsewhere - theirs).abs().max() > 100 * TOLERANCE


def test_a_window_counts_as_the_paper_does():
    window = Window(short=2, long=8)  # Figure 5
    assert (window.num_tokens, window.num_inputs, window.num_far) == (8, 7, 5)
    several = Window(short=2, long=8, num_targets=3)
    assert (several.num_tokens, several.num_inputs, several.num_far) == (10, 9, 5)
    assert several.num_windows("--num-examples", 12) == 4
    with pytest.raises(ValueError, match="--num-examples 13 is no multiple of --num-targets 3; use 15"):
        several.num_windows("--num-examples", 13)
    with pytest.raises(ValueError, match="--long 65 leaves no far token"):
        Window(short=64, long=65)
    with pytest.raises(ValueError, match="--short 0 is too small"):
        Window(short=0, long=5)


def test_models_are_told_apart_by_all_that_decides_what_they_say():
    one, other, turned = (tiny_hf("llama") for _ in range(3))
    with torch.no_grad():
        other.model.norm.weight[0] += 1e-3
        turned.model.rotary_emb.inv_freq[0] += 1e-3  # no weight, and no file has it
    assert weights_digest(one) == weights_digest(tiny_hf("llama"))
    assert len({weights_digest(model) for model in (one, other, turned)}) == 3
