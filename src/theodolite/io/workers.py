"""One thin function over three engines: the same work on one core, on many, on a Dask or a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from theodolite.core.checks import InputError, one_of

if TYPE_CHECKING:
    from concurrent.futures import Future

Backend = Literal["loky", "dask", "ray"]
Result = TypeVar("Result")
Tasks = Sequence[tuple[Any, ...]]

LOSSES = 3
"""How often a task whose worker died is given to another before the work is given up."""


def completed(
    function: Callable[..., Result],
    tasks: Tasks,
    *,
    jobs: int = 1,
    backend: Backend = "loky",
    processes: Processes | None = None,
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, function(*tasks[index]))`` as each task ends, in whatever order that is.

    ``jobs=-1`` takes every core. An existing Dask client or Ray session is used, or the cluster at
    ``DASK_SCHEDULER_ADDRESS`` or ``RAY_ADDRESS``; otherwise a local one is started and closed again. A task whose worker
    dies is done by another, three times at most. One job runs here, in this process, where the backend is loky, which takes
    ``processes`` that are kept from call to call where it is given some.
    """
    one_of(get_args(Backend), backend=backend)
    if jobs == 0 or jobs < -1:
        raise InputError(f"expected a number of jobs, or -1 for every core, got {jobs}; pass --jobs 2, say")
    if (jobs == 1 and backend == "loky") or not tasks:
        for index, task in enumerate(tasks):
            yield index, function(*task)
        return
    if processes is not None and backend == "loky":
        yield from _on_processes(function, tasks, processes)
        return
    workers = _count(jobs)
    engine = {"loky": _on_loky, "dask": _on_dask, "ray": _on_ray}[backend]
    yield from engine(function, tasks, workers)


def _count(jobs: int) -> int:
    from joblib import cpu_count

    return int(cpu_count()) if jobs == -1 else jobs


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread for the time of the work."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _alone(function: Callable[..., Result], task: tuple[Any, ...]) -> Result:
    with one_thread():  # one worker, one core: several workers with all threads each would fight
        return function(*task)


class Processes:
    """Processes of this machine, started when first needed and once for all calls of `completed` in a ``with`` block."""

    def __init__(self, jobs: int) -> None:
        self.count = _count(jobs)
        self._pool: Any = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end(kill=kind is not None)  # one that is killed cannot put away what it holds

    def end(self, *, kill: bool = True) -> None:
        """End them, whatever they do; or let them end what they were given."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=kill)
            self._pool = None

    def submit(self, function: Callable[..., Result], task: tuple[Any, ...]) -> Future[Result]:
        """Give a task to one of them."""
        from joblib.externals.loky import ProcessPoolExecutor

        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                max_workers=self.count, timeout=60, initializer=_end_with, initargs=(os.getpid(),)
            )
        return self._pool.submit(_alone, function, task)


def _on_processes(function: Callable[..., Result], tasks: Tasks, processes: Processes) -> Iterator[tuple[int, Result]]:
    """When one dies its whole pool is lost: what had not ended is given to a new one."""
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool

    waiting, losses = list(range(len(tasks))), 0
    while waiting:
        ended: set[int] = set()
        try:
            futures = {processes.submit(function, tasks[index]): index for index in waiting}
            for future in as_completed(futures):
                result = future.result()
                ended.add(futures[future])
                yield futures[future], result
        except BrokenProcessPool as error:
            processes.end()
            losses = 1 if ended else losses + 1  # progress was made: another try is worth it
            if losses > LOSSES:
                raise _given_up(error) from error
        except BaseException:  # stopped from outside, or an error that travels: nobody waits for the rest
            processes.end()
            raise
        waiting = [index for index in waiting if index not in ended]


def _on_loky(function: Callable[..., Result], tasks: Tasks, workers: int) -> Iterator[tuple[int, Result]]:
    with Processes(min(workers, len(tasks))) as processes:
        yield from _on_processes(function, tasks, processes)


def _end_with(parent: int) -> None:
    """In a worker: a thread that ends the process when its parent is gone, even one that was killed."""
    import threading
    import time

    def watch() -> None:
        born_of = os.getppid()  # the parent, or a server of forks
        while os.getppid() == born_of and _exists(parent):  # a parent may be gone before a slow worker has begun
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _on_dask(function: Callable[..., Result], tasks: Tasks, workers: int) -> Iterator[tuple[int, Result]]:
    distributed = _installed("distributed", "dask")
    with _dask_client(distributed, workers) as client:
        futures = {
            client.submit(_alone, function, task, pure=False, retries=0): index for index, task in enumerate(tasks)
        }
        try:
            for future in distributed.as_completed(list(futures)):
                try:
                    result = future.result()
                except distributed.scheduler.KilledWorker as error:
                    raise _given_up(error) from error
                yield futures[future], result
                future.release()
        finally:
            client.cancel(list(futures))


@contextmanager
def _dask_client(distributed: Any, workers: int) -> Iterator[Any]:
    try:
        found = distributed.get_client()
    except ValueError:
        found = None
    if found is not None:
        yield found
        return
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(address) if address else distributed.Client(**local) as client:
        yield client


def _on_ray(function: Callable[..., Result], tasks: Tasks, workers: int) -> Iterator[tuple[int, Result]]:
    ray = _installed("ray", "ray")
    ours = not ray.is_initialized()
    if ours:
        local = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers, "include_dashboard": False}
        ray.init(log_to_driver=False, **local)
    try:
        remote = ray.remote(max_retries=LOSSES)(_alone)
        waiting = {remote.remote(function, task): index for index, task in enumerate(tasks)}
        while waiting:
            for ready in ray.wait(list(waiting), num_returns=1)[0]:
                try:
                    result = ray.get(ready)
                except ray.exceptions.WorkerCrashedError as error:
                    raise _given_up(error) from error
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error
                yield waiting.pop(ready), result
    finally:
        if ours:
            ray.shutdown()


def _given_up(error: BaseException) -> InputError:
    return InputError(
        f"expected workers to survive, got several that died at the same task ({type(error).__name__}); "
        "give them more memory, or fewer --jobs"
    )


def _installed(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"expected the package {module} for --backend {extra}, got none; pip install 'theodolite[{extra}]'"
        ) from error
