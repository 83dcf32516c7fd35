"""Do the replicas of the model on several processes differ?"""

import pytest
import torch
from benchmarks.silent_errors import Loop

from theodolite.verbs.watching.training_hooks import silent_errors


class Store:
    """What two ranks have in common, the second of which writes its own weights' digest or another."""

    def __init__(self, apart: bool) -> None:
        self.kept: dict[str, str] = {}
        self.apart = apart

    def set(self, key: str, digest: str) -> None:
        self.kept[key] = digest
        self.kept[key.removesuffix("0") + "1"] = "other weights" if self.apart else digest

    def get(self, key: str) -> str:
        return self.kept[key]

    def check(self, keys: list[str]) -> bool:
        return set(keys) <= set(self.kept)


@pytest.mark.parametrize("apart", [True, False])
def test_ranks_with_other_weights_are_named(apart, monkeypatch):
    store = Store(apart)
    monkeypatch.setattr(silent_errors, "shared_store", lambda: store)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    loop = Loop()
    heard = silent_errors.SilentErrors(loop.model, loop.optimizer)
    heard.listen(loop.model)
    for step in range(12):
        loop.step(step)
    assert store.kept
    assert heard.facts([], [0.1]).get("replicas differ", ()) == (("1",) if apart else ())
