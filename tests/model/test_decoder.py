"""The decoder computes what it says: causality by slot, the short last layer, a gradient for every parameter."""

from dataclasses import replace

import pytest
import torch

from lengen.batch import sample_batch
from lengen.loss import summed_loss
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.positions import ASSIGNERS, ENCODERS, scheme_named
from lengen.positions.assign import Contiguous
from lengen.seeding import rng_for
from lengen.tasks import VariableAssignment

TASK = VariableAssignment(depth=2, num_variables=30)
PAIRS = [f"{assigner}+{encoder}" for assigner in ASSIGNERS for encoder in ENCODERS]


def decoder_and_batch(pair: str):
    scheme = scheme_named(pair)
    decoder = Decoder(ModelConfig(num_layers=2, num_heads=2, width=32), scheme, len(TASK.vocabulary)).initialize(0)
    # Test-time ids: under a large training offset FIRE's threshold would not be reached, and get no gradient.
    return decoder, sample_batch(TASK, scheme, rng_for(0, "test"), 4, 12, training=False)


@pytest.mark.parametrize("pair", PAIRS)
def test_every_parameter_gets_a_gradient(pair):
    decoder, batch = decoder_and_batch(pair)
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.ndim == 1:  # zero biases would hide a dead path behind exact zeros
                parameter.normal_(generator=torch.Generator().manual_seed(0))
    output = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
    summed_loss(output, batch, position_loss_weight=1.0).total.backward()
    for name, parameter in decoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("pair", PAIRS)
def test_the_short_last_layer_changes_nothing(pair):
    decoder, batch = decoder_and_batch(pair)
    full = decoder(batch.input_token_ids, batch.input_position_ids)
    short = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
    for ours, whole in zip(short, full, strict=True):
        if whole is not None:
            assert torch.allclose(ours, whole[:, batch.first_target :], atol=1e-5)


def test_the_short_last_layer_check_can_fail():
    decoder, batch = decoder_and_batch("predicted+ape")
    full = decoder(batch.input_token_ids, batch.input_position_ids)
    short = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
    shifted = full.token_logits[:, batch.first_target - 1 : -1]
    assert not torch.allclose(short.token_logits, shifted, atol=1e-5)


@pytest.mark.parametrize("pair", PAIRS)
def test_no_slot_sees_a_later_one(pair):
    decoder, batch = decoder_and_batch(pair)
    before = decoder(batch.token_ids, batch.position_ids).token_logits
    cut = batch.prompt_len
    changed = batch.token_ids.clone()
    changed[:, cut:] = (changed[:, cut:] + 1) % len(TASK.vocabulary)
    after = decoder(changed, batch.position_ids).token_logits
    assert torch.allclose(before[:, :cut], after[:, :cut], atol=1e-6)
    assert not torch.allclose(before[:, cut:], after[:, cut:], atol=1e-3)  # and it does see what changed


@pytest.mark.parametrize("encoder", ["rope", "alibi"])
def test_relative_encoders_see_differences_of_ids_only(encoder):
    decoder, batch = decoder_and_batch(f"contiguous+{encoder}")
    here = decoder(batch.token_ids, batch.position_ids).token_logits
    there = decoder(batch.token_ids, batch.position_ids + 7).token_logits
    assert torch.allclose(here, there, atol=1e-4)


@pytest.mark.parametrize("encoder", ["ape", "fire"])
def test_absolute_encoders_see_more_than_differences(encoder):
    decoder, batch = decoder_and_batch(f"contiguous+{encoder}")
    here = decoder(batch.token_ids, batch.position_ids).token_logits
    there = decoder(batch.token_ids, batch.position_ids + 100).token_logits
    assert not torch.allclose(here, there, atol=1e-4)


def test_without_positions_ids_do_not_matter():
    decoder, batch = decoder_and_batch("contiguous+nope")
    permuted = batch.position_ids.flip(1)
    assert torch.equal(decoder(batch.token_ids, batch.position_ids)[0], decoder(batch.token_ids, permuted)[0])


@pytest.mark.parametrize("ids", [[[1, 2, 11]], [[1, 2, -1]]])
def test_an_id_outside_its_table_is_an_error_and_no_other_token(ids):
    scheme = replace(scheme_named("ape"), assigner=Contiguous(10))
    decoder = Decoder(ModelConfig(1, 2, 16), scheme, 5).initialize(0)
    decoder(torch.tensor([[1, 2, 3]]), torch.tensor([[1, 2, 10]]))
    with pytest.raises(IndexError):
        decoder(torch.tensor([[1, 2, 3]]), torch.tensor(ids))


def test_initial_weights_scale_with_width():
    for width in (64, 256):
        decoder = Decoder(ModelConfig(num_layers=1, num_heads=2, width=width), scheme_named("ppc"), 50).initialize(0)
        std = decoder.blocks[0].mlp_in.weight.std().item()
        assert std == pytest.approx(0.64 / width**0.5, rel=0.05)


def test_initialization_is_a_function_of_the_seed():
    config, scheme = ModelConfig(num_layers=1, num_heads=2, width=32), scheme_named("ppc-fire")
    first, again, other = (Decoder(config, scheme, 50).initialize(seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embedding.weight"], other["embedding.weight"])
