"""What tells whether a model has learned to copy: all it can gain if it does, nothing if it does not."""

import json
import math

import pytest
import torch

from lengen.language.config import DEFAULT_FIRST
from lengen.language.losses import copying_gain
from lengen.language.presets import language_preset
from lengen.language.training import train_language
from lengen.model.config import ModelConfig
from lengen.model.decoder import Decoder, DecoderOutput
from lengen.results import RunFolder

VOCABULARY, CONTEXT = 50, 32


class Copier(Decoder):
    """Expects what followed `distance` tokens ago, and knows nothing before that."""

    def __init__(self, distance: int) -> None:
        super().__init__(ModelConfig(num_layers=1, num_heads=1, width=8), DEFAULT_FIRST, VOCABULARY)
        self.distance = distance

    def forward(self, token_ids, position_ids, first_target=0):
        logits = torch.zeros(*token_ids.shape, VOCABULARY)
        expected = token_ids[:, 1 : token_ids.shape[1] - self.distance + 1, None]
        logits[:, self.distance :].scatter_(2, expected, 50.0)
        return DecoderOutput(logits[:, first_target:], None)


def test_a_model_that_copies_gains_all_there_is():
    assert copying_gain(Copier(CONTEXT // 2), CONTEXT) == pytest.approx(math.log(VOCABULARY), abs=1e-5)


def test_a_model_that_copies_from_elsewhere_does_not():
    assert copying_gain(Copier(CONTEXT // 2 - 1), CONTEXT) < 0


def test_an_untrained_model_gains_nothing():
    decoder = Decoder(ModelConfig(num_layers=2, num_heads=2, width=32), DEFAULT_FIRST, VOCABULARY).initialize(0)
    assert abs(copying_gain(decoder, CONTEXT)) < 0.1


def test_training_says_it(corpus, tmp_path):
    folder = RunFolder(tmp_path / "run")
    train_language(language_preset("short", "smoke", corpus.stamp), corpus, folder, quiet=True)
    logged = [json.loads(line) for line in folder.metrics_file.read_text().splitlines()]
    assert [record["step"] for record in logged if "copying_gain" in record] == [
        record["step"] for record in logged if "valid_loss" in record
    ]
    assert any("copying_gain" in record for record in logged)
