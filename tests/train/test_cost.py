"""What `lengen plan` counts is what torch counts, and the time it predicts is the time it takes."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import gelu, layer_norm
from torch.utils.flop_counter import FlopCounterMode

from lengen.cli import main
from lengen.experiments.presets import preset_config
from lengen.language.cost import LANGUAGE
from lengen.loss import summed_loss
from lengen.model.config import ModelConfig
from lengen.positions import scheme_named
from lengen.train.cost import CPU_CORE, Device, Example, cost_of, forward_flops, num_parameters, saved_bytes
from lengen.train.cost import workload_of as workload
from lengen.train.loop import build_decoder, training_batches
from lengen.train.update import build_optimizer, training_step

DOCS = Path(__file__).parents[2] / "docs" / "scaling.md"
PRESETS = ["fig1-k8", "fig2-jump1", "fig3a-depth3", "fig3c-depth3", "fig8b-jump1"]


@pytest.mark.parametrize("scheme", ["ppc", "ppc-rope", "ppc-fire", "nope", "alibi", "shifted-ape"])
def test_parameters(scheme, smoke_config):
    config = replace(smoke_config, scheme=scheme_named(scheme), model=ModelConfig(3, 2, 16, mlp_ratio=3))
    assert num_parameters(workload(config)) == build_decoder(config).num_parameters()


@pytest.mark.parametrize("preset", PRESETS)
def test_flops(preset):
    config = preset_config(preset, "cpu")
    decoder, (batch,) = build_decoder(config), training_batches(config, 0, config.task)
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH):  # torch does not count its fused kernel on CPUs
        output = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
        forward = counter.get_total_flops()
        summed_loss(output, batch, 1.0).total.backward()
    assert forward_flops(workload(config), Example.of(batch, config.scheme), float(config.batch_size)) == forward
    assert counter.get_total_flops() == 3 * forward


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("preset", PRESETS)
def test_activations(preset, precision):
    config = replace(preset_config(preset, "cpu"), precision=precision)
    decoder, (batch,) = build_decoder(config), training_batches(config, 0, config.task)
    weights = {parameter.untyped_storage().data_ptr() for parameter in decoder.parameters()}
    kept = {}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"),
    ):
        output = decoder(batch.input_token_ids, batch.input_position_ids, batch.first_target)
        summed_loss(output, batch, 1.0)
    measured = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    expected = saved_bytes(workload(config), Example.of(batch, config.scheme), float(config.batch_size))
    expected += 2 * decoder.num_parameters() if precision == "bf16" else 0
    assert expected == pytest.approx(measured, rel=0.15)


def test_more_devices_share_the_work():
    short = LANGUAGE["language-short"]
    one, eight = cost_of(short, CPU_CORE), cost_of(short, CPU_CORE, 8, "full")
    assert one.flops == eight.flops
    assert one.optimizer_bytes == 8 * eight.optimizer_bytes
    assert one.communication_bytes == 0 < eight.communication_bytes
    assert one.activation_bytes == eight.activation_bytes, "a microbatch is a device's own"
    assert 1.3e9 < one.parameters < 1.4e9
    assert short.steps * short.batch_size * 64 == pytest.approx(25e9, rel=0.05)


def test_bad_plans_are_one_sentence(capsys):
    for arguments, expected in (
        (["fig3a-depth3", "--devices", "64", "--tflops", "1"], "64 devices cannot share groups of 32 examples"),
        (["fig3a-dpth3", "--devices", "1", "--tflops", "1"], "did you mean 'fig3a-depth3'"),
        (["fig3a-depth3", "--devices", "0", "--tflops", "1"], "--devices 0 is not positive"),
        (["fig3a-depth3", "--devices", "1", "--tflops", "-1"], "--tflops -1 is not positive"),
        (["fig3a-depth3", "--devices", "1", "--tflops", "1", "--link-gbps", "0"], "--link-gbps 0 is not positive"),
        (["language-short", "--scale", "cpu", "--devices", "1", "--tflops", "1"], "not at --scale cpu"),
    ):
        assert main(["plan", *arguments]) == 2
        assert expected in capsys.readouterr().err


def test_help_names_every_plan_that_is_no_preset(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    assert ", ".join(LANGUAGE) in " ".join(capsys.readouterr().out.split())


def test_every_number_of_the_documented_table_is_computed(capsys):
    """A row is the flags of `lengen plan` followed by what it says; the text beside it is its text."""
    rows = re.findall(r"^\| `lengen plan (.+?)` \| (.+) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 9
    for arguments, cells in rows:
        assert main(["plan", *arguments.split(), "--json"]) == 0
        cost = json.loads(capsys.readouterr().out)
        assert table_cells(cost) == cells.split(" | "), arguments


def table_cells(cost: dict[str, float]) -> list[str]:
    memory = sum(cost[f"{part}_bytes"] for part in ("weight", "gradient", "optimizer", "activation"))
    step = sum(cost[f"{part}_seconds"] for part in ("matmul", "memory", "host", "communication"))
    return [
        f"{cost['flops']:.2e}",
        f"{memory / 1e9:.1f} GB",
        f"{cost['communication_bytes'] / 1e9:.1f} GB",
        f"{step:.3f} s",
        f"{cost['hours']:.1f}",
        f"{cost['device_hours']:.1f}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["fig2-jump1", "fig3a-depth3", "fig8b-jump1", "fig1-k8"])
def test_predicted_time_is_measured_time(preset):
    """Within 25 %, given the rates that this machine reaches; in processor time, which other programs disturb less."""
    config = preset_config(preset, "cpu")
    decoder = build_decoder(config)
    optimizer = build_optimizer(decoder, config.weight_decay)
    steps = [training_batches(config, step, config.task) for step in range(12)]
    examples = tuple(Example.of(batch, config.scheme) for (batch,) in steps)
    num_rows = config.batch_size * sum(example.num_tokens for example in examples) // len(examples)
    training_step(decoder, optimizer, steps[0], 1e-3, config)
    ratios = []
    for _ in range(5):
        device = measured_device(num_rows, config.model.width)
        predicted = cost_of(replace(workload(config), examples=examples), device).step_seconds
        started = time.process_time()
        for batches in steps:
            training_step(decoder, optimizer, batches, 1e-3, config)
        ratios.append(predicted / ((time.process_time() - started) / len(steps)))
    assert sorted(ratios)[2] == pytest.approx(1.0, abs=0.25), ratios


def measured_device(num_rows: int, width: int) -> Device:
    """One core on the three products of a linear layer's training, and on norms, GELUs and sums."""
    narrow, wide, scale = torch.randn(num_rows, width), torch.randn(num_rows, 4 * width), torch.ones(width)
    matrix = torch.randn(width, 4 * width)

    def seconds(action) -> float:
        action()
        num_calls, started = 0, time.process_time()
        while time.process_time() - started < 0.3:
            action()
            num_calls += 1
        return (time.process_time() - started) / num_calls

    num_flops = 3 * 2 * num_rows * width * 4 * width
    products = num_flops / seconds(lambda: (narrow @ matrix, wide @ matrix.T, narrow.T @ wide))
    num_bytes = 4 * (2 + 8 + 3) * narrow.numel()
    memory = num_bytes / seconds(lambda: (layer_norm(narrow, (width,), scale, scale), gelu(wide), narrow + narrow))
    return Device(products / 1e12, memory / 1e9, link_gbps=1.0)
