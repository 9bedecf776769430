"""Sharper attention: products of queries and keys × `sharpness`, and × log n / log `sharpen_from` among n keys."""

import json
import math

import pytest
import torch
from torch import Tensor

from lengen.batch import Batch, sample_batch
from lengen.cli import main
from lengen.config import RunConfig, config_from_dict, config_to_dict
from lengen.decode import Prompts, greedy_decode
from lengen.model.attention import Attention, View
from lengen.model.config import PLAIN_ATTENTION, ModelConfig
from lengen.model.decoder import Decoder
from lengen.model.hf import to_hf
from lengen.positions import scheme_named
from lengen.seeding import rng_for
from lengen.tasks import ParityScratchpad

TASK = ParityScratchpad()
NUM_TOKENS, SHARPEN_FROM, SHARPNESS = 7, 5, 1.5


def decoder_of(scheme: str, sharpen_from: int = 0, sharpness: float = 1.0) -> Decoder:
    config = ModelConfig(2, 2, 32, init_scale=2.0, sharpness=sharpness, sharpen_from=sharpen_from)
    return Decoder(config, scheme_named(scheme), len(TASK.vocabulary)).initialize(0)


def examples(decoder: Decoder, length: int, batch_size: int = 3) -> Batch:
    return sample_batch(TASK, decoder.scheme, rng_for(0, "test", length), batch_size, length, training=False)


def by_hand(attention: Attention, hidden: Tensor, sharpen_from: int) -> Tensor:
    """One query and one head at a time."""
    queries, (keys, values) = attention.query(hidden), attention.key_value(hidden).chunk(2, dim=-1)
    attended = torch.zeros_like(hidden)
    for slot in range(len(hidden)):
        for head in range(attention.num_heads):
            part = slice(head * attention.head_size, (head + 1) * attention.head_size)
            scores = keys[: slot + 1, part] @ queries[slot, part] / math.sqrt(attention.head_size)
            weights = torch.softmax(SHARPNESS * scores * math.log(slot + 1) / math.log(sharpen_from), dim=0)
            attended[slot, part] = weights @ values[: slot + 1, part]
    return attention.output(attended)


@torch.no_grad()
def attended_and_by_hand(sharpen_from_by_hand: int) -> tuple[Tensor, Tensor]:
    decoder = decoder_of("nope", SHARPEN_FROM, SHARPNESS)
    hidden = torch.randn(NUM_TOKENS, 32, generator=torch.Generator().manual_seed(0))
    attention = decoder.blocks[0].attention
    view = View(None, None, None, decoder._sharpness(NUM_TOKENS, None), None, None)
    return attention(hidden[None], view, 0, None)[0], by_hand(attention, hidden, sharpen_from_by_hand)


def test_attention_equals_the_formula_by_hand():
    attended, expected = attended_and_by_hand(SHARPEN_FROM)
    assert torch.allclose(attended, expected, atol=1e-5)


def test_the_check_by_hand_can_fail():
    attended, expected = attended_and_by_hand(SHARPEN_FROM + 1)
    assert not torch.allclose(attended, expected, atol=1e-3)


@pytest.mark.parametrize("scheme", ["ppc", "pose-rope", "fire"])
def test_cached_equals_uncached(scheme):
    decoder = decoder_of(scheme, SHARPEN_FROM, SHARPNESS)
    batch = examples(decoder, 24)
    cached = greedy_decode(decoder, Prompts.of(batch), batch.target_ids)
    uncached = greedy_decode(decoder, Prompts.of(batch), batch.target_ids, use_cache=False)
    assert torch.equal(cached.token_ids, uncached.token_ids)
    assert torch.equal(cached.position_ids, uncached.position_ids)


def test_each_example_of_a_batch_counts_its_own_keys():
    """A short prompt beside a long one is decoded as it is alone."""
    decoder = decoder_of("rope", SHARPEN_FROM)
    short, long = examples(decoder, 8, batch_size=1), examples(decoder, 24, batch_size=1)
    num_new = short.target_ids.shape[1]
    padded = torch.zeros_like(long.token_ids[:, : long.prompt_len])
    tokens, ids = (torch.cat([padded, part[:, : long.prompt_len]]) for part in (long.token_ids, long.position_ids))
    tokens[0, : short.prompt_len], ids[0, : short.prompt_len] = (
        part[0, : short.prompt_len] for part in (short.token_ids, short.position_ids)
    )
    given = torch.cat([short.target_ids, long.target_ids[:, :num_new]])
    together = greedy_decode(decoder, Prompts(tokens, ids, torch.tensor([short.prompt_len, long.prompt_len])), given)
    alone = greedy_decode(decoder, Prompts.of(short), short.target_ids)
    assert torch.equal(together.token_ids[0], alone.token_ids[0])


@torch.no_grad()
def test_a_query_that_sees_as_many_keys_as_named_is_plain_and_others_are_not():
    plain, sharpened = decoder_of("nope"), decoder_of("nope", NUM_TOKENS)
    plain.blocks, sharpened.blocks = (
        plain.blocks[:1],
        sharpened.blocks[:1],
    )  # one layer: only the query's own count matters
    tokens = torch.arange(NUM_TOKENS)[None] % len(TASK.vocabulary)
    ids = torch.arange(NUM_TOKENS)[None]
    differences = (plain(tokens, ids).token_logits - sharpened(tokens, ids).token_logits).abs().amax(-1)[0]
    assert differences[-1] < 1e-5
    assert differences[1:-1].min() > 1e-4


@torch.no_grad()
def test_sharpness_is_as_good_as_larger_queries():
    sharpened, larger = decoder_of("rope", sharpness=SHARPNESS), decoder_of("rope")
    for block in larger.blocks:
        block.attention.query.weight *= SHARPNESS
        block.attention.query.bias *= SHARPNESS
    batch = examples(larger, 24)
    by_setting, by_weights = (decoder(*batch[:2]).token_logits for decoder in (sharpened, larger))
    assert torch.allclose(by_setting, by_weights, atol=1e-4)
    assert not torch.allclose(by_setting, decoder_of("rope")(*batch[:2]).token_logits, atol=1e-2)


@pytest.mark.parametrize("settings", [{"sharpness": 2.0}, {"sharpen_from": 50}])
def test_configs_without_it_keep_their_digest_and_configs_with_it_have_another(settings):
    plain = RunConfig(TASK, scheme_named("ppc"))
    sharpened = RunConfig(TASK, scheme_named("ppc"), ModelConfig(**settings))
    assert not config_to_dict(plain)["model"].keys() & PLAIN_ATTENTION.keys()
    assert plain.arm != sharpened.arm
    assert config_from_dict(config_to_dict(sharpened)) == sharpened
    assert config_from_dict(config_to_dict(plain)) == plain


@pytest.mark.parametrize("settings", [{"sharpen_from": -3}, {"sharpen_from": 1}, {"sharpness": 0.0}])
def test_what_is_no_sharpness_is_refused(settings):
    ((name, value),) = settings.items()
    with pytest.raises(ValueError, match=f"--model.{name} {value}"):
        ModelConfig(**settings)


@pytest.mark.parametrize("settings", [{"sharpness": 2.0}, {"sharpen_from": 5}])
def test_hf_cannot_express_it(settings):
    with pytest.raises(ValueError, match="cannot be converted"):
        to_hf(decoder_of("rope", **settings))


def test_a_trained_run_can_be_measured_with_it(tmp_path, capsys):
    small = ["--model.width", "16", "--model.num_heads", "2", "--model.num_layers", "1"]
    run = str(tmp_path / "run")
    assert main(["train", "parity-scratchpad", "--scheme", "ppc", "--out", run, "--steps", "2", *small]) == 0
    measure = ["evaluate", run, "--lengths", "12", "--num-examples", "4", "--metric", "joint", "--json"]
    capsys.readouterr()
    assert main([*measure, "--model.sharpness", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["overrides"] == {"model.sharpness": 2.0}
    assert main([*measure, "--model.width", "32"]) == 2
    assert "--model.width cannot change after training" in capsys.readouterr().err
