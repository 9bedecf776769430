"""How a model sees position ids: added to the input, turned into queries and keys, or as a bias on scores.

An encoder has three methods that default to doing nothing. All work on ids, never on slots: ids may repeat, skip, and
differ between the examples of a batch. One encoder serves all layers, so each method runs once a forward pass.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lengen.positions.scheme import Alibi, EncoderSettings, Fire, LearnedAbsolute, NoPosition, Rope

Ids = Int[Tensor, "B T"]


class Rotation(NamedTuple):
    """Cosines and sines of each slot's angles, for the first R of the K numbers of every head."""

    cos: Float[Tensor, "B 1 T R"]
    signed_sin: Float[Tensor, "B 1 T R"]  # −sin for the first half: what the second half adds to it

    def apply(self, x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B H T K"]:
        rotary_size = self.cos.shape[-1]
        if rotary_size == x.shape[-1]:
            return self._turn(x)
        return torch.cat([self._turn(x[..., :rotary_size]), x[..., rotary_size:]], dim=-1)

    def _turn(self, x: Float[Tensor, "B H T R"]) -> Float[Tensor, "B H T R"]:
        first, second = x.chunk(2, dim=-1)  # GPT-NeoX pairs number i with number i + R/2
        return torch.addcmul(x * self.cos, torch.cat([second, first], dim=-1), self.signed_sin)


class PositionEncoder(nn.Module):
    """Sees nothing. Subclasses override what they need."""

    @property
    def adds_ids_to_input(self) -> bool:
        """Whether equal tokens at different ids are different inputs to the first layer."""
        return type(self).embed is not PositionEncoder.embed

    def embed(self, hidden: Float[Tensor, "B T D"], ids: Ids) -> Float[Tensor, "B T D"]:
        return hidden

    def rotation(self, ids: Ids) -> Rotation | None:
        return None

    def bias(self, query_ids: Ids, key_ids: Int[Tensor, "B S"]) -> Float[Tensor, "B H T S"] | None:
        return None


class LearnedAbsoluteEncoder(PositionEncoder):
    def __init__(self, num_ids: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(num_ids, width)

    def embed(self, hidden: Float[Tensor, "B T D"], ids: Ids) -> Float[Tensor, "B T D"]:
        return hidden + self.table(ids)


class RopeEncoder(PositionEncoder):
    frequencies: Tensor

    def __init__(self, settings: Rope, head_size: int) -> None:
        super().__init__()
        # Not saved with the weights: they follow from the settings, which evaluation may override (interpolation).
        frequencies = rope_frequencies(settings, rotary_size_of(settings, head_size))
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.amplitude = 0.1 * math.log(settings.factor) + 1.0 if settings.interpolation == "yarn" else 1.0

    def rotation(self, ids: Ids) -> Rotation:
        angles = ids[:, None, :, None].float() * self.frequencies
        cos, sin = angles.cos() * self.amplitude, angles.sin() * self.amplitude
        return Rotation(torch.cat([cos, cos], dim=-1), torch.cat([-sin, sin], dim=-1))


def rotary_size_of(settings: Rope, head_size: int) -> int:
    """How many numbers of a head turn: an even number of them."""
    rotary_size = int(head_size * settings.rotary_fraction) // 2 * 2
    if rotary_size == 0:
        raise ValueError(
            f"rotary_fraction={settings.rotary_fraction} of a head of {head_size} leaves nothing to rotate; "
            f"use at least {2 / head_size:g}"
        )
    return rotary_size


def ntk_base(settings: Rope, rotary_size: int) -> float:
    """The base that slows the slowest pair by `factor` and leaves the fastest as it is."""
    return settings.base * settings.factor ** (rotary_size / max(rotary_size - 2, 1))


def rope_frequencies(settings: Rope, rotary_size: int) -> Float[Tensor, " F"]:
    """Radians an id, for each pair of numbers; interpolation slows them so that long ids stay in the trained range."""
    exponents = torch.arange(0, rotary_size, 2, dtype=torch.float32) / rotary_size
    base = ntk_base(settings, rotary_size) if settings.interpolation == "ntk" else settings.base
    frequencies = 1.0 / base**exponents
    if settings.interpolation == "linear":
        return frequencies / settings.factor
    if settings.interpolation == "yarn":
        # Peng et al. (2024): pairs that turn more than 32 times within the trained ids are kept, those that turn less
        # than once are interpolated, and in between the two are blended linearly in the pair's index.
        fast_index, slow_index = (
            rotary_size * math.log(settings.trained_max_id / (turns * 2 * math.pi)) / (2 * math.log(settings.base))
            for turns in (32, 1)
        )
        low, high = max(math.floor(fast_index), 0), min(math.ceil(slow_index), rotary_size - 1)
        ramp = ((torch.arange(rotary_size // 2) - low) / max(high - low, 0.001)).clamp(0, 1)
        return frequencies / settings.factor * ramp + frequencies * (1 - ramp)
    return frequencies


class AlibiEncoder(PositionEncoder):
    slopes: Tensor

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        slopes = torch.tensor([2.0 ** (-8.0 * (head + 1) / num_heads) for head in range(num_heads)])
        self.register_buffer("slopes", slopes[None, :, None, None], persistent=False)

    def bias(self, query_ids: Ids, key_ids: Int[Tensor, "B S"]) -> Float[Tensor, "B H T S"]:
        # By absolute distance: a coupled key may have a larger id than the query that follows it.
        distance = (query_ids[:, None, :, None] - key_ids[:, None, None, :]).abs()
        return -self.slopes * distance


class FireEncoder(PositionEncoder):
    """b(i, j) = f(ψ(i − j) / ψ(max(L, i))), ψ(x) = log(|c·x| + 1), with f a small MLP and c, L learned."""

    def __init__(self, settings: Fire, num_heads: int) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(0.1))  # c
        self.threshold = nn.Parameter(torch.tensor(float(FIRE_INITIAL_THRESHOLD)))  # L
        self.hidden = nn.Linear(1, settings.hidden)
        self.output = nn.Linear(settings.hidden, num_heads)

    def bias(self, query_ids: Ids, key_ids: Int[Tensor, "B S"]) -> Float[Tensor, "B H T S"]:
        distance = self._log((query_ids[:, :, None] - key_ids[:, None, :]).float())
        reach = self._log(torch.maximum(self.threshold.abs(), query_ids[:, :, None].float()))
        ratio = distance / (reach + 1e-6)  # reach is 0 only if the learned threshold is
        return self.output(torch.relu(self.hidden(ratio[..., None]))).permute(0, 3, 1, 2)

    def _log(self, x: Tensor) -> Tensor:
        return torch.log((self.log_scale * x).abs() + 1)


FIRE_INITIAL_THRESHOLD = 64


def build_encoder(
    settings: EncoderSettings, *, num_ids: int, width: int, num_heads: int, head_size: int
) -> PositionEncoder:
    match settings:
        case NoPosition():
            return PositionEncoder()
        case LearnedAbsolute():
            return LearnedAbsoluteEncoder(num_ids, width)
        case Rope():
            return RopeEncoder(settings, head_size)
        case Alibi():
            return AlibiEncoder(num_heads)
        case Fire():
            return FireEncoder(settings, num_heads)
    raise AssertionError(f"no encoder for {settings}")
