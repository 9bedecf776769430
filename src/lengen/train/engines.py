"""Where runs are done side by side: a pool of processes on this machine, or the workers of a Ray cluster.

Both take a call and give its result, or None if its worker died or was stopped before it was done. A call is made again
by whoever submitted it; engines retry nothing themselves, so that no work is ever done twice at the same time.
"""

import multiprocessing
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from types import FrameType
from typing import Any, Literal

EngineName = Literal["local", "ray"]
STOP_SECONDS = 60.0  # for runs to save themselves
Handle = Any  # of a call under way: hashable, and the engine's own
Work = Callable[[Any], Any]


class Engine(ABC):
    @abstractmethod
    def submit(self, work: Work, argument: object) -> Handle:
        """Have `work(argument)` done as soon as a worker is free."""

    @abstractmethod
    def wait(self, handles: Collection[Handle], seconds: float) -> Collection[Handle]:
        """Those that have ended, as soon as there is one."""

    @abstractmethod
    def result(self, handle: Handle) -> Any:
        """Of a call that has ended; None if it was not done."""

    @abstractmethod
    def stop(self) -> None:
        """Ask every call under way to save itself and end; wait until they have."""

    @abstractmethod
    def close(self) -> None:
        """Give back the workers; nothing is under way."""


class LocalPool(Engine):
    def __init__(self, workers: int) -> None:
        self._workers = workers
        # Two small models on two cores are faster in two processes than in one with two threads.
        self._context = multiprocessing.get_context("spawn")
        self._stopping = self._context.Event()
        self._not_ours = set(multiprocessing.active_children())
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        initargs = (self._stopping,)
        return ProcessPoolExecutor(
            self._workers, mp_context=self._context, initializer=_prepare_worker, initargs=initargs
        )

    def submit(self, work: Work, argument: object) -> Handle:
        try:
            return self._pool.submit(_unless_stopping, work, argument)
        except BrokenProcessPool:  # a worker died: the pool has ended the others, which have saved themselves
            self._pool.shutdown()
            self._pool = self._new_pool()
            return self._pool.submit(_unless_stopping, work, argument)

    def wait(self, handles: Collection[Handle], seconds: float) -> Collection[Handle]:
        return wait(handles, timeout=seconds, return_when=FIRST_COMPLETED).done

    def result(self, handle: Handle) -> Any:
        assert isinstance(handle, Future)
        try:
            return handle.result()
        except (BrokenProcessPool, CancelledError):
            return None

    def stop(self) -> None:
        self._stopping.set()
        for worker in set(multiprocessing.active_children()) - self._not_ours:
            worker.terminate()  # SIGTERM: the run in it saves itself
        self._pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        self._pool.shutdown()


_stopping: Event | None = None  # in a worker: set once the parent has been asked to stop


def _prepare_worker(stopping: Event) -> None:
    global _stopping
    from lengen.runtime import prepare_torch

    _stopping = stopping
    prepare_torch(num_threads=1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then asks each worker once
    signal.signal(signal.SIGTERM, _end_unless_stopping)


def _end_unless_stopping(number: int, frame: FrameType | None) -> None:
    """Outside a run. A pool that sees a worker die ends the others at once, even those that are still saving."""
    assert _stopping is not None
    if not _stopping.is_set():
        os._exit(128 + number)


def _unless_stopping(work: Work, argument: object) -> Any:
    """The pool hands workers a job ahead, which cannot be cancelled: it must not start while the others stop."""
    assert _stopping is not None
    if _stopping.is_set():
        return None
    result = work(argument)
    if result is None:
        # The pool, which has lost another worker, or someone else has asked this one to end. Its run has saved itself;
        # now it ends, or the pool would wait for it forever.
        signal.raise_signal(signal.SIGTERM)
    return result


class RayCluster(Engine):
    """The cluster at `address`, whose cores decide what is done at a time; or one of `workers` cores, started here."""

    def __init__(self, workers: int, address: str | None) -> None:
        try:
            import ray
        except ImportError as error:
            raise ValueError(
                "--engine ray needs Ray, which is not installed; pip install -e '.[ray]' in lengen's folder"
            ) from error
        self._ray = ray
        size = (
            {"address": address} if address else {"address": "local", "num_cpus": workers, "include_dashboard": False}
        )
        try:
            ray.init(**size, log_to_driver=False, logging_level="ERROR")
        except ConnectionError as error:
            raise ValueError(f"no Ray cluster answers at --address {address}; start one with `ray start`") from error
        self._call = ray.remote(num_cpus=1, max_retries=0)(_call_in_ray)
        self._under_way: set[Handle] = set()

    def submit(self, work: Work, argument: object) -> Handle:
        handle = self._call.remote(work, argument)
        self._under_way.add(handle)
        return handle

    def wait(self, handles: Collection[Handle], seconds: float) -> Collection[Handle]:
        return self._ray.wait(list(handles), num_returns=1, timeout=seconds)[0]

    def result(self, handle: Handle) -> Any:
        self._under_way.discard(handle)
        try:
            return self._ray.get(handle)
        except self._ray.exceptions.RayTaskError:  # the work's own error, of its own class too
            raise
        except self._ray.exceptions.RayError:  # the worker or its machine died, or the call was cancelled
            return None

    def stop(self) -> None:
        for handle in self._under_way:
            self._ray.cancel(handle)  # SIGINT in the worker: the run in it saves itself
        if self._under_way:
            self._ray.wait(list(self._under_way), num_returns=len(self._under_way), timeout=STOP_SECONDS)
        self.close()

    def close(self) -> None:
        self._ray.shutdown()


def _call_in_ray(work: Work, argument: object) -> Any:
    from lengen.runtime import prepare_torch

    prepare_torch(num_threads=1)
    return work(argument)


def open_engine(name: EngineName, workers: int, address: str | None) -> Engine:
    return RayCluster(workers, address) if name == "ray" else LocalPool(workers)
