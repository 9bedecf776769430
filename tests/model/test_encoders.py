"""Each encoder against its published formula, written out with loops over single pairs of ids."""

import math

import pytest
import torch

from lengen.positions.encode import (
    AlibiEncoder,
    FireEncoder,
    LearnedAbsoluteEncoder,
    PositionEncoder,
    RopeEncoder,
    build_encoder,
    rope_frequencies,
)
from lengen.positions.scheme import ENCODERS, Fire, Rope

IDS = torch.tensor([[0, 3, 3, 9, 1], [5, 6, 40, 2, 200]])  # repeated, skipping, out of order


def test_rope_turns_each_pair_by_its_angle():
    encoder = RopeEncoder(Rope(rotary_fraction=0.5, base=100.0), head_size=8)
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0))
    turned = encoder.rotation(IDS).apply(x)
    for b in range(2):
        for t in range(5):
            for pair, frequency in enumerate((1.0, 100.0**-0.5)):
                angle = IDS[b, t].item() * frequency
                first, second = x[b, :, t, pair], x[b, :, t, pair + 2]
                assert torch.allclose(
                    turned[b, :, t, pair], first * math.cos(angle) - second * math.sin(angle), atol=1e-5
                )
                assert torch.allclose(
                    turned[b, :, t, pair + 2], second * math.cos(angle) + first * math.sin(angle), atol=1e-5
                )
    assert torch.equal(turned[..., 4:], x[..., 4:])  # the rest of the head is left alone


def test_alibi_is_a_slope_times_the_distance_of_ids():
    bias = AlibiEncoder(num_heads=4).bias(IDS, IDS)
    for head in range(4):
        slope = 2.0 ** (-8 * (head + 1) / 4)
        for t in range(5):
            for s in range(5):
                expected = -slope * abs(IDS[1, t].item() - IDS[1, s].item())
                assert bias[1, head, t, s].item() == pytest.approx(expected)


def test_fire_is_its_formula():
    encoder = FireEncoder(Fire(hidden=3), num_heads=2)
    c, threshold = encoder.log_scale.item(), encoder.threshold.item()
    bias = encoder.bias(IDS, IDS)
    for t in range(5):
        for s in range(5):
            i, j = IDS[1, t].item(), IDS[1, s].item()
            ratio = math.log(abs(c * (i - j)) + 1) / math.log(abs(c * max(threshold, i)) + 1)
            hidden = torch.relu(encoder.hidden(torch.tensor([ratio])))
            assert torch.allclose(bias[1, :, t, s], encoder.output(hidden), atol=1e-4)


def test_interpolation_slows_what_it_should():
    plain = rope_frequencies(Rope(rotary_fraction=1.0), 16)
    linear = rope_frequencies(Rope(rotary_fraction=1.0, interpolation="linear", factor=4.0), 16)
    ntk = rope_frequencies(Rope(rotary_fraction=1.0, interpolation="ntk", factor=4.0), 16)
    yarn = rope_frequencies(Rope(rotary_fraction=1.0, interpolation="yarn", factor=4.0, trained_max_id=512), 16)
    assert torch.allclose(linear, plain / 4)
    assert ntk[0] == plain[0]
    assert ntk[-1].item() == pytest.approx(plain[-1].item() / 4)
    assert yarn[0] == plain[0]  # turns 81 times within 512 ids: kept
    assert yarn[-1].item() == pytest.approx(plain[-1].item() / 4)  # never turns once: interpolated
    assert torch.all(yarn <= plain)


def test_an_encoder_that_embeds_ids_says_so_by_itself():
    """Otherwise the decoder would take equal tokens at different ids for one input."""

    class Mine(PositionEncoder):
        def embed(self, hidden, ids):
            return hidden + ids[..., None]

    assert Mine().adds_ids_to_input
    assert LearnedAbsoluteEncoder(num_ids=8, width=4).adds_ids_to_input
    assert not PositionEncoder().adds_ids_to_input
    assert not RopeEncoder(Rope(), head_size=8).adds_ids_to_input


@pytest.mark.parametrize("name", ENCODERS)
def test_settings_say_whether_anything_is_learned(name):
    encoder = build_encoder(ENCODERS[name](), num_ids=9, width=32, num_heads=2, head_size=16)
    assert ENCODERS[name].has_weights == bool(list(encoder.parameters()))
