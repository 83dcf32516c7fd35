"""Readings as rows: one strip for one band, meanings told once, those to be seen first kept."""

from theodolite.core.instrument import Instrument
from theodolite.core.question import Answer
from theodolite.core.reading import Band, Reading
from theodolite.report.views import reading_row, shortened_sections, survey_sections


def sections(readings, figures=False):
    instrument = Instrument(question="?", read=lambda subject: (), needs=set(), cost="free", name="x y")
    return survey_sections([Answer(instrument, tuple(readings))], figures=figures)


def readings(*values, meaning="m"):
    return [
        Reading(quantity="q", where=f"l{k}", measured=v, expected=Band(0, 2), meaning=meaning)
        for k, v in enumerate(values)
    ]


def test_rows_of_one_band_share_a_strip():
    first, second = sections(readings(0.5, 1.5))[0].rows
    assert first.bullet.low == second.bullet.low and first.bullet.value < second.bullet.value
    far = sections(readings(0.5, 500.0))[0].rows  # on one strip the band would be a point
    assert far[0].bullet.high != far[1].bullet.high
    assert reading_row(Reading(quantity="q", measured=1.0), "n").bullet is None


def test_a_meaning_that_rows_share_is_told_once():
    (group,) = sections(readings(0.5, 1.5, 3.0))[0].groups
    assert [(m.text, m.count) for m in group.shared] == [("m", 3)]
    own = [Reading(quantity="q", measured=1.0, meaning=str(k)) for k in range(3)]
    assert sections(own)[0].groups[0].shared == ()


def test_the_rows_that_are_left_are_the_worst_in_their_order():
    (section,) = shortened_sections(sections(readings(1.0, 5.0, 1.2, 9.0)), 2)
    assert [row.where for row in section.rows] == ["l1", "l3"]
    assert section.groups[0].left == 2
    assert section.id.startswith("i0-x-y")
