"""The size of a decoder and how sharp its attention is; what depends on the task or the scheme is not here."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from lengen.checks import require

PLAIN_ATTENTION = {"sharpness": 1.0, "sharpen_from": 0}  # settings that no weight depends on: a test may change them


@dataclass(frozen=True)
class ModelConfig:
    num_layers: int = 4
    num_heads: int = 4
    width: int = 128
    mlp_ratio: int = 4
    init_scale: float = 0.64  # weights ~ N(0, (init_scale/√width)²): 0.02 at width 1024, where the paper's model is
    # Products of queries and keys are multiplied by `sharpness`; and those of a query that sees n keys by
    # log n / log sharpen_from (Chiang and Cholak, 2022), so that attention is as sharp among many. 0: not by that.
    sharpness: float = 1.0
    sharpen_from: int = 0

    def __post_init__(self) -> None:
        for field in ("num_layers", "num_heads", "width", "mlp_ratio"):
            value = getattr(self, field)
            require(value >= 1, f"--model.{field} {value} is too small", "use at least 1")
        require(
            self.width % self.num_heads == 0,
            f"width={self.width} is not a multiple of num_heads={self.num_heads}",
            "change --model.width or --model.num_heads",
        )
        require(self.init_scale > 0, f"--model.init_scale {self.init_scale} is not positive", "use about 0.64")
        require(self.sharpness > 0, f"--model.sharpness {self.sharpness} is not positive", "use 1 for plain attention")
        require(
            self.sharpen_from == 0 or self.sharpen_from >= 2,
            f"--model.sharpen_from {self.sharpen_from} is no number of keys to sharpen from",
            "use about the longest training length in tokens, or 0 for plain attention",
        )

    def to_dict(self) -> dict[str, Any]:
        """Without settings of attention that are off: they came later than published rows, whose digests stand."""
        return {name: value for name, value in asdict(self).items() if (name, value) not in PLAIN_ATTENTION.items()}

    @property
    def head_size(self) -> int:
        return self.width // self.num_heads

    @property
    def init_std(self) -> float:
        return self.init_scale / math.sqrt(self.width)


PAPER_MODEL = ModelConfig(num_layers=12, num_heads=16, width=1024)  # App. E
