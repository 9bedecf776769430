"""Cached decoding equals uncached decoding, for every scheme and for prompts of different lengths in one batch."""

import pytest
import torch

from lengen.batch import Batch, sample_batch
from lengen.decode import Prompts, greedy_decode
from lengen.model.cache import KVCache
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.positions import ASSIGNERS, ENCODERS, SCHEMES, scheme_named
from lengen.seeding import rng_for
from lengen.tasks import ParityScratchpad

TASK = ParityScratchpad()
PAIRS = [*SCHEMES, *(f"{assigner}+{encoder}" for assigner in ASSIGNERS for encoder in ENCODERS)]


def make_decoder(name: str) -> Decoder:
    config = ModelConfig(num_layers=2, num_heads=2, width=32, init_scale=2.0)  # large: random models should disagree
    return Decoder(config, scheme_named(name), len(TASK.vocabulary)).initialize(0)


def examples(decoder: Decoder, length: int, batch_size: int = 3) -> Batch:
    return sample_batch(TASK, decoder.scheme, rng_for(0, "test", length), batch_size, length, training=False)


def mixed_prompts(decoder: Decoder, lengths: tuple[int, ...]) -> tuple[Prompts, torch.Tensor, list[Batch]]:
    """One example of each length, padded on the right with a token that would be noticed if it were seen."""
    batches = [examples(decoder, length, batch_size=1) for length in lengths]
    widest = max(batch.prompt_len for batch in batches)
    most = max(batch.target_ids.shape[1] for batch in batches)
    tokens = torch.full((len(lengths), widest), 1)
    ids = torch.full((len(lengths), widest), 250)
    given = torch.ones((len(lengths), most), dtype=torch.int64)
    for row, batch in enumerate(batches):
        tokens[row, : batch.prompt_len] = batch.token_ids[0, : batch.prompt_len]
        ids[row, : batch.prompt_len] = batch.position_ids[0, : batch.prompt_len]
        given[row, : batch.target_ids.shape[1]] = batch.target_ids[0]
    return Prompts(tokens, ids, torch.tensor([batch.prompt_len for batch in batches])), given, batches


@pytest.mark.parametrize("name", PAIRS)
def test_cached_equals_uncached(name):
    decoder = make_decoder(name)
    batch = examples(decoder, 24)
    cached = greedy_decode(decoder, Prompts.of(batch), batch.target_ids)
    uncached = greedy_decode(decoder, Prompts.of(batch), batch.target_ids, use_cache=False)
    assert torch.equal(cached.token_ids, uncached.token_ids)
    assert torch.equal(cached.position_ids, uncached.position_ids)


@pytest.mark.parametrize("name", PAIRS)
def test_cached_logits_equal_full_logits(name):
    decoder = make_decoder(name)
    batch = examples(decoder, 24)
    assert (
        cached_logits(decoder, batch.token_ids, batch.position_ids) - full_logits(decoder, batch)
    ).abs().max() < 1e-4


@pytest.mark.parametrize("name", [pair for pair in PAIRS if scheme_named(pair).encoder.name != "nope"])
def test_cache_parity_can_fail(name):
    decoder = make_decoder(name)
    batch = examples(decoder, 24)
    wrong = batch.position_ids.roll(1, dims=1)
    assert (cached_logits(decoder, batch.token_ids, wrong) - full_logits(decoder, batch)).abs().max() > 1e-2


@torch.no_grad()
def full_logits(decoder: Decoder, batch: Batch) -> torch.Tensor:
    return decoder(batch.token_ids, batch.position_ids).token_logits


@torch.no_grad()
def cached_logits(decoder: Decoder, token_ids: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
    """The prompt's first five slots at once, then one slot at a time."""
    batch_size, num_slots = token_ids.shape
    cache = KVCache(decoder.config, batch_size, num_slots, like=decoder.token_head.weight)
    parts = []
    for slots in (range(5), *([slot] for slot in range(5, num_slots))):
        index = torch.tensor(list(slots)).expand(batch_size, -1)
        output = decoder(token_ids[:, slots], position_ids[:, slots], slots=index, cache=cache)
        parts.append(output.token_logits)
    return torch.cat(parts, dim=1)


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("name", PAIRS)
def test_prompts_of_different_lengths_decode_as_if_alone(name, use_cache):
    decoder = make_decoder(name)
    prompts, given, batches = mixed_prompts(decoder, (8, 20, 14))
    together = greedy_decode(decoder, prompts, given, use_cache)
    for row, batch in enumerate(batches):
        alone = greedy_decode(decoder, Prompts.of(batch), batch.target_ids, use_cache)
        num_targets = batch.target_ids.shape[1]
        assert torch.equal(together.token_ids[row, :num_targets], alone.token_ids[0])
        assert torch.equal(together.position_ids[row, :num_targets], alone.position_ids[0])


def test_mixed_prompts_check_can_fail():
    decoder = make_decoder("ppc")
    prompts, given, batches = mixed_prompts(decoder, (8, 20, 14))
    padded_is_prompt = prompts._replace(lens=torch.full((3,), prompts.token_ids.shape[1]))
    together = greedy_decode(decoder, padded_is_prompt, given)
    alone = greedy_decode(decoder, Prompts.of(batches[0]), batches[0].target_ids)
    assert not torch.equal(together.position_ids[0, : alone.position_ids.shape[1]], alone.position_ids[0])


def test_predicted_ids_are_fed_back():
    decoder = make_decoder("ppc")
    batch = examples(decoder, 24)
    decoded = greedy_decode(decoder, Prompts.of(batch), batch.target_ids)
    # A second pass over what was decoded, ids and all, must predict it again; with the true ids it must not.
    for ids, should_agree in ((decoded.position_ids, True), (batch.target_ids, False)):
        tokens = torch.cat([batch.token_ids[:, : batch.prompt_len], decoded.token_ids], dim=1)
        fed = torch.cat([batch.position_ids[:, : batch.prompt_len], ids], dim=1)
        output = decoder(tokens[:, :-1], fed[:, :-1], batch.first_target)
        agrees = torch.equal(output.token_logits.argmax(-1), decoded.token_ids) and torch.equal(
            output.position_logits.argmax(-1), decoded.position_ids
        )
        assert agrees == should_agree


def test_given_ids_are_used_where_none_are_predicted():
    decoder = make_decoder("coupled")
    batch = examples(decoder, 24)
    decoded = greedy_decode(decoder, Prompts.of(batch), batch.target_ids)
    assert torch.equal(decoded.position_ids, batch.target_ids)
    other = greedy_decode(decoder, Prompts.of(batch), batch.target_ids + 50)
    assert not torch.equal(decoded.token_ids, other.token_ids)
