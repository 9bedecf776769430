"""What a run costs, from its config alone: parameters, FLOPs, memory, communication, time.

Time is a sum in which nothing overlaps: matrix products at the rate the device reaches on them, everything else at the
rate of its memory, the host's work for each operation, and gradients over the link. Counts are exact or checked against
torch by tests; the time is checked against measured runs (docs/scaling.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

from lengen.batch import Batch, sample_batch
from lengen.config import RunConfig
from lengen.model.config import ModelConfig
from lengen.positions.scheme import Fire, Rope, Scheme
from lengen.seeding import rng_for

FLOAT = 4  # bytes of a weight, a gradient, each of AdamW's two moments: all fp32, whatever the products are computed in
BACKWARD = 2  # a backward pass costs two forward passes: gradients of inputs and of weights

# What is no matrix product reads and writes, in the forward pass of a layer, so many numbers: for each of a token's D,
# two norms (4), attention (4), heads put together (2), two residual sums (6); for each of the MLP's, GELU (2); for
# what rotary turns, two products, a sum and two concatenations (14); for a score, softmax (2). Where inputs repeat,
# queries, keys, values and the residual are spread from rows to slots (8).
NORM_TRAFFIC = 4
ATTENTION_TRAFFIC = 6
RESIDUAL_TRAFFIC = 6
SPREAD_TRAFFIC = 8
MLP_TRAFFIC = 2
ROTARY_TRAFFIC = 14
SCORE_TRAFFIC = 2
# The update reads weight, gradient and two moments and writes three of them; clipping reads twice and writes once.
UPDATE_TRAFFIC = 10

# Host time a step, measured on models too small to compute anything (docs/scaling.md): Python, autograd, optimizer.
STEP_SECONDS = 1.5e-3
LAYER_SECONDS = 1.0e-3


class Example(NamedTuple):
    """What an example reads and predicts, and how many different inputs the first layer finds in a group of them."""

    num_tokens: int
    num_targets: int
    num_distinct: int

    @classmethod
    def of(cls, batch: Batch, scheme: Scheme) -> "Example":
        tokens, ids = batch.input_token_ids, batch.input_position_ids
        inputs = torch.stack([tokens, ids if scheme.encoder.has_table else torch.zeros_like(ids)]).flatten(1)
        return cls(tokens.shape[1], batch.target_tokens.shape[1], torch.unique(inputs, dim=1).shape[1])


@dataclass(frozen=True)
class Workload:
    """A run as numbers. A run draws from `examples` uniformly, a group of one kind at a time."""

    model: ModelConfig
    vocab_size: int
    examples: tuple[Example, ...]
    batch_size: int
    steps: int
    lengths_per_batch: int = 1  # a step is at least this many passes, one after the other, each communicated
    microbatch: int = 1 << 30  # the most examples a device takes in one pass
    num_table_rows: int = 0  # of learned positions
    num_position_logits: int = 0
    num_fire_hidden: int = 0
    rotary_fraction: float = 0.0
    precision: Literal["fp32", "bf16"] = "fp32"

    def num_groups(self, num_devices: int) -> int:
        return max(self.lengths_per_batch, math.ceil(self.batch_size / num_devices / self.microbatch))


@dataclass(frozen=True)
class Device:
    tflops: float  # that matrix products of the model's size reach
    memory_gbps: float
    link_gbps: float  # to the other devices, in GB/s


A100 = Device(tflops=200.0, memory_gbps=1555.0, link_gbps=25.0)  # of 312 TFLOP/s in bf16; InfiniBand at 200 Gbit/s
CPU_CORE = Device(tflops=0.085, memory_gbps=10.0, link_gbps=1.0)  # the cores our `cpu` presets are made for, fp32


@dataclass(frozen=True)
class Cost:
    """Bytes are those of one device; seconds those of one step."""

    parameters: int
    flops_per_step: float
    flops: float
    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float
    communication_bytes: float  # sent by a device in a step
    matmul_seconds: float
    memory_seconds: float
    host_seconds: float
    communication_seconds: float
    hours: float
    device_hours: float

    @property
    def total_bytes(self) -> float:
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes + self.activation_bytes

    @property
    def step_seconds(self) -> float:
        return self.matmul_seconds + self.memory_seconds + self.host_seconds + self.communication_seconds


def workload_of(config: RunConfig) -> Workload:
    task, scheme = config.task, config.scheme
    group_size = config.batch_size // config.lengths_per_batch
    groups = (
        sample_batch(task, scheme, rng_for(config.seed, "plan", length), group_size, length, True)
        for length in config.training_lengths
    )
    return Workload(
        model=config.model,
        vocab_size=len(task.vocabulary),
        examples=tuple(Example.of(group, scheme) for group in groups),
        batch_size=config.batch_size,
        steps=config.steps,
        lengths_per_batch=config.lengths_per_batch,
        num_table_rows=scheme.num_ids if scheme.encoder.has_table else 0,
        num_position_logits=scheme.num_ids if scheme.assigner.predicts_ids else 0,
        num_fire_hidden=scheme.encoder.hidden if isinstance(scheme.encoder, Fire) else 0,
        rotary_fraction=scheme.encoder.rotary_fraction if isinstance(scheme.encoder, Rope) else 0.0,
        precision=config.precision,
    )


def cost_of(
    workload: Workload, device: Device, num_devices: int = 1, sharding: Literal["none", "full"] = "none"
) -> Cost:
    num_groups = workload.num_groups(num_devices)
    group_size = workload.batch_size // num_groups
    if num_devices > group_size:
        raise ValueError(
            f"{num_devices} devices cannot share groups of {group_size} examples; use --devices {group_size} or fewer"
        )
    parameters = num_parameters(workload)
    device_group = group_size / num_devices
    num_passes = num_groups * num_devices
    flops_per_step = num_passes * (1 + BACKWARD) * _mean(forward_flops, workload, device_group)
    state_share = num_devices if sharding == "full" else 1
    # DDP sums gradients (all-reduce: every number goes out twice). FSDP2 gathers the weights before the forward and
    # the backward pass and sums gradients to where their slice is.
    passes = {"none": 2, "full": 3}[sharding] * (num_devices - 1) / num_devices
    communication_bytes = num_groups * passes * FLOAT * parameters

    # Slices are made whole where they are used: the embeddings and heads, the block at work and the one after it.
    others = max(workload.model.num_layers - 2, 0) * _block_parameters(workload.model)
    gathered = parameters - others if state_share > 1 else 0

    traffic = num_groups * (1 + BACKWARD) * _mean(forward_traffic, workload, device_group)
    update = UPDATE_TRAFFIC * FLOAT * parameters / state_share
    largest = max(saved_bytes(workload, example, float(math.ceil(device_group))) for example in workload.examples)
    casts = 2 * parameters if workload.precision == "bf16" else 0  # autocast keeps a copy of each weight for the step
    activation_bytes = largest + casts
    matmul_seconds = flops_per_step / num_devices / (device.tflops * 1e12)
    memory_seconds = (traffic + update) / (device.memory_gbps * 1e9)
    host_seconds = STEP_SECONDS + num_groups * LAYER_SECONDS * workload.model.num_layers
    communication_seconds = communication_bytes / (device.link_gbps * 1e9)
    hours = workload.steps * (matmul_seconds + memory_seconds + host_seconds + communication_seconds) / 3600
    return Cost(
        parameters=parameters,
        flops_per_step=flops_per_step,
        flops=flops_per_step * workload.steps,
        weight_bytes=FLOAT * (parameters / state_share + gathered),
        gradient_bytes=FLOAT * parameters / state_share,
        optimizer_bytes=2 * FLOAT * parameters / state_share,
        activation_bytes=activation_bytes,
        communication_bytes=communication_bytes,
        matmul_seconds=matmul_seconds,
        memory_seconds=memory_seconds,
        host_seconds=host_seconds,
        communication_seconds=communication_seconds,
        hours=hours,
        device_hours=hours * num_devices,
    )


def num_parameters(workload: Workload) -> int:
    model, width = workload.model, workload.model.width
    tables = 2 * workload.vocab_size + workload.num_table_rows + workload.num_position_logits
    hidden = workload.num_fire_hidden
    fire = 2 + 2 * hidden + (hidden + 1) * model.num_heads if hidden else 0
    return model.num_layers * _block_parameters(model) + 2 * width + tables * width + fire


def forward_flops(workload: Workload, example: Example, group_size: float) -> float:
    """Of a group of examples. The last layer computes keys and values everywhere, all else at the targets alone."""
    model, width = workload.model, workload.model.width
    total = 2 * width * (workload.vocab_size + workload.num_position_logits) * group_size * example.num_targets
    for rows in _rows_by_layer(model, example, group_size):
        keys_values = 2 * 2 * width * width * rows.keys
        queries = 2 * width * width * rows.inputs
        mlp = 2 * 2 * model.mlp_ratio * width * width * rows.inputs
        scores = 2 * 2 * width * rows.queries * example.num_tokens
        output = 2 * width * width * rows.queries
        total += keys_values + queries + mlp + scores + output
    return float(total)


def forward_traffic(workload: Workload, example: Example, group_size: float) -> float:
    """Bytes that a group's forward pass reads and writes outside matrix products."""
    model, width = workload.model, workload.model.width
    layers = 0.0
    for rows in _rows_by_layer(model, example, group_size):
        layers += (NORM_TRAFFIC + MLP_TRAFFIC * model.mlp_ratio) * width * rows.inputs
        layers += (ATTENTION_TRAFFIC + RESIDUAL_TRAFFIC) * width * rows.queries
        layers += SPREAD_TRAFFIC * width * rows.spread
        layers += ROTARY_TRAFFIC * workload.rotary_fraction * width * (rows.queries + group_size * example.num_tokens)
        layers += SCORE_TRAFFIC * model.num_heads * rows.queries * example.num_tokens
    logits = 2 * (workload.vocab_size + workload.num_position_logits) * group_size * example.num_targets
    return _number_bytes(workload) * layers + FLOAT * logits


def saved_bytes(workload: Workload, example: Example, group_size: float) -> float:
    """Bytes that a group's forward pass keeps for the backward pass."""
    model, width = workload.model, workload.model.width
    residual = kept = indices = 0.0
    for rows in _rows_by_layer(model, example, group_size):
        residual += width * rows.keys  # fp32 always
        # Its norm; keys, values and queries, attended (as heads and side by side), the MLP's norm, and its inside
        # before and after GELU.
        kept += width * (rows.keys + 2 * group_size * example.num_tokens + 3 * rows.queries)
        kept += width * (1 + 2 * model.mlp_ratio) * rows.inputs
        indices += 2 * rows.spread  # 64-bit integers, counted as two
    log_probabilities = (workload.vocab_size + workload.num_position_logits) * group_size * example.num_targets
    angles = 2 * workload.rotary_fraction * model.head_size * group_size * example.num_tokens  # cosines and sines
    return float(_number_bytes(workload) * kept + FLOAT * (residual + log_probabilities + indices + angles))


class LayerRows(NamedTuple):
    """How many rows a layer's parts work on."""

    keys: float  # norm, keys and values
    inputs: float  # queries' projection and MLP
    queries: float  # attention and its output
    spread: float  # slots that take their row from a distinct input


def _rows_by_layer(model: ModelConfig, example: Example, group_size: float) -> list[LayerRows]:
    """The first layer reads each distinct input once; the last computes what is predicted."""
    slots, targets = group_size * example.num_tokens, group_size * example.num_targets
    distinct = min(example.num_distinct, slots)
    layers = [LayerRows(slots, slots, slots, 0)] * (model.num_layers - 1) + [LayerRows(slots, targets, targets, 0)]
    return [LayerRows(distinct, distinct, layers[0].queries, slots), *layers[1:]]


def _block_parameters(model: ModelConfig) -> int:
    attention = 4 * model.width * model.width + 4 * model.width
    mlp = 2 * model.mlp_ratio * model.width * model.width + (model.mlp_ratio + 1) * model.width
    norms = 4 * model.width
    return attention + mlp + norms


def _number_bytes(workload: Workload) -> int:
    return 2 if workload.precision == "bf16" else FLOAT


def _mean(measure: Callable[[Workload, Example, float], float], workload: Workload, group_size: float) -> float:
    return sum(measure(workload, example, group_size) for example in workload.examples) / len(workload.examples)
