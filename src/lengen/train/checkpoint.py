"""Weights and optimizer state in one safetensors file, replaced whole or not at all. Nothing is unpickled."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lengen.results.store import write_atomically
from lengen.train.curriculum import Curriculum

FORMAT = "lengen-checkpoint-1"


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    run: str
    step: int  # steps done
    wall_seconds: float
    curriculum: Curriculum


def save_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = parameter.detach()
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}.{key}"] = value
    header = {"format": FORMAT, "progress": json.dumps(asdict(progress))}
    write_atomically(path, save(tensors, metadata=header))


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> Progress:
    """Fill the model, and the optimizer if one is given, from the file."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise ValueError(f"{path} is not a checkpoint of this version of lengen; train again")
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        record = json.loads(header["progress"])
        progress = Progress(**record | {"curriculum": Curriculum(**record["curriculum"])})
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                weights = stored[f"model.{name}"]
                if weights.shape != parameter.shape:
                    raise KeyError(f"{name} has shape {tuple(weights.shape)}, not {tuple(parameter.shape)}")
                parameter.copy_(weights)
                if optimizer is not None:
                    prefix = f"optimizer.{name}."
                    state = {key.removeprefix(prefix): value for key, value in stored.items() if key.startswith(prefix)}
                    optimizer.state[parameter] = state
    except FileNotFoundError as error:
        raise ValueError(f"{path.parent} has no checkpoint yet; let the run save one first") from error
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError, OSError) as error:
        raise ValueError(f"the checkpoint {path} is damaged ({error}); restore it or train again") from error
    return progress
