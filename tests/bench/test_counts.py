"""Speed without a clock: forward passes, FLOPs and bytes, which no busy machine can change.

The numbers are those of today's code. Doing less is a reason to lower one; doing more is a regression.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lengen.bench.length_curve import one_pass_curve, rope_config
from lengen.config import RunConfig
from lengen.decode import Prompts, greedy_decode
from lengen.evaluate.length_curve import Verdict
from lengen.experiments.presets import preset_config
from lengen.model.cache import KVCache
from lengen.model.decoder import Decoder
from lengen.train.loop import build_decoder, training_batches
from lengen.train.update import build_optimizer, training_step

MEGAFLOPS_OF_THE_FIRST_STEP = {"fig1-k8": 1211.9, "fig2-jump1": 1374.8, "fig3a-depth3": 3077.1}
PAGE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()
BYTES_A_TOKEN = 11_134  # kept for the backward pass of sparse parity at the `cpu` scale


@contextmanager
def counted_slots(decoder: Decoder) -> Iterator[list[int]]:
    """The number of slots that each forward pass reads, of all examples together."""
    slots: list[int] = []
    hook = decoder.register_forward_pre_hook(lambda _, inputs: slots.append(inputs[0].numel()))
    yield slots
    hook.remove()


def flops_of_first_step(config: RunConfig) -> int:
    decoder = build_decoder(config)
    batches = training_batches(config, 0, config.task)
    with FlopCounterMode(display=False) as counter:
        training_step(decoder, build_optimizer(decoder, 0.1), batches, 1e-3, config)
    return counter.get_total_flops()


def flops_of_plain_step(config: RunConfig) -> int:
    """Every layer at every slot, each input as if it were the only one of its kind."""
    decoder = build_decoder(config)
    (batch,) = training_batches(config, 0, config.task)
    linear = sum(module.weight.numel() for module in decoder.modules() if isinstance(module, torch.nn.Linear))
    return 6 * linear * batch.input_token_ids.numel()


@pytest.mark.parametrize("preset", MEGAFLOPS_OF_THE_FIRST_STEP)
def test_flops_of_a_training_step(preset):
    measured = flops_of_first_step(preset_config(preset, "cpu")) / 1e6
    assert measured == pytest.approx(MEGAFLOPS_OF_THE_FIRST_STEP[preset], rel=1e-3)


@pytest.mark.parametrize("preset", MEGAFLOPS_OF_THE_FIRST_STEP)
def test_a_step_does_less_than_a_plain_one(preset):
    config = preset_config(preset, "cpu")
    assert flops_of_first_step(config) < 0.75 * flops_of_plain_step(config)


@pytest.mark.parametrize("preset", MEGAFLOPS_OF_THE_FIRST_STEP)
def test_the_page_tells_these_counts(preset):
    config = preset_config(preset, "cpu")
    executed, plain = flops_of_first_step(config), flops_of_plain_step(config)
    row = f"(`{preset}`) | {executed / 1e6:,.0f} M | {plain / 1e6:,.0f} M | {executed / plain:.0%} |"
    assert row.replace("%", " %") in PAGE


def test_the_flop_count_can_fail(monkeypatch):
    """Without knowing that inputs repeat, the first layer does all of its work."""
    config = preset_config("fig1-k8", "cpu")
    before = flops_of_first_step(config)
    distinct = Decoder._distinct_inputs

    def all_different(self, token_ids, position_ids):
        tokens, ids, repeats = distinct(self, token_ids, position_ids)
        flat = repeats.row_of_slot.flatten()
        every_slot = torch.arange(len(flat)).view_as(repeats.row_of_slot)
        return tokens[:, flat], ids[:, flat], repeats._replace(row_of_slot=every_slot)

    monkeypatch.setattr(Decoder, "_distinct_inputs", all_different)
    assert flops_of_first_step(config) > 1.3 * before


def test_a_length_curve_reads_no_slot_twice_and_nothing_after_a_mistake(monkeypatch):
    config = rope_config()
    decoder = build_decoder(config)
    num_slots = sum(config.task.num_tokens(length) - 1 for length in config.eval_lengths) * config.eval_examples
    with counted_slots(decoder) as slots:
        one_pass_curve(decoder, config)
    assert sum(slots) < 0.65 * num_slots, "an untrained model is found wrong at its first targets"

    # A model that is always right is read to the end, once.
    monkeypatch.setattr("lengen.evaluate.length_curve._compare", lambda _, tokens, ids: Verdict(tokens >= 0, ids >= 0))
    with counted_slots(decoder) as slots:
        one_pass_curve(decoder, config)
    assert sum(slots) == num_slots


@pytest.mark.parametrize(("use_cache", "expected"), [(True, [22, 1, 1, 1]), (False, [22, 23, 24, 25])])
def test_cached_decoding_reads_each_slot_once(use_cache, expected, monkeypatch):
    config = preset_config("fig2-jump1", "cpu")
    decoder = build_decoder(config)
    (batch,) = training_batches(config, 0, config.task)
    prompts = Prompts.of(batch)
    prompts = prompts._replace(
        token_ids=prompts.token_ids[:, :22].repeat(1, 4)[:, :22],
        position_ids=prompts.position_ids[:, :1].repeat(1, 22),
        lens=torch.full_like(prompts.lens, 22),
    )
    widths, view = [], Decoder.view

    def counted_view(self, position_ids, *rest):  # every pass begins with it, folded or not
        widths.append(position_ids.shape[1])
        return view(self, position_ids, *rest)

    monkeypatch.setattr(Decoder, "view", counted_view)
    greedy_decode(decoder, prompts, torch.zeros((len(prompts.lens), 4), dtype=torch.int64), use_cache)
    assert widths == expected


def test_bytes_of_the_cache():
    config = preset_config("fig2-jump1", "cpu").model
    cache = KVCache(config, batch_size=16, num_slots=100, like=torch.zeros(1))
    stored = [*cache.keys, *cache.values, cache.ids]
    assert sum(tensor.nbytes for tensor in stored) == 16 * 100 * (2 * config.num_layers * config.width * 4 + 8)


def test_bytes_kept_for_the_backward_pass():
    """What a step keeps alive between forward and backward, in bytes for each token of the batch."""
    config = preset_config("fig1-k8", "cpu")
    decoder = build_decoder(config)
    (batch,) = training_batches(config, 0, config.task)
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    parameters = {parameter.untyped_storage().data_ptr() for parameter in decoder.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
    total = sum(size for pointer, size in kept.items() if pointer not in parameters)
    assert output.token_logits.requires_grad
    a_token = total / batch.input_token_ids.numel()
    assert a_token == pytest.approx(BYTES_A_TOKEN, rel=0.02)
