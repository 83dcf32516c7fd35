"""Names of packages: loaded when touched, the same by every path, and a misspelt one is told what it is near to."""

import importlib
import subprocess
import sys

import pytest

import theodolite as th
from theodolite.core.lazy_exports import public_names

MISSPELT = {
    "diagnos": (th, "diagnose"),
    "initialise_": (th, "initialize_"),
    "memorise": (th, "memorize"),
    "critically": (th, "criticality"),
    "nearest_neighbours": (th.measure.dimension, "nearest_neighbors"),
    "mlp_kernel": (th.theory.kernels, "mlp_kernels"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_name_suggests_the_nearest(name):
    package, meant = MISSPELT[name]
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; did you mean {meant}\?$"):
        getattr(package, name)


@pytest.mark.parametrize("name", ["zzzzzzzz", "__wrapped__"])
def test_a_name_near_to_nothing_suggests_nothing(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
        getattr(th, name)


@pytest.mark.parametrize(
    ("package", "module", "name"),
    [
        ("theodolite", "theodolite.theory.propagation.critical_points", "criticality"),
        ("theodolite.theory.propagation", "theodolite.theory.propagation.critical_points", "criticality"),
        ("theodolite.theory.kernels", "theodolite.theory.kernels.inference", "kernel_ridge"),
        ("theodolite.measure.collapse", "theodolite.measure.collapse.class_means", "collapse_metrics"),
    ],
)
def test_a_function_is_the_same_by_every_path(package, module, name):
    offered = getattr(importlib.import_module(package), name)
    assert offered is getattr(importlib.import_module(module), name)


STUB = """from . import rooms as rooms
from .one import first as first
from .two.deep import (
    second as second,
    Third as Third,
)
"""


def test_a_stub_is_read_as_names_and_their_homes(tmp_path):
    (tmp_path / "__init__.pyi").write_text(STUB)
    found = public_names(tmp_path / "__init__.pyi")
    assert found == {"rooms": "", "first": "one", "second": "two.deep", "Third": "two.deep"}


def test_a_name_is_loaded_once_and_an_unknown_one_is_an_attribute_error():
    code = (
        "import sys, theodolite.theory.spectra as s; assert 'torch' not in sys.modules; "
        "assert 'marchenko_pastur_edges' in dir(s); f = s.marchenko_pastur_edges; assert s.marchenko_pastur_edges is f"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    import theodolite.theory.spectra as spectra

    with pytest.raises(AttributeError):
        _ = spectra.no_such_name
