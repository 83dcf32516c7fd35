import os

import pytest

# oneDNN's bfloat16 kernels stop with an illegal instruction on virtual machines that hide part of the processor
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

collect_ignore = ["examples"]  # training scripts, which tests run; to import one is to train


@pytest.fixture(autouse=True)
def what_a_hook_raises_is_seen(monkeypatch):
    monkeypatch.setattr("theodolite.verbs.watching.harmless_hooks.isolated", False)
