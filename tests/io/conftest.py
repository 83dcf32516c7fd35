"""What tests of clusters share."""

import fcntl
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def one_cluster_at_a_time(request):
    """Two Ray tests that ran at once took 49 seconds each, and 6 to 9 one after the other."""
    if "ray" not in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        yield
        return
    with (Path(tempfile.gettempdir()) / "theodolite-tests-ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
