"""Tables and sentences of a list of laws, a design, a network that memorizes."""

from types import SimpleNamespace

import theodolite as th
from theodolite import catalogue
from theodolite.report.overview import design_table, listing, memory_words, step_words
from theodolite.report.text import as_text


def test_the_list_has_every_name_under_its_heading():
    text = as_text(listing(catalogue.entries(), catalogue.topics()), width=120)
    assert all(entry.name in text for entry in catalogue.entries())


def test_a_design_is_told_in_tables_and_sentences():
    design = th.design(activation="relu", depth=3, width=32)
    table = as_text(design_table(design), width=100)
    assert "critical" in table and "hidden layers" in table
    assert "falls as 1 over the width" in " ".join(step_words(design))


def test_what_a_memorizing_network_holds():
    report = SimpleNamespace(widths=(4, 5), activation="relu", points=20, capacity=22, seconds=0.5, merged=2)
    report = SimpleNamespace(**vars(report), labels_right=0.5, error=0.25, blocks=(9, 11), largest_weight=3.0)
    assert "hidden layers of 4 x 5 relu units, which can hold 22" in memory_words(report, "torch.float64")
    assert "2 rows that repeat others" in memory_words(report, "") and "Labels right: 50%" in memory_words(report, "")
