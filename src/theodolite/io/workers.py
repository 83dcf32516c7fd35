"""One thin function over joblib: the same work on one core, on many, on a Dask or a Ray cluster."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

if TYPE_CHECKING:
    import torch

Backend = Literal["loky", "dask", "ray"]
Result = TypeVar("Result")


def completed(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], *, jobs: int = 1, backend: Backend = "loky"
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, function(*tasks[index]))`` as each task ends, in whatever order that is.

    ``jobs=-1`` takes every core. An existing Dask client or Ray session is used; otherwise a local one is started
    and closed again. One job runs here, in this process, whatever the backend.
    """
    if backend not in get_args(Backend):
        raise ValueError(f"expected a backend among {get_args(Backend)}, got {backend!r}; choose one of them")
    if jobs == 0 or jobs < -1:
        raise ValueError(f"expected a number of jobs, or -1 for every core, got {jobs}; pass --jobs 2, say")
    if (jobs == 1 and backend == "loky") or not tasks:
        for index, task in enumerate(tasks):
            yield index, function(*task)
        return
    from joblib import Parallel, cpu_count, delayed, parallel_config

    workers = cpu_count() if jobs == -1 else jobs
    numbered = delayed(_numbered)
    with _session(backend, workers), parallel_config(backend=backend, n_jobs=workers):
        if backend == "ray":  # joblib's Ray backend returns lists only: rounds, so that finished work is not held back
            with Parallel() as pool:
                for start in range(0, len(tasks), 4 * workers):
                    block = list(enumerate(tasks))[start : start + 4 * workers]
                    yield from pool(numbered(function, index, task) for index, task in block)
            return
        yield from Parallel(return_as="generator_unordered")(
            numbered(function, index, task) for index, task in enumerate(tasks)
        )


def case_generator(seed: int, case: Mapping[str, Any]) -> torch.Generator:
    """Randomness that depends on these two alone, so that neither order nor the number of workers changes a result."""
    import torch

    text = json.dumps([seed, sorted((key, repr(value)) for key, value in case.items())])
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big"))


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


def _numbered(function: Callable[..., Result], index: int, task: tuple[Any, ...]) -> tuple[int, Result]:
    with one_thread():  # one worker, one core: several workers with all threads each would fight
        return index, function(*task)


def _session(backend: Backend, workers: int) -> AbstractContextManager[Any]:
    """A cluster for the time of the work, unless the caller has one."""
    if backend == "dask":
        distributed = _installed("distributed", "dask")
        try:
            return nullcontext(distributed.get_client())
        except ValueError:
            return distributed.Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)  # type: ignore[no-any-return]
    if backend == "ray":
        ray = _installed("ray", "ray")
        _installed("ray.util.joblib", "ray").register_ray()
        if not ray.is_initialized():
            return ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)  # type: ignore[no-any-return]
    return nullcontext()


def _installed(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"expected the package {module} for --backend {extra}, got none; pip install 'theodolite[{extra}]'"
        ) from error
