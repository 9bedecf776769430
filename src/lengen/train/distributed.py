"""One model, many processes: who this process is among them, and the few things they do together.

Every process makes the same global batch from (seed, step) and takes its slice of each length group; gradients are
summed over all processes and normalised by the global number of targets. So the number of processes changes how fast a
run is, not what it computes. A process of its own is `ALONE`: the same calls, and nothing is communicated; the engines
are imported where they are used, because they take a second that a process alone should not pay.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from lengen.batch import Batch
from lengen.model.decoder import Decoder, DecoderOutput
from lengen.results import RunFolder
from lengen.stopped import ProcessLost
from lengen.train.checkpoint import Progress, drop_shards, save_checkpoint, save_shards

Sharding = Literal["none", "full"]  # a whole model in every process (DDP), or a slice of every weight (FSDP2)
T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """The processes that train one model together, seen from one of them."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def check_group_size(self, group_size: int) -> None:
        if group_size < self.size:
            raise ValueError(
                f"{self.size} processes cannot share groups of {group_size} examples (batch_size / lengths_per_batch); "
                f"raise --batch-size or start at most {group_size} processes"
            )

    def slice(self, batch: Batch) -> Batch:
        """This process's share of a length group; shares differ by one example at most."""
        num_examples = batch.token_ids.shape[0]
        return batch.rows(slice(self.rank * num_examples // self.size, (self.rank + 1) * num_examples // self.size))

    def sum(self, *values: float) -> list[float]:
        """Each value summed over all processes."""
        if self.size == 1:
            return list(values)
        summed = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(summed)
        return summed.tolist()

    def agree_on_signal(self, number: int | None) -> int | None:
        """A signal that any process has received: all of them stop after the same step."""
        if self.size == 1:
            return number
        received = torch.tensor(number or 0)
        dist.all_reduce(received, dist.ReduceOp.MAX)
        return int(received) or None

    def by_first(self, action: Callable[[], T]) -> T:
        """What the first process gets from `action`, for all; its ValueError, too. Nobody goes on before it is done."""
        if self.size == 1:
            return action()
        outcome: list[T | ValueError | None] = [None]
        if self.is_first:
            try:
                outcome = [action()]
            except ValueError as error:
                outcome = [error]
        dist.broadcast_object_list(outcome)
        result = outcome[0]
        if isinstance(result, ValueError):
            raise result
        return result  # type: ignore[return-value]  # T may be None itself

    def spread(self, decoder: Decoder, sharding: Sharding) -> Callable[..., DecoderOutput]:
        """The forward pass to train with: after its backward pass, gradients are averaged over all processes."""
        if self.size == 1:
            if sharding == "full":
                raise ValueError(
                    "--sharding full has nothing to share a model with; start several processes (torchrun)"
                )
            return decoder
        if sharding == "none":
            from torch.nn.parallel import DistributedDataParallel

            device_ids = None if self.device == "cpu" else [torch.device(self.device)]
            return DistributedDataParallel(decoder, device_ids=device_ids, gradient_as_bucket_view=True)
        scalars = [name for name, parameter in decoder.named_parameters() if parameter.ndim == 0]
        if scalars:
            raise ValueError(f"--sharding full cannot slice the scalar {scalars[0]}; use --sharding none")
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(torch.device(self.device).type, (self.size,))
        for block in decoder.blocks:
            fully_shard(block, mesh=mesh)
        # Even if no backward pass follows (evaluation): a checkpoint must find slices, not whole weights.
        fully_shard(decoder, mesh=mesh, reshard_after_forward=True)
        return decoder

    def whole(self, tensor: Tensor) -> Tensor:
        """A tensor that may be spread over the processes, in one piece."""
        if self.size == 1:
            return tensor
        from torch.distributed.tensor import DTensor

        return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

    def save(self, folder: RunFolder, decoder: Decoder, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """A checkpoint that any number of processes can resume from; the one before it goes once this one is whole."""
        if self.size == 1:
            save_checkpoint(folder.checkpoint_file, decoder, optimizer, progress)
            drop_shards(folder)
        else:
            save_shards(folder, decoder, optimizer, progress, self.by_first)


ALONE = Processes()


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """The processes torchrun has started, on `device` (cpu, or cuda: one GPU each); `ALONE` if there is one only."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Processes(device=device)
        return
    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    # Counts, signals and checkpoint plans are small and live on the CPU whatever the gradients are on.
    dist.init_process_group("gloo" if device == "cpu" else "cpu:gloo,cuda:nccl")
    try:
        yield Processes(dist.get_rank(), size, device)
    except RuntimeError as error:
        if not _is_lost_peer(error):
            raise
        raise ProcessLost(
            "another process of this run has ended; its last checkpoint is kept: continue with --resume"
        ) from error
    dist.destroy_process_group()


def _is_lost_peer(error: RuntimeError) -> bool:
    """gloo has no error class of its own; its messages name its source file."""
    return isinstance(error, dist.DistError) or "gloo" in str(error) or "Connection closed by peer" in str(error)
