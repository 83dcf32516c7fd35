import os

import pytest

from fixtures.warm import Warm

# oneDNN's bfloat16 kernels stop with an illegal instruction on virtual machines that hide part of the processor
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

collect_ignore = ["examples"]  # training scripts, which tests run; to import one is to train


@pytest.fixture(autouse=True)
def what_a_hook_raises_is_seen(monkeypatch):
    monkeypatch.setattr("theodolite.verbs.watching.training_hooks.harmless_hooks.isolated", False)


@pytest.fixture(scope="session")
def warm(tmp_path_factory):
    """Commands of Python in processes that have torch loaded; a server of their own for each worker of the tests."""
    server = Warm(tmp_path_factory.mktemp("warm"))
    yield server
    server.end()
