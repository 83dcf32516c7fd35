"""Templates are compiled once."""

import sys

from theodolite.report.html import survey_page
from theodolite.report.rendering import _environment


def test_templates_are_kept_compiled_where_python_may_write(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    pages = []
    for forbidden in (True, False, False):
        monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)
        _environment.cache_clear()
        pages.append(survey_page("x", (), (), {}))
        assert any(tmp_path.rglob("survey.html*.pyc")) is not forbidden
    for kept in tmp_path.rglob("*.pyc"):
        kept.write_bytes(b"damaged")
    _environment.cache_clear()
    assert {*pages, survey_page("x", (), (), {})} == {pages[0]}
    _environment.cache_clear()
