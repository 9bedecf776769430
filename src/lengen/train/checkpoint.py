"""Weights and optimizer state as safetensors, replaced whole or not at all. Nothing is unpickled.

A single process writes one file. Several write a folder through torch.distributed.checkpoint, each its own part. Both
hold the same tensors under the same names, and either can be loaded into any number of processes.
"""

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, distributed, nn

from lengen.results.store import RunFolder, write_atomically
from lengen.train.curriculum import Curriculum

FORMAT = "lengen-checkpoint-1"
SHARDS_MARKER = "progress.json"  # written last: shards without it are not whole


@dataclass(frozen=True)
class Progress:
    """Where a run stands."""

    run: str
    step: int  # steps done
    wall_seconds: float
    curriculum: Curriculum


def save_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    write_atomically(path, save(_named_tensors(model, optimizer), metadata=_header(progress)))


def save_shards(
    folder: RunFolder,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    by_first: Callable[[Callable[[], bool]], bool],
) -> None:
    """Called in every process; `by_first` lets the first one act and tells all what came out."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save as save_distributed

    path = folder.shards_folder(progress.step)
    marker = path / SHARDS_MARKER

    def make_room() -> bool:
        """True if this step is saved already: a run is a pure function of its config, so the tensors are the same."""
        if marker.exists() and _progress_in(json.loads(marker.read_text(encoding="utf-8"))).run == progress.run:
            return True
        shutil.rmtree(path, ignore_errors=True)  # what a crash has left of it, or another run
        return False

    def commit() -> bool:
        files = sorted(file.name for file in path.glob("*.safetensors"))
        write_atomically(marker, json.dumps(_header(progress) | {"files": files}).encode())
        drop_shards(folder, keep=path)
        folder.checkpoint_file.unlink(missing_ok=True)
        return True

    if not by_first(make_room):
        writer = HuggingFaceStorageWriter(str(path), save_distributed=True)  # safetensors: the others pickle
        save_distributed(_named_tensors(model, optimizer), storage_writer=writer)
    by_first(commit)


def drop_shards(folder: RunFolder, keep: Path | None = None) -> None:
    for path in folder.all_shards_folders():
        if path != keep:
            shutil.rmtree(path)


def latest_checkpoint(folder: RunFolder) -> Path:
    """The file, or the folder of shards, to go on from (both are there only if a crash came before the clean-up)."""
    whole = [path / SHARDS_MARKER for path in folder.all_shards_folders() if (path / SHARDS_MARKER).exists()]
    newest = max([*whole, folder.checkpoint_file], key=lambda path: path.stat().st_mtime_ns if path.exists() else 0)
    return newest.parent if newest.name == SHARDS_MARKER else newest


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> Progress:
    """Fill the model, and the optimizer if one is given, from a file or a folder of shards."""
    try:
        header, stored = _read_shards(path, model, optimizer is not None) if path.is_dir() else _read_file(path)
        progress = _progress_in(header)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                weights = stored[f"model.{name}"]
                if weights.shape != parameter.shape:
                    raise KeyError(f"{name} has shape {tuple(weights.shape)}, not {tuple(parameter.shape)}")
                parameter.copy_(_placed_like(parameter, weights))
                if optimizer is not None:
                    prefix = f"optimizer.{name}."
                    optimizer.state[parameter] = {
                        key.removeprefix(prefix): _placed_like(parameter, value)
                        for key, value in stored.items()
                        if key.startswith(prefix)
                    }
    except FileNotFoundError as error:
        raise ValueError(f"{path.parent} has no checkpoint yet; let the run save one first") from error
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError, OSError) as error:
        raise ValueError(f"the checkpoint {path} is damaged ({error}); restore it or train again") from error
    return progress


def _named_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = parameter.detach()
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}.{key}"] = value
    return tensors


def _header(progress: Progress) -> dict[str, str]:
    return {"format": FORMAT, "progress": json.dumps(asdict(progress))}


def _progress_in(header: dict[str, str]) -> Progress:
    record = json.loads(header["progress"])
    return Progress(**record | {"curriculum": Curriculum(**record["curriculum"])})


def _check_format(path: Path, header: dict[str, str]) -> None:
    if header.get("format") != FORMAT:
        raise ValueError(f"{path} is not a checkpoint of this version of lengen; train again")


def _read_file(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        header = file.metadata() or {}
        _check_format(path, header)
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)


def _read_shards(path: Path, model: nn.Module, with_optimizer: bool) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Each process reads what it holds: tensors are sliced as the model's parameters are."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    from torch.distributed.checkpoint.state_dict_loader import load as load_distributed

    header = json.loads((path / SHARDS_MARKER).read_text(encoding="utf-8"))
    _check_format(path, header)
    for file in header.pop("files"):
        if not (path / file).exists():  # the reader would leave that part of the weights as it finds the memory
            raise KeyError(f"{file} is missing")
    reader = HuggingFaceStorageReader(str(path))
    sizes: dict[str, torch.Size] = {}
    for name, entry in reader.read_metadata().state_dict_metadata.items():
        assert isinstance(entry, TensorStorageMetadata), "a checkpoint holds nothing but tensors"
        sizes[name] = entry.size
    stored: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        wanted = [f"model.{name}"]
        if with_optimizer:
            wanted += [key for key in sizes if key.startswith(f"optimizer.{name}.")]
        for key in wanted:
            stored[key] = (
                torch.empty_like(parameter) if sizes[key] == parameter.shape else torch.empty(sizes[key])
            ).detach()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # a single process: as intended
        load_distributed(stored, storage_reader=reader, no_dist=not distributed.is_initialized())
    return header, stored


def _placed_like(parameter: Tensor, tensor: Tensor) -> Tensor:
    """A tensor of a parameter's state where the parameter is: on its device, and sliced as it is."""
    if distributed.is_initialized():
        from torch.distributed.tensor import DTensor, distribute_tensor  # slow to import: a process alone goes without

        if isinstance(parameter, DTensor) and not isinstance(tensor, DTensor) and tensor.shape == parameter.shape:
            # Every process has read the whole file: each takes its slice, nothing needs to be sent.
            return distribute_tensor(tensor, parameter.device_mesh, parameter.placements, src_data_rank=None)
    return tensor.to(parameter.device)
