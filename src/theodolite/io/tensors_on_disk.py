"""Tensors that are as large as a model and asked for seldom lie in a file, not in memory."""

import tempfile
import weakref
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor


class OnDisk(Mapping[str, Tensor]):
    """Tensors by name in a file without a name, which is gone with this object or its process; each is read when asked for.

    >>> kept = OnDisk({"weight": torch.tensor([[1.0, 2.0]]), "steps": torch.tensor(7)})
    >>> kept["weight"].tolist(), kept["steps"].item(), list(kept)
    ([[1.0, 2.0]], 7, ['weight', 'steps'])
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._file = tempfile.TemporaryFile(prefix="theodolite-")  # noqa: SIM115 (it is open as long as this lives)
        weakref.finalize(self, self._file.close)
        self._places: dict[str, tuple[int, torch.dtype, torch.Size]] = {}
        for name, tensor in tensors.items():
            self._places[name] = self._file.tell(), tensor.dtype, tensor.shape
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            self._file.write(flat.view(torch.uint8).numpy().data)
        self._file.flush()

    def __getitem__(self, name: str) -> Tensor:
        start, dtype, shape = self._places[name]
        size = shape.numel() * dtype.itemsize
        if size == 0:
            return torch.empty(shape, dtype=dtype)
        held = np.memmap(self._file, np.uint8, "r", start, (size,))
        return torch.from_numpy(np.array(held)).view(dtype).reshape(shape)  # a copy: the map is closed again

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
