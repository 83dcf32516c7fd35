"""What templates do with names, statuses and bands."""

import re

from theodolite.report.filters import badge, parted, strip
from theodolite.report.views import Bullet


def test_names_break_after_dots_and_slashes_and_stay_text():
    assert parted("a.b/c 1.5") == "a.<wbr>b/<wbr>c 1.5"
    assert parted("<b>&\x1b") == "&lt;b&gt;&amp;�"
    assert "<script" not in badge("<script>", "<")


def test_a_band_that_is_open_ends_beyond_the_strip():
    def ends(low, high):
        drawn = strip(Bullet(low=low, high=high, left=40.0, right=60.0, value=50.0))
        return tuple(float(value) for value in re.findall(r"--[ab]:([-\d.]+)", drawn))

    assert ends(20.0, 80.0) == (20.0, 80.0)
    low, high = ends(0.0, 100.0)
    assert low < 0 and high > 100
    assert strip(None) == ""
