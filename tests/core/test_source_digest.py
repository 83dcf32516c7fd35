"""The digest that decides whether a stored verdict is reused."""

import pytest

from theodolite.core import source_digest
from theodolite.core.source_digest import ROOMS


@pytest.fixture
def package(tmp_path):
    for name in ("laws/a.py", "laws/b.py", "theory/kernels/table.json", "core/law.py", "report/text.py", "nn.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def digest(package, law="laws/a.py"):
    source_digest._rooms_digest.cache_clear()
    return source_digest.source_digest(package, package / law)


@pytest.mark.parametrize("name", ["laws/a.py", "theory/kernels/table.json", "core/law.py", "nn.py", "measure/new.py"])
def test_it_changes_with_the_law_and_with_every_file_below(package, name):
    before = digest(package)
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("changed")
    assert digest(package) != before


@pytest.mark.parametrize("name", ["laws/b.py", "report/text.py", "core/law.cpython-313.pyc"])
def test_it_does_not_change_with_what_no_law_depends_on(package, name):
    before = digest(package)
    (package / name).write_text("changed")
    assert digest(package) == before


def test_it_changes_when_a_file_is_moved(package):
    before = digest(package)
    (package / "core/law.py").rename(package / "core/renamed.py")
    assert digest(package) != before


def test_the_rooms_are_there():
    from theodolite.catalogue import ROOT

    assert all((ROOT / room).exists() for room in ROOMS)
