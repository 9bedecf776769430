"""Attention weights are those that attention uses, and their spread is counted as the formula says."""

import json
import math

import pytest
import torch
from torch import Tensor

from lengen.batch import sample_batch
from lengen.cli import main
from lengen.evaluate.attention_spread import EXAMPLES_AT_ONCE, attention_spread, effective_keys
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder
from lengen.positions import scheme_named
from lengen.seeding import rng_for
from lengen.tasks import ParityScratchpad

TASK = ParityScratchpad()
LENGTH, SEED = 12, 3
NUM_EXAMPLES = EXAMPLES_AT_ONCE + 1  # more than one part


def decoder_of(scheme: str, **settings: float) -> Decoder:
    config = ModelConfig(2, 2, 32, init_scale=2.0, **settings)
    return Decoder(config, scheme_named(scheme), len(TASK.vocabulary)).initialize(0)


@torch.no_grad()
def last_hidden(decoder: Decoder, change=lambda weights: weights) -> tuple[Tensor, Tensor]:
    """What attention of the last layer adds: as computed, and as its weights times its values."""
    batch = sample_batch(TASK, decoder.scheme, rng_for(SEED, "test"), 3, LENGTH, training=False)
    attention, seen = decoder.blocks[-1].attention, {}
    attention.key_value.register_forward_hook(lambda _, inputs, output: seen.update(values=output.chunk(2, -1)[1]))
    attention.register_forward_hook(lambda _, inputs, output: seen.update(output=output))
    weights: list[Tensor] = []
    decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target, weights=weights)
    values = seen["values"].view(3, -1, 2, 16).transpose(1, 2)
    attended = change(weights[-1]) @ values
    return seen["output"], attention.output(attended.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("scheme", ["ppc", "rope", "alibi", "fire", "nope"])
@pytest.mark.parametrize("settings", [{}, {"sharpness": 2.0}, {"sharpen_from": 5}], ids=str)
def test_weights_times_values_are_what_attention_gives(scheme, settings):
    output, from_weights = last_hidden(decoder_of(scheme, **settings))
    assert torch.allclose(output, from_weights, atol=1e-5)


def test_the_check_of_weights_can_fail():
    output, from_weights = last_hidden(decoder_of("rope"), change=lambda weights: weights.roll(1, dims=-1))
    assert not torch.allclose(output, from_weights, atol=1e-3)


def test_asking_for_weights_changes_nothing():
    decoder = decoder_of("rope")
    batch = sample_batch(TASK, decoder.scheme, rng_for(SEED, "test"), 3, LENGTH, training=False)
    plain = decoder(batch.input_token_ids, batch.input_position_ids).token_logits
    assert torch.equal(plain, decoder(batch.input_token_ids, batch.input_position_ids, weights=[]).token_logits)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([0.25] * 4 + [0.0], 4.0), ([1.0, 0.0, 0.0], 1.0), ([0.5, 0.25, 0.25], 2**1.5)],
)
def test_effective_keys(weights, expected):
    assert effective_keys(torch.tensor(weights)) == pytest.approx(expected)


@torch.no_grad()
def test_spread_equals_a_loop_over_examples_slots_and_heads():
    decoder = decoder_of("rope")
    batch = sample_batch(TASK, decoder.scheme, rng_for(SEED, "attention", LENGTH), NUM_EXAMPLES, LENGTH, training=False)
    weights: list[Tensor] = []
    decoder(batch.input_token_ids, batch.input_position_ids, weights=weights)
    measured = attention_spread(decoder, TASK, LENGTH, NUM_EXAMPLES, SEED)
    for layer in range(2):
        for head in range(2):
            counts = []
            for example in range(NUM_EXAMPLES):
                for slot in range(batch.first_target, batch.input_token_ids.shape[1]):
                    row = weights[layer][example, head, slot, : slot + 1].tolist()
                    counts.append(math.exp(-sum(weight * math.log(weight) for weight in row if weight > 0)))
            assert float(measured[layer, head]) == pytest.approx(sum(counts) / len(counts), rel=1e-4)


def test_the_command(tmp_path, capsys):
    run = str(tmp_path / "run")
    size = ["--model.width", "16", "--model.num_heads", "2", "--model.num_layers", "1"]
    assert main(["train", "parity-scratchpad", "--scheme", "ppc", "--out", run, "--steps", "2", *size]) == 0
    capsys.readouterr()
    assert main(["attention", run, "--lengths", "40,10", "--num-examples", "2", "--json"]) == 0
    heads = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(head["layer"], head["head"]) for head in heads] == [(1, 1), (1, 2)]
    for head in heads:
        few, many = head["effective_keys"]["10"], head["effective_keys"]["40"]
        assert 1 <= few < many
        assert head["growth"] == pytest.approx(math.log(many / few) / math.log(4))
    assert main(["attention", run, "--lengths", "10", "--num-examples", "2"]) == 0
    assert "growth" not in capsys.readouterr().out  # of a single length there is none
    assert main(["attention", run, "--lengths", "10", "--num-examples", "0"]) == 2
    assert "use at least 1" in capsys.readouterr().err
