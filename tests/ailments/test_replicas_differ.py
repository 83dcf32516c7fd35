"""Do the replicas of the model on several processes differ?"""

import pytest
import torch
from benchmarks.silent_errors import Loop

from theodolite.verbs.watching.training_hooks import silent_errors


class Store:
    """What two ranks have in common, the second of which writes the digests of the first, or others of weights or batches."""

    def __init__(self, other: str) -> None:
        self.kept: dict[str, bytes] = {}
        self.other = other

    def set(self, key: str, digest: str) -> None:
        weights, _, batch = digest.partition(" ")
        self.kept[key] = digest.encode()
        weights, batch = (
            "others" if self.other == "weights" else weights,
            "others" if self.other == "batches" else batch,
        )
        self.kept[key.removesuffix("0") + "1"] = f"{weights} {batch}".encode()

    def get(self, key: str) -> bytes:
        return self.kept[key]

    def check(self, keys: list[str]) -> bool:
        return set(keys) <= set(self.kept)


@pytest.mark.parametrize("other", ["weights", "batches", ""])
def test_ranks_with_other_weights_or_the_same_batches_are_named(other, monkeypatch):
    store = Store(other)
    monkeypatch.setattr(silent_errors, "shared_store", lambda: store)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    loop = Loop()
    heard = silent_errors.SilentErrors(loop.model, loop.optimizer)
    heard.listen(loop.model)
    for step in range(20):
        loop.step(step)
    assert store.kept
    found = heard.facts([], [0.1])
    assert found.get("replicas differ", ()) == (("1",) if other == "weights" else ())
    assert ("batch repeated" in found) == (other == "")
