"""Examples of random tokens."""

import pytest
import torch
from tiny_models import VOCAB_SIZE

from lengen.context.window import Window


@pytest.fixture
def window() -> Window:
    return Window(short=9, long=23)  # 13 far tokens


@pytest.fixture
def examples() -> torch.Tensor:
    return torch.randint(0, VOCAB_SIZE, (3, 23), generator=torch.Generator().manual_seed(1))
