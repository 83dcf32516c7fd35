"""For people's own tests: a network that is sick fails them, with what is wrong and what to type."""

from typing import Any

from theodolite.core.ailment import Severity
from theodolite.verbs.diagnosis import Diagnosis, diagnose


def assert_healthy(target: Any, *, fail_on: Severity = "warning", **facts: Any) -> Diagnosis:
    """Diagnose, and raise an AssertionError that says what is wrong where a finding is as bad as ``fail_on`` or worse.

    ``facts`` are those of `theodolite.diagnose`: data, loss, optimizer, validation, budget.

    >>> import torch
    >>> model = torch.nn.Linear(2, 1)
    >>> _ = torch.nn.init.constant_(model.weight, float("inf"))
    >>> assert_healthy(model)
    Traceback (most recent call last):
        ...
    AssertionError: weights-not-finite ...
    """
    found = diagnose(target, **facts)
    if found.meets(fail_on):
        raise AssertionError("; ".join(f"{f.name} ({f.severity}): {f.says} Fix: {f.remedy}" for f in found.findings))
    return found
