"""A package's names come from its stub, and are loaded when they are touched."""

import subprocess
import sys

import pytest

from theodolite.core.lazy_exports import public_names

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
