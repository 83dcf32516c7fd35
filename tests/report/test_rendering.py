"""Templates with values in them."""

import jinja2
import pytest

from theodolite.report.rendering import picture_file, rendered


def test_a_value_that_is_missing_is_an_error_and_not_a_gap():
    with pytest.raises(jinja2.UndefinedError):
        rendered("document.html.j2")


def test_a_figure_of_its_own_carries_its_style_once():
    alone = picture_file('<svg class="th-figure"><g class="th-a"/></svg>')
    assert alone.startswith('<svg class="theodolite th-figure"><style>')
    assert alone.count("<style>") == 1 and alone.endswith('<g class="th-a"/></svg>')
