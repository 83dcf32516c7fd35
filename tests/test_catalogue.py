"""The battery that every law and every instrument gets, found by their files and never listed here."""

import math

import pytest
import torch

from theodolite import catalogue
from theodolite.io.builtin_network import builtin
from theodolite.verbs.checking import CheckSettings, checked_laws
from theodolite.verbs.surveying import read

LAWS = catalogue.law_names()
INSTRUMENTS = catalogue.instrument_names()
BREAKABLE = [(name, text) for name in LAWS for text, change in catalogue.law(name).assumes.items() if change]


@pytest.mark.parametrize("name", LAWS)
def test_law_holds_in_quick_size(name):
    verdict = catalogue.law(name).check()
    assert verdict.holds, [(r.where, r.measured, r.stderr, str(r.expected), r.status) for r in verdict.readings]


@pytest.mark.parametrize(("name", "assumption"), BREAKABLE)
def test_law_fails_when_an_assumption_is_broken(name, assumption):
    verdict = catalogue.law(name).check(breaking=assumption)
    assert verdict.broken, [(r.where, r.measured, r.stderr, str(r.expected), r.status) for r in verdict.readings]


@pytest.mark.parametrize("name", LAWS)
def test_law_is_documented(name):
    law, entry = catalogue.law(name), catalogue.entry(name)
    assert entry.summary.endswith(".")
    assert law.claim
    assert law.formula
    assert law.topic in catalogue.topics()
    assert law.name == name
    for source in law.source.split(";"):
        assert source.strip().partition(",")[0] in catalogue.references(), f"no such key in references.bib: {source}"
    assert any(law.assumes.values()), "a law nothing can break shows nothing"
    assert bool(law.erratum) == bool(law.refuted), "an erratum shows that the wrong form is refuted"


def test_verdicts_are_the_same_for_one_and_two_workers():
    """To rounding: where an array lies in memory decides how BLAS sums it."""
    names = LAWS[::16]
    alone = {r.verdict.law.name: r.verdict.readings for r in checked_laws(names, CheckSettings(seed=3))}
    shared = {r.verdict.law.name: r.verdict.readings for r in checked_laws(names, CheckSettings(seed=3), jobs=2)}
    assert alone.keys() == shared.keys()
    for name, readings in alone.items():
        for one, other in zip(readings, shared[name], strict=True):
            assert (one.quantity, one.where, one.status) == (other.quantity, other.where, other.status)
            assert one.measured == pytest.approx(other.measured, rel=1e-9, abs=1e-12), name


def test_names_are_unique():
    names = [entry.name for entry in catalogue.entries()]
    assert len(names) == len(set(names))


@pytest.fixture(scope="module")
def subject():
    return builtin()


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_instrument_reads_the_full_subject_and_leaves_it_unchanged(name, subject):
    before = {key: value.clone() for key, value in subject.model.state_dict().items()}
    random = torch.get_rng_state()
    readings = read(name, subject)
    assert readings
    for reading in readings:
        assert math.isfinite(reading.measured), reading
        assert math.isfinite(reading.stderr), reading
        assert reading.quantity
        assert reading.meaning
    after = subject.model.state_dict()
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert torch.equal(random, torch.get_rng_state())
    assert all(p.grad is None for p in subject.model.parameters())
    assert not any(module._forward_hooks for module in subject.model.modules())
    assert subject.model.training


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_instrument_is_documented_and_names_laws_that_exist(name):
    instrument = catalogue.instrument(name)
    assert instrument.question.endswith("?")
    assert catalogue.entry(name).summary
    assert instrument.laws, "an instrument rests on at least one law"
    for law in instrument.laws:
        assert law in LAWS


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_a_question_read_from_the_file_is_the_instrument_s(name):
    asked, loaded = catalogue.question(name), catalogue.instrument(name)
    for fact in ("question", "cost", "needs", "laws", "of_weights", "name"):
        assert getattr(asked, fact) == getattr(loaded, fact)


def test_unknown_names_are_answered_with_near_ones():
    with pytest.raises(ValueError, match="relu-critical"):
        catalogue.law("relu-critcal")
    with pytest.raises(ValueError, match="theodolite list"):
        catalogue.law("qqqqqq")
    with pytest.raises(ValueError, match="the instrument"):
        catalogue.law(INSTRUMENTS[0])
    with pytest.raises(ValueError, match="the law"):
        catalogue.instrument(LAWS[0])
